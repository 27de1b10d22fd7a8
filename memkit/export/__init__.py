"""Export of a memory: Markdown, JSON lines, or one HTML page."""
