"""Reads all there is to count: the journal day by day, the ledger, the events, the disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time

from memkit.errors import JournalError
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.journal.journal import Journal
from memkit.llm.ledger import Ledger, Total, total
from memkit.paths import Home
from memkit.recall import usage as events
from memkit.recall.usage import RecallUsage
from memkit.stats.day_count import count_day
from memkit.stats.sizes import sizes
from memkit.stats.tally import Tally


@dataclass(frozen=True, slots=True)
class Stats:
    """What the memory of `projects` adds up to, from the day `since` on (None: all).

    `usage`, and all `bytes` but those of the memory, are of the whole memory home. `problems` are lines on
    days that could not be read and are not counted.
    """

    projects: tuple[Project, ...]
    since: date | None
    tally: Tally
    calls: Total
    usage: RecallUsage
    bytes: dict[str, int]
    problems: tuple[str, ...]


def gather(
    home: Home, project: Project, since: date | None = None, *, all_projects: bool = False
) -> Stats:
    """Count the memory of `project`, or of all that have an index as well. One day at a time is in memory."""
    projects = [project]
    if all_projects:
        projects = list(dict.fromkeys([project, *known_projects(home)]))
    tally = Tally()
    problems = []
    first = since.isoformat() if since else ""
    for each in projects:
        journal = Journal(each)
        for day in _days(journal, first):
            try:
                tally.add(each.root, count_day(day[:10], journal.day(day)))
            except JournalError as error:  # the other days still stand
                problems.append(f"not counted: {error}")
    calls = Ledger(home).calls(first)
    return Stats(
        tuple(projects),
        since,
        tally,
        total(call for call in calls if all_projects or call.project == project.root),
        events.usage(home, datetime.combine(since, time.min).timestamp() if since else 0.0),
        sizes(home, projects),
        tuple(problems),
    )


def _days(journal: Journal, first: str) -> Iterator[str]:
    for day in journal.days():
        try:
            date.fromisoformat(day[:10])
        except ValueError:  # 2026-13-45.md is a person's
            continue
        if day >= first:
            yield day
