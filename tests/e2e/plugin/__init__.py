"""memkit itself, as a plugin of the real client."""
