"""The charts of `memkit stats` in a terminal. Shades work without color; without Unicode they are ASCII."""

from __future__ import annotations

from calendar import month_abbr
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from memkit.stats import LEVELS, WEEKS, Week, bounds, level, weeks

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_SHADES = "·░▒▓█"
_ASCII = ".-+*#"
_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = " .-+*#"
_MARGIN = 4
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "")


def calendar(console: Console, counts: Mapping[str, int], since: date | None) -> Text:
    """Return the weeks up to the newest day, at most a year or the width of the terminal.

    `counts` is by day (ISO). Days before `since` stay blank.
    """
    from rich.text import Text

    last = date.fromisoformat(max(counts))
    columns = max(1, min(WEEKS, console.width - _MARGIN))
    # Python's calendar begins with the year 1.
    start = date.fromordinal(max(1, last.toordinal() - last.weekday() - 7 * (columns - 1)))
    shown = weeks(counts, max(start, since) if since else start, last)
    drawn = Text(no_wrap=True, overflow="crop")
    drawn.append(f"{' ' * _MARGIN}{_months(shown)}\n")
    limits = bounds(counts.values())
    for weekday, name in enumerate(_WEEKDAYS):
        drawn.append(f"{name:<{_MARGIN}}")
        for week in shown:
            count = week.counts[weekday]
            _cell(console, drawn, None if count is None else level(count, limits))
        drawn.append("\n")
    drawn.append(f"{' ' * _MARGIN}less ")
    for each in range(LEVELS):
        _cell(console, drawn, each)
    drawn.append(" more turns")
    earlier = sum(day < start.isoformat() for day in counts)
    if earlier:
        days = "1 earlier day is" if earlier == 1 else f"{earlier:,} earlier days are"
        drawn.append(f"; {days} not shown")
    return drawn


def _cell(console: Console, drawn: Text, level_shown: int | None) -> None:
    if level_shown is None:
        drawn.append(" ")
        return
    shades = _ASCII if console.options.ascii_only else _SHADES
    drawn.append(shades[level_shown], "green" if level_shown else "dim")


def _months(shown: Sequence[Week]) -> str:
    """Return the line of month names, each above the week in which the month begins, where it fits."""
    line = ""
    for place, week in enumerate(shown):
        if week.month and (place > len(line) or not line) and place + 3 <= len(shown):
            line = f"{line:<{place}}{month_abbr[week.month]}"
    return line


def hour_line(console: Console, hours: Mapping[int, int]) -> Text:
    """Return a column for each hour of the day, and the busiest hour."""
    from rich.text import Text

    steps = _ASCII_BLOCKS if console.options.ascii_only else _BLOCKS
    most = max(hours.values(), default=0) or 1
    # Rounded up, so that one turn is visible.
    columns = (steps[-(-hours.get(hour, 0) * (len(steps) - 1) // most)] for hour in range(24))
    drawn = Text(f"hours  {''.join(columns)}", no_wrap=True, overflow="crop")
    if hours:
        busiest = max(hours, key=lambda hour: (hours[hour], -hour))
        drawn.append(f"  most between {busiest}:00 and {busiest + 1}:00")
    drawn.append("\n       0     6     12    18")
    return drawn


def file_table(rows: Iterable[tuple[str, int, int]]) -> Table:
    """Return a table of files: rows of name, number of edits, and number of tool calls."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("edited", justify="right")
    table.add_column("mentioned", justify="right")
    table.add_column("file", overflow="fold")
    for name, edited, mentioned in rows:
        table.add_row(f"{edited:,}", f"{mentioned:,}", name)
    return table
