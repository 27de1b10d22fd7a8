"""Statistics of a memory: what the journal, the ledger, the usage log, and the disk hold."""

from __future__ import annotations

import heapq
import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, NamedTuple, TypedDict
from urllib.parse import urlsplit

import memkit
from memkit.archive.archive import Archive
from memkit.doctor import Finding, open_subject
from memkit.files import entries_below
from memkit.hook.tally import full_tally
from memkit.index import known_projects
from memkit.ipc import spool
from memkit.llm.ledger import Call, Ledger, Total, by_project, total, totals
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.usage import RecallUsage, usage
from memkit.settings import LOCAL_PROVIDERS, is_server
from memkit.settings.load import Settings
from memkit.text import midnight, moment
from memkit.timeline.summary import Numbers
from memkit.timeline.tree import Timeline, open_timeline

SHOWN_DAYS = 90
"""The days of costs that are shown, the newest ones."""


class Counts(TypedDict):
    """The size of a memory. `entries` are those of the index: parts of turns, notes, bullets."""

    days: int
    sessions: int
    turns: int
    notes: int
    entries: int


class Sizes(TypedDict):
    """Bytes on the disk. Archive and index are those of all projects."""

    memory: int
    archive: int
    index: int


class IndexState(TypedDict):
    """Whether the index has every change of the files, and how many entries have no vector yet."""

    in_step: bool
    missing: int
    model: str


class LastTurn(TypedDict):
    """The last turn that was captured; `title` is that of its part of the session."""

    id: str
    session: str
    time: str
    title: str


@dataclass
class DayCost(Total):
    """The model calls of a day."""

    day: str = ""


@dataclass
class ModelCost(Total):
    """The calls of a model."""

    model: str = ""


class Cost(TypedDict):
    """The model calls of the memory home, as `memkit cost` counts them."""

    total: Total
    today: Total
    month: Total
    daily_tokens: int
    days: list[DayCost]
    models: list[ModelCost]


class MemoryOverview(TypedDict):
    """Sizes, the last turn, costs, and health.

    `captured` is when a hook last ran in the project. `sends` are the providers
    of vectors and the servers of the index that the settings name: what they get is not in the costs.
    `waiting` counts the events that are not captured yet, `failed` those that could not be.
    """

    version: str
    project: str
    off: bool
    first: str | None
    last: str | None
    counts: Counts
    bytes: Sizes
    index: IndexState
    last_turn: LastTurn | None
    captured: str | None
    sends: list[str]
    waiting: int
    failed: int
    cost: Cost
    health: list[Finding]


def overview(timeline: Timeline, home: Home, settings: Settings, index: Mapping[str, Any]) -> MemoryOverview:
    """Return the overview of the project of `timeline`.

    `index` is what `memkit.Memory.index_status` returns. Costs, waiting events, and most of the health are
    those of the whole memory home. The checks of health are those that the service runs every hour. Raise
    `MemkitError`.
    """
    from memkit.doctor.capture import last_events
    from memkit.doctor.checks import CHECKS, examine  # imports numpy

    counted = full_tally(home, timeline.project)
    hourly = [one for one in CHECKS if one.hourly]
    return {
        "version": memkit.__version__, "project": timeline.project.root, "off": timeline.project.is_off,
        "first": counted.first or None, "last": counted.day or None,
        "counts": {
            "days": counted.days, "sessions": counted.sessions, "turns": counted.turns,
            "notes": counted.notes, "entries": index["chunks"],
        },
        "bytes": {
            "memory": directory_bytes(timeline.project.memory),
            "archive": Archive(home).size().bytes,
            "index": directory_bytes(home.index),
        },
        "index": {"in_step": index["in_step"], "missing": index["missing"], "model": index["model"]},
        "last_turn": _last_turn(timeline), "captured": moment(last_events(home).get(timeline.project.root)),
        "sends": list(_sends(settings)), "waiting": len(spool.waiting(home)),
        "failed": len(spool.failed(home)),
        "cost": _cost(Ledger(home).calls(), settings.summarize.daily_tokens),
        "health": list(examine(open_subject(home, timeline.project), hourly)),
    }  # fmt: skip


def _sends(settings: Settings) -> Iterator[str]:
    embedding, uri = settings.embedding, settings.index.uri
    if embedding.provider not in (*LOCAL_PROVIDERS, "none"):
        yield urlsplit(embedding.base_url).hostname or embedding.provider
    if is_server(uri):
        yield urlsplit(uri).hostname or uri


def _last_turn(timeline: Timeline) -> LastTurn | None:
    for name in reversed(timeline.names):
        segments = timeline.segments_of(date.fromisoformat(name[:10]))
        for one in sorted(segments, key=lambda one: one.ends, reverse=True):
            if one.turns:
                time = f"{name[:10]} {one.ends}".strip()
                return {"id": one.turns[-1], "session": one.session, "time": time, "title": one.title}
    return None


def _cost(calls: list[Call], daily_tokens: int) -> Cost:
    today = date.today()
    days, models = totals(calls, "day"), totals(calls, "model")
    return {
        "total": total(calls),
        "today": days.get(today.isoformat(), Total()),
        "month": total(one for one in calls if one.day >= today.replace(day=1).isoformat()),
        "daily_tokens": daily_tokens,
        "days": [DayCost(**asdict(one), day=day) for day, one in sorted(days.items())[-SHOWN_DAYS:]],
        "models": [ModelCost(**asdict(one), model=name) for name, one in sorted(models.items())],
    }


logger = logging.getLogger(__name__)

LEVELS = 5
"""Level 0 is for a count of 0; the others are quartiles."""

WEEKS = 53
"""The number of weeks in a year, at most; 54 in a leap year that begins on a Sunday."""


class FileCount(NamedTuple):
    """The number of tool calls on a file, by its project's root and its path there: edits, and all calls."""

    root: str
    path: str
    edited: int
    mentioned: int


@dataclass(slots=True)
class DayTotal:
    """The content of one date in all projects."""

    turns: int = 0
    words: int = 0
    bullets: int = 0
    sessions: set[str] = field(default_factory=set)


class Tally:
    """The sum of any number of days. A session on two days, or in two projects, counts once.

    `words` are those asked and answered, `bullets` those of summaries. `hours` counts turns by the hour (0 to
    23) in which they began, if their heading has a time.
    """

    def __init__(self) -> None:
        self.days: dict[str, DayTotal] = {}
        self.turns = self.words = self.bullets = 0
        self.hours: Counter[int] = Counter()
        self._mentioned: Counter[tuple[str, str]] = Counter()
        self._edited: Counter[tuple[str, str]] = Counter()

    def add(self, root: str, day: str, numbers: Numbers) -> None:
        """Add a day file of the date `day` (ISO) of the project at `root`."""
        total = self.days.setdefault(day, DayTotal())
        for sum_of in (self, total):
            sum_of.turns += numbers.turns
            sum_of.words += numbers.words
            sum_of.bullets += numbers.bullets
        total.sessions.update(numbers.sessions)
        self.hours.update(numbers.hours)
        for path, (edited, mentioned) in numbers.files.items():
            self._mentioned[root, path] += mentioned
            self._edited[root, path] += edited

    @property
    def sessions(self) -> int:
        """The number of sessions."""
        return len(set().union(*(day.sessions for day in self.days.values())))

    @property
    def turns_by_day(self) -> dict[str, int]:
        """The number of turns of each day (ISO), oldest first."""
        return {day: total.turns for day, total in sorted(self.days.items())}

    def files(self, most: int) -> list[FileCount]:
        """Return the `most` files with the most edits; then by calls."""
        counts = (
            (-self._edited[key], -mentioned, key[1], key[0]) for key, mentioned in self._mentioned.items()
        )
        first = heapq.nsmallest(most, counts)
        return [FileCount(root, path, -edited, -mentioned) for edited, mentioned, path, root in first]


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of `projects` from the day `since` on (None: of all days).

    `usage`, and all `bytes` except those of the memory, count the whole memory home. `problems` are lines
    about days that cannot be read and do not count.
    """

    projects: tuple[Project, ...]
    since: date | None
    tally: Tally
    calls: Total
    usage: RecallUsage
    bytes: dict[str, int]
    problems: tuple[str, ...]


def gather(
    home: Home, project: Project, since: date | None = None, *, all_projects: bool = False,
    announce: Callable[[str], None] = logger.info,
) -> Stats:
    """Return the statistics of `project`, or of all indexed projects.

    `announce` gets a line about a long wait: the first time, all days are read.
    """
    projects = [project]
    if all_projects:
        projects = list(dict.fromkeys([project, *known_projects(home)]))
    sizes = {
        "memory": sum(directory_bytes(one.memory) for one in projects),
        "archive": directory_bytes(home.archive),
        "index": directory_bytes(home.index),
        "models": directory_bytes(home.models),
        "environment": directory_bytes(home.environments),
    }
    tally = Tally()
    problems: list[str] = []

    def note(problem: str) -> None:  # the other days still count
        problems.append(f"not counted: {problem}")

    first = since.isoformat() if since else ""
    for each in projects:
        for name, numbers in open_timeline(each, home, note, announce).numbers(first):
            tally.add(each.root, name[:10], numbers)
    calls = Ledger(home).calls(first)
    return Stats(
        tuple(projects), since, tally,
        total(calls if all_projects else (one for one in by_project(calls) if one.project == project.root)),
        usage(home, midnight(since) if since else 0.0), sizes, tuple(problems),
    )


def directory_bytes(directory: str) -> int:
    """Return the size of all files below `directory`, without following links; unreadable ones count 0."""
    size = 0
    for entry in entries_below(directory):
        with suppress(OSError):
            size += entry.stat(follow_symlinks=False).st_size
    return size


class Week(NamedTuple):
    """A column of the calendar: the count of each weekday, None outside of the span.

    `month` is the month (1 to 12) that begins in this week, or 0.
    """

    month: int
    counts: tuple[int | None, ...]


def weeks(counts: Mapping[str, int], first: date, last: date) -> list[Week]:
    """Return the weeks from `first` to `last`. Days (ISO) that are not in `counts` have 0."""
    found = []
    begin, end = first.toordinal(), last.toordinal()
    for monday in range(begin - first.weekday(), end + 1, 7):
        ordinals = range(monday, monday + 7)  # the last week of the year 9999 has no end
        days = [date.fromordinal(one) if begin <= one <= end else None for one in ordinals]
        month = next((day.month for day in days if day and day.day == 1), 0)
        numbers = (None if day is None else counts.get(day.isoformat(), 0) for day in days)
        found.append(Week(month, tuple(numbers)))
    return found


def bounds(counts: Iterable[int]) -> tuple[int, ...]:
    """Return the lowest counts of the levels 2, 3, …: the quartiles of all counts above 0."""
    some = sorted(count for count in counts if count > 0)
    if not some:
        return ()
    quarters = LEVELS - 1
    return tuple(some[len(some) * part // quarters] for part in range(1, quarters))


def level(count: int, limits: tuple[int, ...]) -> int:
    """Return the level of a count; `limits` are its `bounds`."""
    return 1 + bisect_right(limits, count) if count > 0 else 0
