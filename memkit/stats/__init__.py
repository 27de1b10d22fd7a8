"""What a memory adds up to: counts of its days, use and cost, the room it takes. Prints nothing."""
