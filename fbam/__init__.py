"""Companion to the paper "Recurrence-Complete Frame-based Action Models" (Keiblinger, arXiv 2510.06828).

Glossary: the paper's letters, the names in this package and the shapes.

======  ====================  ==========================================================================
letter  name                  meaning
======  ====================  ==========================================================================
x_t     frame                 terminal screen before action t, (R, C) cells of code point, colours, style
a_t     action                one key or one terminal control sequence pressed on x_t
N_f     cells                 cells a frame, R x C (paper 48 x 160 = 7680)
B       batch                 sequences an update (paper 512)
L, T_s  length                frames a sequence, the trained sequence length (paper up to 1024)
D       width                 width of frame embedding and of both sequence models (paper 768)
P       poolings              pooling stages of the frame head, each halves the sequence (paper 2)
L_t     head_blocks           transformer blocks of the frame head after the poolings (paper 3)
L_s     layers                LSTM + MLP layers of the main model (paper 2)
V       vocab_size            actions the model chooses from (paper 20,000)
s       step                  optimiser updates done
alpha   alpha                 exponent of loss(L | s) = A(s) L^-alpha(s), section 10.5
======  ====================  ==========================================================================
"""
