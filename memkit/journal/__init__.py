"""The Markdown of the memory: day files, digests, notes, facts."""
