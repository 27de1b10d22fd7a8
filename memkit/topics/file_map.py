"""The files that were edited most: by topic, and how often in each week.

Counts come from the timeline's cache. Only the busiest day of each file, and those of the largest weeks, are
read: for the topic of a file, and for what came of the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cache
from typing import TypedDict

from memkit.browse.git_marks import is_inside
from memkit.errors import JournalError
from memkit.journal.turn_parts import read_parts
from memkit.timeline.nodes import week_of
from memkit.timeline.summary import read_day
from memkit.timeline.tree import Timeline
from memkit.topics.topic_list import TopicList

MOST_WEEKS = 26
MOST_LARGEST = 10


class FileRow(TypedDict):
    """A file, and the number of its edits in each week (`2026-W47`)."""

    path: str
    edits: int
    weeks: dict[str, int]


class FileGroup(TypedDict):
    """The files of a topic; `topic` and `label` are "" for those of none."""

    topic: str
    label: str
    files: list[FileRow]


class LargeMark(TypedDict):
    """A week with many edits of a file: the title and the outcome of the work with most of them."""

    path: str
    week: str
    edits: int
    day: str
    turn: str
    title: str
    outcome: str


class FileMap(TypedDict):
    """The files that were edited most, by topic. `weeks` are all weeks in order; `all` counts the files."""

    weeks: list[str]
    groups: list[FileGroup]
    largest: list[LargeMark]
    all: int


def file_map(
    timeline: Timeline, topics: TopicList | None, limit: int, announce: Callable[[str], None]
) -> FileMap:
    """Return the `limit` files that were edited most in the last `MOST_WEEKS` weeks that hold something.

    `topics` is None if none were computed. A day that cannot be read is reported to `announce`.
    """
    weeks = _weeks(timeline)
    first = date.fromisocalendar(int(weeks[0][:4]), int(weeks[0][6:]), 1).isoformat() if weeks else ""
    days: dict[str, Counter[str]] = {}
    for name, numbers in timeline.numbers(first):
        for path, (edits, _) in numbers.files.items():
            if edits and is_inside(path):
                days.setdefault(path, Counter())[name] += edits
    most = sorted(days, key=lambda path: (-days[path].total(), path))[:limit]
    reader = _Days(timeline, topics, announce)
    groups: dict[str, list[FileRow]] = {}
    for path in most:
        counts: Counter[str] = Counter()
        for name, edits in days[path].items():
            counts[week_of(date.fromisoformat(name[:10]))] += edits
        row: FileRow = {"path": path, "edits": counts.total(), "weeks": dict(sorted(counts.items()))}
        groups.setdefault(reader.topic(path, _most(days[path])), []).append(row)
    rows = [row for own in groups.values() for row in own]
    marks = [(count, row["path"], week) for row in rows for week, count in row["weeks"].items()]
    largest = sorted(marks, key=lambda one: (-one[0], one[1:]))[:MOST_LARGEST]
    labels = {one.id: one.label for one in topics.topics} if topics is not None else {}
    ordered = sorted(groups.items(), key=lambda one: (not one[0], -sum(row["edits"] for row in one[1])))
    return {
        "weeks": weeks,
        "groups": [{"topic": name, "label": labels.get(name, ""), "files": own} for name, own in ordered],
        "largest": [reader.mark(path, week, edits, days[path]) for edits, path, week in largest],
        "all": len(days),
    }


def _weeks(timeline: Timeline) -> list[str]:
    """Return the names of all weeks up to the last entry's, at most `MOST_WEEKS`."""
    if not timeline.names:
        return []
    begin, end = (date.fromisoformat(name[:10]) for name in (timeline.names[0], timeline.names[-1]))
    begin = max(begin, end - timedelta(weeks=MOST_WEEKS - 1))
    monday = begin - timedelta(days=begin.weekday())
    return [week_of(monday + timedelta(days=number)) for number in range(0, (end - monday).days + 1, 7)]


def _most(counts: Mapping[str, int]) -> str:
    """Return the first of those with the largest count, or ""."""
    return min(counts, key=lambda name: (-counts[name], name), default="")


class _Days:
    def __init__(self, timeline: Timeline, topics: TopicList | None, announce: Callable[[str], None]) -> None:
        self._timeline = timeline
        self._announce = announce
        self._topic_of: dict[str, str] = {}
        if topics is not None:
            for one in topics.topics:
                members = topics.kept.topics[one.id].members if one.id in topics.kept.topics else ()
                self._topic_of.update(dict.fromkeys(members, one.id))
        self._day = cache(self._read_day)

    def topic(self, path: str, name: str) -> str:
        """Return the topic of most edits of a file on a day, or ""."""
        topics: Counter[str] = Counter()
        for turn, edits in self._day(name).items():
            topics[self._topic_of.get(turn, "")] += edits[path]
        del topics[""]
        return _most(+topics)

    def mark(self, path: str, week: str, edits: int, days: Mapping[str, int]) -> LargeMark:
        """Return what the work with most edits of a file in a week was."""
        name = _most({day: days[day] for day in days if week_of(date.fromisoformat(day[:10])) == week})
        counts = {turn: edits[path] for turn, edits in self._day(name).items() if edits[path]}
        works: dict[str, int] = {}
        segments = {one.id: one for one in self._timeline.segments_of(date.fromisoformat(name[:10]))}
        for one in segments.values():
            works[one.id] = sum(counts.get(turn, 0) for turn in one.turns)
        work = segments.get(_most(works))
        return {
            "path": path, "week": week, "edits": edits, "day": name[:10], "turn": _most(counts),
            "title": work.title if work else "", "outcome": work.outcome if work else "",
        }  # fmt: skip

    def _read_day(self, name: str) -> dict[str, Counter[str]]:
        """Return the edits of each turn of a day, by file."""
        try:
            content = read_day(self._timeline.journal, name)
        except JournalError as error:
            self._announce(str(error))
            return {}
        found = {}
        for section in content.sections:
            if "turn" in section.pairs:
                calls = read_parts(content.text(section)).file_calls
                found[section.pairs["turn"]] = Counter(call.path for call in calls if call.is_edit)
        return found
