"""The Frame-based Action Model: a frame head and a recurrent main model (paper, sections 9 and 10.2)."""
