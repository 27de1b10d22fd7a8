"""`memkit stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command, day_named
from memkit.cli.output import format_cost, format_size, plain, plural
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memkit.stats import FileCount, Stats

FILES = 10
"""The number of files to show."""

PATH_CHARACTERS = 60
"""The length of a path in the picture; a longer path loses its start."""


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
    import os

    from memkit.files import write_durably
    from memkit.stats import draw

    title = f"{_name(stats)}: {plural(len(stats.tally.days), 'day')}, {plural(stats.tally.turns, 'turn')}"
    name = _namer(stats)
    data = draw(
        stats.tally, title, stats.tally.files(FILES), lambda file: _end(name(file), PATH_CHARACTERS)
    )
    try:
        write_durably(os.path.abspath(path), data)
    except OSError as error:
        raise MemkitError(f"cannot write the picture {path}: {error.strerror or error}") from error


def _end(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"…{text[1 - limit :]}"


def _name(stats: Stats) -> str:
    if len(stats.projects) == 1:
        return plain(stats.projects[0].root)
    return plural(len(stats.projects), "project")


def _namer(stats: Stats) -> Callable[[FileCount], str]:
    """Return a function that names a file: by its path in one project, or in full for several projects."""
    import os

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
    for name, line in _lines(stats).items():
        click.echo(f"{name:<11}{line}")
    if not stats.tally.turns:
        return
    from rich.console import Console

    from memkit.cli.charts import calendar, file_table, hour_line

    console = Console(highlight=False, markup=False, emoji=False)
    console.print()
    console.print(calendar(console, stats.tally.turns_by_day, stats.since))
    console.print()
    console.print(hour_line(console, stats.tally.hours))
    files = stats.tally.files(FILES)
    if files:
        called = _namer(stats)
        console.print()
        console.print(file_table((called(file), file.edited, file.mentioned) for file in files))


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
        "recall": f"{usage.searches:,} {'search' if usage.searches == 1 else 'searches'}, "
        f"pointers {plural(usage.given, 'time')} given, {usage.followed:,} followed"
        + _since(usage.first),
        "models": calls,
        "disk": ", ".join(f"{name} {format_size(size)}" for name, size in stats.bytes.items()),
    }


def _since(first: float | None) -> str:
    """Return the start of the count: events are not kept forever, and not by project."""
    from datetime import datetime

    if first is None:
        return ""
    return f" (all projects, since {datetime.fromtimestamp(first).date().isoformat()})"
