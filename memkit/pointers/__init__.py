"""Quote the memory unasked: beside a prompt, after a failure, before an edit."""
