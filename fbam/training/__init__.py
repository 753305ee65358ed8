"""Training on recordings: windows of frames and actions, optimisers, the loop with its checkpoint (paper, section 10.4)."""
