"""Answer a question: its period, an overview or ranked results, and their layout."""
