"""Original exchanges, one compressed file per session."""
