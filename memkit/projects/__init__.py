"""Projects: find the one of a directory, read what git and a team keep there, decide whom to trust."""
