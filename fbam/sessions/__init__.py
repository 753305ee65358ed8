"""Sessions: git histories replayed as keystrokes in a small shell and editor (paper, section 10.1)."""
