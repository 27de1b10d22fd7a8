"""The timeline: year > month > week > day > segment, read from the day files."""
