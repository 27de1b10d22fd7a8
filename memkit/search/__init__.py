"""Rank the entries of a memory: corpus, signals, corrections, and results."""
