"""memkit: a memory for Claude Code.

Sessions become daily markdown; the markdown is indexed and found again. Markdown is the truth,
everything else is derived from it.
"""

__version__ = "0.1.0"
