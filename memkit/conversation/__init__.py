"""What was said and done in a session, whichever agent kept it: turns, messages, and tools by role."""
