"""Grids of cells, typed rows with provenance, intervals and progress: what every study stands on."""
