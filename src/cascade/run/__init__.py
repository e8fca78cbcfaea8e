"""Runs: the training phases, and what measures them."""
