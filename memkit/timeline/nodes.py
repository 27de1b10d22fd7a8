"""The names of the timeline's nodes: `2026`, `2026-11`, `2026-W47`, `2026-11-20`.

Each day has one week, each week the month of its Thursday, and each month a year. So the first days of
November may be in the last week of October: a node has whole weeks, and the sums of its children are its own.
The year is the year of the ISO week.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

ALL, YEAR, MONTH, WEEK, DAY, SEGMENT, TURN, NOTE = (
    "all", "year", "month", "week", "day", "segment", "turn", "note"
)  # fmt: skip
"""The kinds of nodes, from the whole memory down. A note stands next to the segments of its day."""

_NAME = re.compile(r"(?P<year>[0-9]{4})(?:-W(?P<week>[0-9]{2})|-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?)?")
_TO_THURSDAY = 3


class Span(NamedTuple):
    """A node that is a period: its kind, its name, and its first and last day."""

    kind: str
    name: str
    first: date
    last: date

    def holds(self, day: date) -> bool:
        """Whether a day is in the period."""
        return self.first <= day <= self.last


EVERYTHING = Span(ALL, "", date.min, date.max)
"""The root of the tree."""


def parse_span(name: str) -> Span | None:
    """Return the period that a name stands for, or None if it is no such name, or no day of the calendar."""
    if not name:
        return EVERYTHING
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        year = int(match["year"])
        if match["day"]:
            day = date.fromisoformat(name)
            return Span(DAY, name, day, day)
        if match["week"]:
            monday = date.fromisocalendar(year, int(match["week"]), 1)
            return Span(WEEK, name, monday, _later(monday, 6))
        if match["month"]:
            month = int(match["month"])
            after = date(year, month + 1, 1) if month < 12 else _new_year(year + 1)
            return Span(MONTH, name, _first_monday(date(year, month, 1)), _last_sunday(after))
        return Span(YEAR, name, _first_monday(date(year, 1, 1)), _last_sunday(_new_year(year + 1)))
    except (ValueError, OverflowError):
        return None


def spans_of(first: date, last: date, today: date) -> list[Span]:
    """Return the years, months, or weeks that a period consists of, oldest first; none if it has parts of
    them.

    A period that ends `today` ends with the year, month, or week that today is in. The months of a period are
    those of the timeline, which have whole weeks.
    """
    def ends(day: date) -> bool:
        return last == day or last == today <= day

    if (first.month, first.day) == (1, 1) and ends(date(last.year, 12, 31)):
        return _named(f"{year:04d}" for year in range(first.year, last.year + 1))
    if first.day == 1 and ends(_later(_later(last.replace(day=1), 31).replace(day=1), -1)):
        months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
        return _named(f"{one // 12:04d}-{one % 12 + 1:02d}" for one in months)
    if first.weekday() == 0 and last > first and ends(_later(last, 6 - last.weekday())):
        return _named(week_of(_later(first, days)) for days in range(0, (last - first).days + 1, 7))
    return []


def parts_of(span: Span) -> list[Span]:
    """Return the months of a year, or the weeks of a month, oldest first."""
    if span.kind == YEAR:
        return _named(f"{span.name}-{month:02d}" for month in range(1, 13))
    if span.kind == MONTH:
        days = range(0, (span.last - span.first).days, 7)
        return _named(week_of(_later(span.first, one)) for one in days)
    return []


def _named(names: Iterable[str]) -> list[Span]:
    return [span for name in names if (span := parse_span(name)) is not None]


def week_of(day: date) -> str:
    """Return the name of the ISO week of a day."""
    year, week, _ = day.isocalendar()
    return f"{year:04d}-W{week:02d}"


def month_of(day: date) -> str:
    """Return the name of the month that the Thursday of the day's week is in."""
    thursday = _later(day, _TO_THURSDAY - day.weekday())
    return f"{thursday.year:04d}-{thursday.month:02d}"


def path_of(day: date) -> tuple[str, str, str, str]:
    """Return the names of the year, month, and week of a day, and its own."""
    month = month_of(day)
    return month[:4], month, week_of(day), day.isoformat()


def parent_of(span: Span) -> str:
    """Return the name of the node above a period: "" for a year."""
    if span.kind in (ALL, YEAR):
        return ""
    levels = {MONTH: 0, WEEK: 1, DAY: 2}
    day = span.first if span.kind == DAY else _later(span.first, _TO_THURSDAY)
    return path_of(day)[levels[span.kind]]


def day_of(name: str) -> date | None:
    """Return the day of a day file by its name, or None if the calendar has no such day."""
    with suppress(ValueError):
        return date.fromisoformat(name[:10])
    return None


def _first_monday(first: date) -> date:
    thursday = _later(first, (_TO_THURSDAY - first.weekday()) % 7)
    return _later(thursday, -_TO_THURSDAY)


def _last_sunday(after: date | None) -> date:
    return date.max if after is None else _later(_first_monday(after), -1)


def _new_year(year: int) -> date | None:
    return date(year, 1, 1) if year <= date.max.year else None


def _later(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return date.max if days > 0 else date.min
