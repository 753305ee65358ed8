"""Fits, operation counts, the claims ledger and the figures: everything that reads results and computes none of them."""
