"""Days of any number of projects, added up."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from memkit.stats.day_count import DayCount


class FileCount(NamedTuple):
    """How often tools were called on a file: its project's root, its path there, how many calls edited it,
    and how many there were in all.
    """

    root: str
    path: str
    edited: int
    mentioned: int


@dataclass(slots=True)
class DayTotal:
    """What one date holds in all projects."""

    turns: int = 0
    words: int = 0
    bullets: int = 0
    sessions: set[str] = field(default_factory=set)


class Tally:
    """What days add up to. A session that goes on after midnight, or in two projects, is one."""

    def __init__(self) -> None:
        self.days: dict[str, DayTotal] = {}
        self.hours: Counter[int] = Counter()
        self._mentioned: Counter[tuple[str, str]] = Counter()
        self._edited: Counter[tuple[str, str]] = Counter()

    def add(self, root: str, count: DayCount) -> None:
        """Add a day of the project at `root`."""
        total = self.days.setdefault(count.day, DayTotal())
        total.turns += count.turns
        total.words += count.words
        total.bullets += count.bullets
        total.sessions |= count.sessions
        self.hours.update(count.hours)
        for path, calls in count.mentioned.items():
            self._mentioned[root, path] += calls
        for path, calls in count.edited.items():
            self._edited[root, path] += calls

    @property
    def turns(self) -> int:
        """Turns of all days."""
        return sum(day.turns for day in self.days.values())

    @property
    def words(self) -> int:
        """Words asked and answered."""
        return sum(day.words for day in self.days.values())

    @property
    def bullets(self) -> int:
        """Bullets of summaries."""
        return sum(day.bullets for day in self.days.values())

    @property
    def sessions(self) -> int:
        """Sessions, each once."""
        return len(set().union(*(day.sessions for day in self.days.values())))

    @property
    def turns_by_day(self) -> dict[str, int]:
        """How many turns each day (ISO) has, oldest day first."""
        return {day: total.turns for day, total in sorted(self.days.items())}

    def files(self, most: int) -> list[FileCount]:
        """The `most` files that were edited most often; of equals, those mentioned more often come first."""
        return heapq.nsmallest(most, self._files(), key=_rank)

    def _files(self) -> Iterator[FileCount]:
        for (root, path), mentioned in self._mentioned.items():
            yield FileCount(root, path, self._edited[root, path], mentioned)


def _rank(file: FileCount) -> tuple[int, int, str, str]:
    return -file.edited, -file.mentioned, file.path, file.root
