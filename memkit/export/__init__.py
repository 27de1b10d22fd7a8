"""The memory in other shapes, for reading elsewhere."""
