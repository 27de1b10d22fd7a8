"""Print for users: safe text, JSON, tables, numbers, questions, and progress.

Text from a memory, a transcript, or a file name can hold sequences that steer a terminal. Everything here
that prints or styles a text removes them.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.screen import cells, pad, width
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from rich.console import Console

    from memkit.llm.ledger import Total

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Also characters that change the direction of text or end a line invisibly.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


NAME_COLUMNS = 16
"""The most columns for the name of a project or a branch."""

# Safe text


def other_agent(session: str) -> str:
    """Return the title of the agent of a session by its ID; "" for Claude Code's."""
    if "@" not in session:  # the agents take long to import
        return ""
    from memkit.agents.registry import CLAUDE_CODE, agent_of

    agent = agent_of(session)
    return "" if agent is CLAUDE_CODE else agent.title


def plain(text: str) -> str:
    """Return `text` without colors, control characters, and bidi controls; newlines and tabs stay."""
    return _UNSAFE.sub("\ufffd", click.unstyle(text.replace("\r\n", "\n")))


def plain_file(text: str) -> str:
    """Return `text` for a file: without colors and control characters, but with bidi controls."""
    return _CONTROL.sub("\ufffd", click.unstyle(text.replace("\r\n", "\n")))


def short_path(path: str) -> str:
    """Return `path` with `~` for the user's home directory."""
    for home in (os.path.expanduser("~"), os.path.realpath(os.path.expanduser("~"))):
        if len(home) > 1 and path.startswith(home + os.sep):
            return f"~{path[len(home) :]}"
    return path


def escaped(line: str) -> str:
    """Return a line of JSON with the same value that is safe on a terminal."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def styled(text: str, **style: Any) -> str:
    """Return `text`, made safe, in the color or weight of `click.style`; unstyled with `NO_COLOR`.

    `click.echo` removes the style where stdout is not a terminal. `rich` would cost every command 0.04 s.
    """
    return plain(text) if os.environ.get("NO_COLOR") else click.style(plain(text), **style)


# Printing


def echo(text: str = "", columns: int = 0, below: int = 0, **style: Any) -> None:
    """Print `text`, made safe and styled; on a terminal, break lines longer than `columns`, if given.

    What follows in a broken line is indented by `below`.
    """
    text = plain(text)
    if columns and sys.stdout.isatty():
        filler = textwrap.TextWrapper(
            columns, subsequent_indent=" " * below, break_long_words=False, break_on_hyphens=False
        )
        text = "\n".join(map(filler.fill, text.split("\n")))
    click.echo(styled(text, **style) if style else text)


def json_line(value: Any) -> str:
    """Return `value` as one line of JSON that stdout can encode and that is safe on a terminal."""
    import msgspec

    is_unicode = str(sys.stdout.encoding).lower().startswith("utf")
    return escaped(json.dumps(value, ensure_ascii=not is_unicode, default=msgspec.to_builtins))


def print_fields(fields: Mapping[str, str]) -> None:
    """Print a line for each field: its name, padded to the longest name, and its text."""
    for line in field_lines(fields):
        echo(line, width(), below=max(map(len, fields)) + 2)


def field_lines(fields: Mapping[str, str]) -> list[str]:
    """Return the lines of `print_fields`, made safe."""
    columns = max(map(len, fields)) + 2
    return [plain(f"{name:<{columns}}{text}") for name, text in fields.items()]


def print_table(
    rows: Iterable[Sequence[str]], headers: Sequence[str] = (), numbers: Sequence[int] = ()
) -> None:
    """Print the lines of `table`."""
    for line in table(rows, headers, numbers):
        click.echo(line)


def table(
    rows: Iterable[Sequence[str]], headers: Sequence[str] = (), numbers: Sequence[int] = ()
) -> list[str]:
    """Return `rows` as lines in columns, made safe. Columns in `numbers` are right-aligned."""
    safe = [[plain(cell) for cell in row] for row in ([headers] if headers else []) + list(rows)]
    widths = [max(map(cells, column)) for column in zip(*safe, strict=True)]
    lines = []
    for row in safe:
        line = ""
        for column, (cell, columns) in enumerate(zip(row, widths, strict=True)):
            space = " " * (columns - cells(cell))
            line += f"{space}{cell}  " if column in numbers else f"{cell}{space}  "
        lines.append(line.rstrip())
    return lines


def column(head: str, values: Iterable[str], most: int) -> list[str]:
    """Return a head and `values`, made safe, and cut or filled to one width of at most `most` columns."""
    texts = [head, *map(plain, values)]
    columns = min(most, max(map(cells, texts)))
    return [pad(text, columns) for text in texts]


def lines_between(
    left: Sequence[Sequence[str]], right: Sequence[Sequence[str]], columns: int,
    middle: Callable[[int], Sequence[str]],
) -> list[str]:
    """Return lines of `columns` columns: the columns `left` and `right`, dim, around a wide one.

    `middle` gets the room for the wide one, and returns its lines, styled.
    """
    room = columns - sum(2 + max(map(cells, side)) for side in (*left, *right))
    lines = []
    for number, text in enumerate(middle(room)):
        before = [styled("  ".join(side[number] for side in left), dim=True)] if left else []
        after = styled("  ".join(side[number] for side in right).rstrip(), dim=True)
        lines.append("  ".join([*before, text, after]))
    return lines


def labels_below(head: str, labels: Iterable[str]) -> Callable[[int], list[str]]:
    """Return the wide column of `lines_between`: a head and bold labels."""

    def middle(room: int) -> list[str]:
        shown = (styled(pad(plain(label), room), bold=True) for label in labels)
        return [styled(pad(head, room), dim=True), *shown]

    return middle


def as_svg(console: Console, title: str) -> str:
    """Return as an SVG what a recording console of rich printed. The picture loads nothing."""
    picture = console.export_svg(title=title, unique_id="memkit")
    # rich names a font on a foreign server, which would learn of the reader.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


# Numbers


def format_size(count: int) -> str:
    """Return a number of bytes as users read it: `812 bytes`, `3.4 MB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return plural(count, "byte")


def format_duration(seconds: float) -> str:
    """Return a time span in its largest unit: `3 days`, `1 minute`, `12 seconds`."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return plural(int(seconds // length), unit)
    return plural(max(0, int(seconds)), "second")


def format_estimate(usd: float | None) -> str:
    """Return an estimated price in two significant digits."""
    if usd is None:
        return "price unknown"
    digits = 2 if usd >= 0.1 or not usd else 1 - math.floor(math.log10(usd))
    return f"about ${usd:.{digits}f}"


def format_cost(total: Total) -> str:
    """Return what calls cost; a call without a known price is never reported as free."""
    if total.unpriced == total.calls:
        return "unknown"
    known = f"${total.usd:.4f}" if total.usd < 1 else f"${total.usd:.2f}"
    return f"{known} + {total.unpriced} unknown" if total.unpriced else known


# Questions


def confirm(question: str, yes: bool) -> None:
    """Return if the user agrees, or agreed with `--yes`. Raise `MemkitError`; `click.Abort` on Ctrl-C."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise MemkitError(
            "this needs confirmation, but there is no terminal to ask on; run it in a terminal of your own"
        )
    if not click.confirm(plain(question), err=True):
        raise MemkitError("stopped, because you answered no")


def user_agrees(question: str, default: bool = False) -> bool:
    """Return the user's answer to a question; False where there is no terminal to ask on."""
    return sys.stdin.isatty() and click.confirm(plain(question), default=default, err=True)
