"""Search and recall: from a question to the original exchange."""
