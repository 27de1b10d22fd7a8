"""From a question to found memory, at three depths."""
