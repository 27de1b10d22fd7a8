"""The code of Claude Code's hook processes: standard library only, Python 3.9 syntax."""
