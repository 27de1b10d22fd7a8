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
from memkit.timeline.nodes import week_of
from memkit.timeline.tree import Timeline
from memkit.topics.graph import Turn, turns_of
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
    topic_of = topics.by_member() if topics is not None else {}
    turns = cache(lambda name: turns_of(timeline, name, announce))
    groups: dict[str, list[FileRow]] = {}
    for path in most:
        weekly: Counter[str] = Counter()
        for name, edits in days[path].items():
            weekly[_week(name)] += edits
        by_topic: Counter[str] = Counter()
        for turn in turns(_most(days[path])):
            if turn.id in topic_of:
                by_topic[topic_of[turn.id].id] += turn.edits[path]
        row: FileRow = {"path": path, "edits": weekly.total(), "weeks": dict(sorted(weekly.items()))}
        groups.setdefault(_most(+by_topic), []).append(row)
    labels = {topic.id: topic.label for topic in topic_of.values()}
    ordered = sorted(groups.items(), key=lambda one: (not one[0], -sum(row["edits"] for row in one[1])))
    rows = [row for own in groups.values() for row in own]
    marks = [(count, row["path"], week) for row in rows for week, count in row["weeks"].items()]
    largest: list[LargeMark] = []
    for edits, path, week in sorted(marks, key=lambda one: (-one[0], one[1:]))[:MOST_LARGEST]:
        day = _most({name: count for name, count in days[path].items() if _week(name) == week})
        title, outcome = _work(timeline, day, path, turns(day))
        largest.append({"path": path, "week": week, "edits": edits, "title": title, "outcome": outcome})
    return {
        "weeks": weeks,
        "groups": [{"topic": name, "label": labels.get(name, ""), "files": own} for name, own in ordered],
        "largest": largest,
        "all": len(days),
    }


def _work(timeline: Timeline, day: str, path: str, turns: list[Turn]) -> tuple[str, str]:
    """Return the title and the outcome of the work with most edits of a file on a day."""
    counts = {turn.id: turn.edits[path] for turn in turns}
    segments = timeline.segments_of(date.fromisoformat(day[:10]))
    work = max(segments, key=lambda one: sum(counts.get(turn, 0) for turn in one.turns))
    return work.title, work.outcome


def _week(name: str) -> str:
    return week_of(date.fromisoformat(name[:10]))


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
