"""`memkit stats` and `memkit cost`.

The charts have shades that work without color; without Unicode they are ASCII.
"""

from __future__ import annotations

import io
import os
from calendar import month_abbr
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command, day_named, iso_day_named
from memkit.cli.output import (
    as_svg,
    echo,
    field_lines,
    format_cost,
    format_size,
    plain,
    print_fields,
    print_table,
    short_path,
    table,
)
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from memkit.stats import Stats, Week

FILES = 10
"""The number of files to show."""

PICTURE_COLUMNS = 80
"""The width of the picture."""

SHADES = "·░▒▓█"
BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_SHADES, ASCII_BLOCKS = ".-+*#", " .-+*#"
MARGIN = 4
BAR_COLUMNS = 24
WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "")


@command("stats")
@click.option("--all-projects", is_flag=True, help="Count the memories of all projects.")
@click.option("--since", metavar="DAY", help="From this day on: 2026-11-20, 3m, last monday.")
@click.option(
    "--svg", type=click.Path(dir_okay=False), metavar="FILE", help="Also write all of this as a picture."
)
def stats_command(context: Context, all_projects: bool, since: str | None, svg: str | None) -> None:
    """Show statistics of the memory: days, turns, words, use, cost, size, a calendar, and the busiest files.

    \b
      memkit stats --since 3m
      memkit stats --all-projects --svg memory.svg
    """
    from memkit.stats import gather

    first = day_named(since)
    stats = gather(context.home, context.project, first, all_projects=all_projects, announce=context.say)
    for line in stats.problems:
        context.say(line)
    if svg is not None:
        _draw(stats, svg)
        context.say(f"wrote the picture to {svg}")
    if context.as_json:
        context.print_json(_as_dict(stats))
        return
    _print(stats)


def _draw(stats: Stats, path: str) -> None:
    from rich.console import Console
    from rich.text import Text

    from memkit.files import write_durably

    console = Console(
        file=io.StringIO(), record=True, width=PICTURE_COLUMNS, force_terminal=True, no_color=False,
        color_system="truecolor", highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    for line in field_lines(_lines(stats)):
        console.print(Text(line))
    if stats.tally.turns:
        _print_charts(console, stats)
        for line in ("", *_file_lines(stats, PICTURE_COLUMNS)):
            console.print(Text(line))
    try:
        write_durably(os.path.abspath(path), as_svg(console, f"memkit stats: {_name(stats)}").encode())
    except OSError as error:
        raise MemkitError(f"cannot write the picture {path}: {error.strerror or error}") from error


def _name(stats: Stats) -> str:
    if len(stats.projects) == 1:
        return short_path(plain(stats.projects[0].root))
    return plural(len(stats.projects), "project")


def _as_dict(stats: Stats) -> dict[str, Any]:
    tally = stats.tally
    by_day = [
        {
            "day": day, "turns": one.turns, "words": one.words, "bullets": one.bullets,
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
        "pointers": stats.usage.pointers,
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
    _print_charts(console, stats)
    files = _file_lines(stats, console.width if console.is_terminal else None)
    if files:
        echo()
    for line in files:
        echo(line)


def _print_charts(console: Console, stats: Stats) -> None:
    console.print()
    console.print(_calendar(console, stats.tally.turns_by_day, stats.since))
    console.print()
    console.print(_hour_line(console, stats.tally.hours))


def _file_lines(stats: Stats, columns: int | None) -> list[str]:
    """Return the table of the busiest files. With `columns`, a longer path loses its start."""
    files = stats.tally.files(FILES)
    if not files:
        return []
    is_many = len(stats.projects) > 1
    names = [os.path.join(one.root, one.path) if is_many else one.path for one in files]
    paths = [plain(short_path(name)) for name in names]
    rows = [(f"{one.edited:,}", f"{one.mentioned:,}", path) for one, path in zip(files, paths, strict=True)]
    lines = table(rows, ("edited", "mentioned", "file"), numbers=(0, 1))
    if columns is None:
        return lines
    room = columns - lines[0].index("file")
    cut = [(*counts, path if len(path) <= room else f"…{path[1 - room :]}") for *counts, path in rows]
    return table(cut, ("edited", "mentioned", "file"), numbers=(0, 1))


def _lines(stats: Stats) -> dict[str, str]:
    from memkit.search.usage import pointers_line

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
        "pointers": pointers_line(usage.pointers) + _since(usage.first),
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
    line = ""
    for place, week in enumerate(shown):
        if week.month and (place > len(line) or not line) and place + 3 <= len(shown):
            line = f"{line:<{place}}{month_abbr[week.month]}"
    return line


def _hour_line(console: Console, hours: Mapping[int, int]) -> Text:
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


@command("cost")
@click.option(
    "--by", type=click.Choice(["day", "project", "model", "purpose"]), default="day", show_default=True,
    help="What to group the calls by.",
)  # fmt: skip
@click.option("--since", metavar="DAY", help="Only calls from this day on (default: all).")
def cost_command(context: Context, by: str, since: str | None) -> None:
    """Show the cost of memkit's model calls: tokens, and dollars where prices are known.

    \b
      memkit cost --by model
      memkit cost --since 2w
    """
    from memkit.llm.ledger import Ledger, total, totals

    ledger = Ledger(context.home)
    calls = ledger.calls(iso_day_named(since))
    groups = totals(calls, by)
    everything = total(calls)
    if context.as_json:
        rows = [{by: name, **asdict(one)} for name, one in groups.items()]
        context.print_json({"by": by, "groups": rows, "total": asdict(everything)})
        return
    if not calls:
        echo("No model was called.")
        return
    most = max(one.tokens for one in groups.values()) or 1
    print_table(
        [
            (
                name, f"{one.calls:,}", f"{one.tokens_in:,}", f"{one.tokens_out:,}", format_cost(one),
                "#" * round(BAR_COLUMNS * one.tokens / most),
            )
            for name, one in sorted(groups.items())
        ],
        (by, "calls", "read", "written", "cost", ""),
        numbers=(1, 2, 3, 4),
    )  # fmt: skip
    settings = context.settings().summarize
    echo(
        f"{plural(everything.calls, 'call')}, {everything.tokens:,} tokens, {format_cost(everything)}. "
        f"Today {ledger.today().tokens:,} of {settings.daily_tokens:,} tokens."
    )
