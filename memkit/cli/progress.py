"""The old place of `memkit.cli.output.counting` and `reading`. Remove it when no command imports it."""

from memkit.cli.output import counting, reading

__all__ = ["counting", "reading"]
