"""Synthetic diagnostics: generators, interpreters, exact solvers and baselines; no torch in here."""
