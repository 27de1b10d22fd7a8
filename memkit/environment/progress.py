"""What a person sees on stderr while an environment is being made.

Standard library only, Python 3.9 syntax: run by whatever `python3` the user has.
"""

from __future__ import annotations

import shutil
import sys
import time


class Progress:
    """One line when the work begins, one when it is done; on a terminal, a moving one between."""

    def __init__(self, purpose: str) -> None:
        self._begun = time.monotonic()
        self._moving = sys.stderr.isatty()
        say(purpose)

    @property
    def seconds(self) -> int:
        """Whole seconds since the work began."""
        return int(time.monotonic() - self._begun)

    def show(self, status: str) -> None:
        """Put `status` on the moving line."""
        if self._moving:
            width = shutil.get_terminal_size().columns - 1
            _write(f"\r{f'memkit: {self.seconds:3} s  {status}'[:width]}\x1b[K")

    def clear(self) -> None:
        """Take the moving line away."""
        if self._moving:
            _write("\r\x1b[K")


def say(message: str) -> None:
    """Write one line to stderr at once."""
    _write(f"memkit: {message}\n")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:  # whoever listened is gone; what is being made is wanted all the same
        pass
