"""From markdown to an index that searches read."""
