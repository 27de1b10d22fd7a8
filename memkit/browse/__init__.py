"""Read a memory: names, sections, transcripts, sessions, files, and what git says of them."""
