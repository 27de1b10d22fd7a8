"""Statistics of a memory: its days, use, cost, and size. Prints nothing."""
