"""Bullets above the digests: what a segment of work came to, written by a model of the user's choice."""
