"""Sequence layers, one file a family, each with its update equation and whether that equation is associative (paper, section 2)."""
