"""A calendar of counts: a column a week, from Monday to Sunday, and five levels from nothing to most."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from datetime import date
from typing import NamedTuple

LEVELS = 5
"""The lowest stands for nothing at all."""

WEEKS = 53
"""That a year touches at most, but for one of 366 days that begins on a Sunday."""

_DAYS = 7


class Week(NamedTuple):
    """A column: the month (1 to 12) that begins in it, or 0, and for each weekday its count; None outside
    the span.
    """

    month: int
    counts: tuple[int | None, ...]


def weeks(counts: Mapping[str, int], first: date, last: date) -> list[Week]:
    """The weeks from that of `first` to that of `last`; days (ISO) that `counts` does not name have 0."""
    monday = first.toordinal() - first.weekday()
    return [
        _week(counts, start, first.toordinal(), last.toordinal())
        for start in range(monday, last.toordinal() + 1, _DAYS)
    ]


def _week(counts: Mapping[str, int], start: int, first: int, last: int) -> Week:
    """The week from the day `start`; days are ordinals, for a calendar's last week has no end."""
    month = 0
    found: list[int | None] = []
    for ordinal in range(start, start + _DAYS):
        if not first <= ordinal <= last:
            found.append(None)
            continue
        day = date.fromordinal(ordinal)
        month = day.month if day.day == 1 else month
        found.append(counts.get(day.isoformat(), 0))
    return Week(month, tuple(found))


def bounds(counts: Iterable[int]) -> tuple[int, ...]:
    """The counts from which the levels 2, 3, … begin: quartiles of what is not 0."""
    some = sorted(count for count in counts if count > 0)
    if not some:
        return ()
    quarters = LEVELS - 1
    return tuple(some[len(some) * part // quarters] for part in range(1, quarters))


def level(count: int, limits: tuple[int, ...]) -> int:
    """The level of a count among those of the `bounds` `limits`: 0 for nothing, the highest for most."""
    return 1 + bisect_right(limits, count) if count > 0 else 0
