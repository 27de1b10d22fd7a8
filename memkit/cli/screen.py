"""Fit text to the user's screen: width, lines cut to it, links, and a pager.

A screen of a command has to read well at 80 columns, on light and dark. Use weight (`bold`, `dim`,
`underline`) and the eight basic colors except white, black, and yellow. `memkit.cli.output.styled` makes text
safe.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from pathlib import Path

import click

from memkit.errors import MemkitError

PIPE_COLUMNS = 120
"""Columns where stdout is not a terminal and `COLUMNS` is not set."""

MOST_COLUMNS = 120
"""A longer line is hard to read."""

ID_CHARACTERS = 8
"""Shown of an ID. Commands take any unique beginning."""

_LEAST_COLUMNS = 40
_LESS = "-FRX"  # as git: leave if all fits on the screen, show colors, do not clear the screen
_LINK = re.compile("\x1b]8;;[^\x1b]*\x1b\\\\")


def width() -> int:
    """Return the number of columns to fill: of `COLUMNS`, else of the terminal."""
    return max(_LEAST_COLUMNS, shutil.get_terminal_size((PIPE_COLUMNS, 0)).columns)


def cells(text: str) -> int:
    """Return how many columns a line takes on a terminal; wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """Return `text` on one line of at most `columns` columns, cut with `…` if it is longer."""
    line = " ".join(text.split())
    if cells(line) <= columns:
        return line
    room = columns - 1
    for end, character in enumerate(line):
        room -= _cells(character)
        if room < 0:
            return f"{line[:end].rstrip()}…"
    return line


def pad(text: str, columns: int) -> str:
    """Return `text` cut or filled with spaces to exactly `columns` columns."""
    line = fit(text, columns)
    return line + " " * (columns - cells(line))


def to_edge(text: str, columns: int) -> str:
    """Return `text` cut to `columns`, and filled to have what follows at the right edge of a known screen.

    Claude Code shows the output of a command in a box, and does not tell how wide that is.
    """
    return pad(text, columns) if shutil.get_terminal_size((0, 0)).columns else fit(text, columns)


def wrapped(text: str, columns: int, most: int) -> list[str]:
    """Return `text` on at most `most` lines of at most `columns` columns, the last one cut with `…`."""
    lines = [""]
    words = text.split()
    for number, word in enumerate(words):
        longer = f"{lines[-1]} {word}".lstrip()
        if cells(longer) > columns and lines[-1]:
            if len(lines) == most:
                lines[-1] = " ".join([lines[-1], *words[number:]])
                break
            longer = word
            lines.append("")
        lines[-1] = longer
    return [fit(line, columns) for line in lines]


def link(text: str, path: str | Path, line: int = 0) -> str:
    """Return `text`, safe already, as a link to a line at an absolute `path`; unchanged off a terminal."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return text
    address = Path(path).as_uri() + (f"#{line}" if line else "")  # the URI encodes control characters
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def page(text: str) -> None:
    """Print `text`, which is safe already, in the user's pager if it is longer than the screen.

    As git does, run `$PAGER`, else `less`, and only on a terminal. An empty `$PAGER` and `cat` mean none.
    """
    text = text.rstrip("\n")
    if not _needs_pager(text):
        click.echo(text)
        return
    os.environ.setdefault("LESS", _LESS)
    try:
        click.echo_via_pager(_LINK.sub("", text) + "\n")  # older versions of less print links as text
    except (OSError, ValueError) as error:
        raise MemkitError(f"cannot run the pager {os.environ.get('PAGER')!r}: {error}; set PAGER") from error


def _needs_pager(text: str) -> bool:
    if not sys.stdin.isatty() or not sys.stdout.isatty() or os.environ.get("PAGER") in ("", "cat"):
        return False
    screen = shutil.get_terminal_size()
    lines = click.unstyle(_LINK.sub("", text)).split("\n")
    rows = sum(max(1, -(-cells(line) // screen.columns)) for line in lines)
    return rows >= screen.lines  # the shell's prompt needs one
