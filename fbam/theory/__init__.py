"""Theory, measured: true depth of running code, its laws, and the atlas of architectures (paper, sections 2, 3, 7 and appendices A to C)."""

from fbam.theory.depth import true_depth as true_depth
