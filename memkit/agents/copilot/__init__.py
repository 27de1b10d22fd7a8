"""GitHub Copilot CLI: its session files, and the names of its tools."""
