"""Recordings: editing sessions stored as frames and actions, and the action tokenizer (paper, sections 9 and 10.1)."""
