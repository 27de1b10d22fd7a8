"""Read a memory: names, sections, transcripts, sessions, files, and their marks from git."""
