"""From hook events and transcripts to daily markdown."""
