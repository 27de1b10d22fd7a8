"""Statistics of a memory: what the journal, the ledger, the usage log, and the disk hold; and a picture."""

from __future__ import annotations

import heapq
import io
import os
import warnings
from bisect import bisect_right
from calendar import month_abbr
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit import anchors
from memkit.environment import install_command
from memkit.errors import JournalError, MemkitError
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.journal import Journal
from memkit.journal.day_file import DayFile
from memkit.journal.digest import read_turn
from memkit.llm.ledger import Ledger, Total, total
from memkit.paths import Home
from memkit.recall.usage import RecallUsage, usage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = 5
"""Level 0 is for a count of 0; the others are quartiles."""

WEEKS = 53
"""The number of weeks in a year, at most; 54 in a leap year that begins on a Sunday."""

MOST_YEARS = 20
"""The number of years in the picture; older ones are left out."""

COLORS = ("#ebedf0", "#9be9a8", "#40c463", "#30a14e", "#216e39")
"""The color of each level."""

_DOTS_AN_INCH = 120
_WIDTH = 11.0  # inches, as the heights are
_STRIP_HEIGHT = 1.7
_FILE_HEIGHT = 0.25
_HEAD_HEIGHT = 1.6


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

    `hours` counts turns by the hour (0 to 23) in which they began, if their heading has a time.
    """

    def __init__(self) -> None:
        self.days: dict[str, DayTotal] = {}
        self.hours: Counter[int] = Counter()
        self._mentioned: Counter[tuple[str, str]] = Counter()
        self._edited: Counter[tuple[str, str]] = Counter()

    def add(self, root: str, day: str, content: DayFile) -> None:
        """Add a day (an ISO date) of the project at `root`."""
        total = self.days.setdefault(day, DayTotal())
        for section in content.sections:
            if "turn" in section.pairs:
                total.turns += 1
                hour = section.minute[:2]
                if hour and int(hour) < 24:
                    self.hours[int(hour)] += 1
                read = read_turn(content.text(section))
                total.words += read.words
                for call in read.calls:
                    self._mentioned[root, call.path] += 1
                    self._edited[root, call.path] += call.is_edit
            elif "session" in section.pairs:
                total.sessions.add(section.pairs["session"])
                lines = content.lines[section.start + 1 : section.end]
                total.bullets += sum(map(_is_bullet, lines))

    @property
    def turns(self) -> int:
        """The number of turns."""
        return sum(day.turns for day in self.days.values())

    @property
    def words(self) -> int:
        """The number of words asked and answered."""
        return sum(day.words for day in self.days.values())

    @property
    def bullets(self) -> int:
        """The number of bullets in summaries."""
        return sum(day.bullets for day in self.days.values())

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
            FileCount(root, path, self._edited[root, path], mentioned)
            for (root, path), mentioned in self._mentioned.items()
        )
        return heapq.nsmallest(
            most, counts, key=lambda one: (-one.edited, -one.mentioned, one.path, one.root)
        )


def _is_bullet(line: str) -> bool:
    return line.startswith("- ") and "grip:" in line and "grip" in anchors.parse(line)


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
    home: Home, project: Project, since: date | None = None, *, all_projects: bool = False
) -> Stats:
    """Return the statistics of `project`, or of all indexed projects. Holds one day at a time in memory."""
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
                tally.add(each.root, day[:10], journal.day(day))
            except JournalError as error:  # the other days still count
                problems.append(f"not counted: {error}")
    calls = Ledger(home).calls(first)
    return Stats(
        tuple(projects),
        since,
        tally,
        total(call for call in calls if all_projects or call.project == project.root),
        usage(home, datetime.combine(since, time.min).timestamp() if since else 0.0),
        {
            "memory": sum(directory_bytes(one.memory) for one in projects),
            "archive": directory_bytes(home.archive),
            "index": directory_bytes(home.index),
            "models": directory_bytes(home.models),
            "environment": directory_bytes(home.environments),
        },
        tuple(problems),
    )


def _days(journal: Journal, first: str) -> Iterator[str]:
    for day in journal.days():
        try:
            date.fromisoformat(day[:10])
        except ValueError:  # 2026-13-45.md is the user's own file
            continue
        if day >= first:
            yield day


def directory_bytes(directory: str) -> int:
    """Return the size of all files below `directory`, without following links; unreadable ones count 0."""
    size = 0
    pending = [directory]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
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


def draw(
    tally: Tally, title: str, files: Sequence[FileCount], label: Callable[[FileCount], str]
) -> bytes:
    """Return a PNG of the calendar, the hours, and `files`, which `label` names.

    Raise `MemkitError` if matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MemkitError(
            "the picture needs matplotlib, which is not in memkit's environment; "
            f"run `{install_command('matplotlib')}`"
        ) from error
    counts = tally.turns_by_day
    years = sorted({date.fromisoformat(day).year for day in counts})[-MOST_YEARS:]
    heights = [_STRIP_HEIGHT] * len(years)
    heights.append(_HEAD_HEIGHT + _FILE_HEIGHT * len(files))
    figure = Figure(figsize=(_WIDTH, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(title, parse_math=False)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    limits = bounds(counts.values())
    for row, year in enumerate(years):
        _draw_year(figure.add_subplot(grid[row, :]), counts, year, limits)
    _draw_hours(figure.add_subplot(grid[-1, 0]), tally.hours)
    _draw_files(figure.add_subplot(grid[-1, 1]), files, label)
    made = io.BytesIO()
    with warnings.catch_warnings():
        # The font draws a box for a character that it lacks.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(made, format="png", dpi=_DOTS_AN_INCH)
    return made.getvalue()


def _draw_year(axes: Axes, counts: Mapping[str, int], year: int, limits: tuple[int, ...]) -> None:
    from matplotlib.colors import ListedColormap

    columns = weeks(counts, date(year, 1, 1), date(year, 12, 31))
    none = float("nan")
    levels = [
        [none if count is None else level(count, limits) for count in weekday]
        for weekday in zip(*(column.counts for column in columns), strict=True)
    ]
    axes.pcolormesh(
        levels, cmap=ListedColormap(COLORS), vmin=-0.5, vmax=LEVELS - 0.5, edgecolors="white",
        linewidth=1.5,
    )  # fmt: skip
    axes.set(aspect="equal", title=str(year), ylim=(7, 0), yticks=[0.5, 2.5, 4.5])
    axes.set_yticklabels(["Mon", "Wed", "Fri"])
    begun = [(place, column.month) for place, column in enumerate(columns) if column.month]
    axes.set_xticks([place + 0.5 for place, _ in begun])
    axes.set_xticklabels([month_abbr[month] for _, month in begun])
    _without_frame(axes)


def _draw_hours(axes: Axes, hours: Mapping[int, int]) -> None:
    axes.bar(range(24), [hours.get(hour, 0) for hour in range(24)], color=COLORS[-2])
    axes.set(title="turns by hour", xticks=range(0, 24, 6))
    _without_frame(axes)


def _draw_files(axes: Axes, files: Sequence[FileCount], label: Callable[[FileCount], str]) -> None:
    places = range(len(files))
    axes.barh(places, [file.mentioned for file in files], color=COLORS[1], label="mentioned")
    axes.barh(places, [file.edited for file in files], color=COLORS[-2], label="edited")
    axes.set(title="files", yticks=places)
    # A path with two dollar signs is not a formula.
    axes.set_yticklabels([label(file) for file in files], parse_math=False, fontsize="small")
    axes.invert_yaxis()
    if files:
        axes.legend(fontsize="small", frameon=False)
    _without_frame(axes)


def _without_frame(axes: Any) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
