"""What runs inside a Claude Code hook process: standard library only, Python 3.9 syntax."""
