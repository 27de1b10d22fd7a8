"""OpenCode: its database, older files and exports, and the names of its tools."""
