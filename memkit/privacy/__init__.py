"""Redaction, private tags, exclusion, and tombstones of forgotten turns."""
