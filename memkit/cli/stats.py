"""`memkit stats`: numbers, and charts whose shades work without color; without Unicode they are ASCII."""

from __future__ import annotations

import os
from calendar import month_abbr
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command, day_named
from memkit.cli.output import echo, format_cost, format_size, plain, print_fields, print_table
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from memkit.stats import FileCount, Stats, Week

FILES = 10
"""The number of files to show."""

PATH_CHARACTERS = 60
"""The length of a path in the picture; a longer path loses its start."""

SHADES = "·░▒▓█"
BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_SHADES, ASCII_BLOCKS = ".-+*#", " .-+*#"
MARGIN = 4
WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "")


@command("stats")
@click.option("--all-projects", is_flag=True, help="Count the memories of all projects.")
@click.option("--since", metavar="DAY", help="From this day on: 2026-11-20, 3m, last monday.")
@click.option(
    "--png", type=click.Path(dir_okay=False), metavar="FILE",
    help="Also draw a picture (needs matplotlib).",
)  # fmt: skip
def stats_command(context: Context, all_projects: bool, since: str | None, png: str | None) -> None:
    """Show statistics of the memory: days, turns, words, use, cost, size, a calendar, and the busiest files.

    \b
      memkit stats --since 3m
      memkit stats --all-projects --png memory.png
    """
    from memkit.stats import gather

    first = day_named(since)
    stats = gather(context.home, context.project, first, all_projects=all_projects)
    for line in stats.problems:
        context.say(line)
    if png is not None:
        _draw(stats, png)
        context.say(f"wrote the picture to {png}")
    if context.as_json:
        context.print_json(_as_dict(stats))
        return
    _print(stats)


def _draw(stats: Stats, path: str) -> None:
    from memkit.files import write_durably
    from memkit.stats import draw

    title = f"{_name(stats)}: {plural(len(stats.tally.days), 'day')}, {plural(stats.tally.turns, 'turn')}"
    full_name = _namer(stats)

    def name(file: FileCount) -> str:
        path = full_name(file)
        return path if len(path) <= PATH_CHARACTERS else f"…{path[1 - PATH_CHARACTERS :]}"

    data = draw(stats.tally, title, stats.tally.files(FILES), name)
    try:
        write_durably(os.path.abspath(path), data)
    except OSError as error:
        raise MemkitError(f"cannot write the picture {path}: {error.strerror or error}") from error


def _name(stats: Stats) -> str:
    if len(stats.projects) == 1:
        return plain(stats.projects[0].root)
    return plural(len(stats.projects), "project")


def _namer(stats: Stats) -> Callable[[FileCount], str]:
    """Return a function that names a file: by its path in one project, or in full for several projects."""
    if len(stats.projects) == 1:
        return lambda file: plain(file.path)
    return lambda file: plain(os.path.join(file.root, file.path))


def _as_dict(stats: Stats) -> dict[str, Any]:
    from dataclasses import asdict

    tally = stats.tally
    by_day = [
        {
            "day": day,
            "turns": one.turns,
            "words": one.words,
            "bullets": one.bullets,
            "sessions": len(one.sessions),
        }
        for day, one in sorted(tally.days.items())
    ]
    return {
        "projects": [project.root for project in stats.projects],
        "since": stats.since.isoformat() if stats.since else None,
        "days": len(by_day),
        "turns": tally.turns,
        "words": tally.words,
        "sessions": tally.sessions,
        "bullets": tally.bullets,
        "searches": stats.usage.searches,
        "pointers": {"given": stats.usage.given, "followed": stats.usage.followed},
        "counted_since": stats.usage.first,
        "calls": asdict(stats.calls),
        "bytes": stats.bytes,
        "by_day": by_day,
        "hours": [tally.hours[hour] for hour in range(24)],
        "files": [file._asdict() for file in tally.files(FILES)],
        "problems": list(stats.problems),
    }


def _print(stats: Stats) -> None:
    print_fields(_lines(stats))
    if not stats.tally.turns:
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print()
    console.print(_calendar(console, stats.tally.turns_by_day, stats.since))
    console.print()
    console.print(_hour_line(console, stats.tally.hours))
    files = stats.tally.files(FILES)
    if files:
        name = _namer(stats)
        rows = [(f"{file.edited:,}", f"{file.mentioned:,}", name(file)) for file in files]
        echo()
        print_table(rows, ("edited", "mentioned", "file"), numbers=(0, 1))


def _lines(stats: Stats) -> dict[str, str]:
    tally, usage = stats.tally, stats.usage
    days = sorted(tally.days)
    span = "" if not days else f", {days[0]}" if len(days) == 1 else f", {days[0]} to {days[-1]}"
    calls = "none"
    if stats.calls.calls:
        cost = format_cost(stats.calls)
        calls = f"{plural(stats.calls.calls, 'call')}, {stats.calls.tokens:,} tokens, {cost}"
    return {
        "projects" if len(stats.projects) > 1 else "project": _name(stats),
        "memory": f"{plural(len(days), 'day')}{span}",
        "said": f"{plural(tally.turns, 'turn')} in {plural(tally.sessions, 'session')}, "
        f"{plural(tally.words, 'word')}",
        "summaries": plural(tally.bullets, "bullet"),
        "searches": f"{usage.searches:,}{_since(usage.first)}",
        "pointers": f"{usage.given:,} shown, {usage.followed:,} followed{_since(usage.first)}",
        "models": calls,
        "disk": _sizes(stats, "memory", "archive", "index"),
        "program": _sizes(stats, "models", "environment"),
    }


def _sizes(stats: Stats, *names: str) -> str:
    return ", ".join(f"{name} {format_size(stats.bytes[name])}" for name in names)


def _since(first: float | None) -> str:
    """Return a note on what the counts cover: events are not kept forever, and not by project."""
    if first is None:
        return ""
    return f" (all projects, since {date.fromtimestamp(first).isoformat()})"


def _calendar(console: Console, counts: Mapping[str, int], since: date | None) -> Text:
    """Return the weeks up to the newest day, at most a year or the width of the terminal.

    `counts` is by day (ISO). Days before `since` stay blank.
    """
    from rich.text import Text

    from memkit.stats import LEVELS, WEEKS, bounds, level, weeks

    last = date.fromisoformat(max(counts))
    columns = max(1, min(WEEKS, console.width - MARGIN))
    # Python's calendar begins with the year 1.
    start = date.fromordinal(max(1, last.toordinal() - last.weekday() - 7 * (columns - 1)))
    shown = weeks(counts, max(start, since) if since else start, last)
    drawn = Text(no_wrap=True, overflow="crop")
    drawn.append(f"{' ' * MARGIN}{_months(shown)}\n")
    shades = ASCII_SHADES if console.options.ascii_only else SHADES
    styles = ["dim"] + ["green"] * (LEVELS - 1)
    limits = bounds(counts.values())
    for weekday, name in enumerate(WEEKDAYS):
        drawn.append(f"{name:<{MARGIN}}")
        for week in shown:
            count = week.counts[weekday]
            if count is None:
                drawn.append(" ")
            else:
                shade = level(count, limits)
                drawn.append(shades[shade], styles[shade])
        drawn.append("\n")
    drawn.append(f"{' ' * MARGIN}less ")
    for shade in range(LEVELS):
        drawn.append(shades[shade], styles[shade])
    drawn.append(" more turns")
    earlier = sum(day < start.isoformat() for day in counts)
    if earlier:
        drawn.append(f"; {plural(earlier, 'earlier day')} not shown")
    return drawn


def _months(shown: Sequence[Week]) -> str:
    """Return the line of month names, each above the week in which the month begins, where it fits."""
    line = ""
    for place, week in enumerate(shown):
        if week.month and (place > len(line) or not line) and place + 3 <= len(shown):
            line = f"{line:<{place}}{month_abbr[week.month]}"
    return line


def _hour_line(console: Console, hours: Mapping[int, int]) -> Text:
    """Return a column for each hour of the day, and the busiest hour."""
    from rich.text import Text

    steps = ASCII_BLOCKS if console.options.ascii_only else BLOCKS
    most = max(hours.values(), default=0) or 1
    # Rounded up, so that one turn is visible.
    columns = (steps[-(-hours.get(hour, 0) * (len(steps) - 1) // most)] for hour in range(24))
    drawn = Text(f"hours  {''.join(columns)}", no_wrap=True, overflow="crop")
    if hours:
        busiest = max(hours, key=lambda hour: (hours[hour], -hour))
        drawn.append(f"  most between {busiest}:00 and {busiest + 1}:00")
    drawn.append("\n       0     6     12    18")
    return drawn
