"""The archive: the redacted exchanges of each session, kept after Claude Code has deleted its own."""
