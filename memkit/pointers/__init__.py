"""Quote the memory unasked: next to a prompt, after a failure, before an edit."""
