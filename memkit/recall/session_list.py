"""The sessions of a project page by page, for a long memory: only the days of the page are read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile, islice
from typing import Any

from memkit.errors import MemkitError
from memkit.recall.history import SessionFilters, activity, past_sessions
from memkit.timeline.nodes import day_of
from memkit.timeline.tree import Timeline

_SEPARATOR = "~"


def list_sessions(
    timeline: Timeline, filters: SessionFilters, limit: int, after: str, announce: Callable[[str], None]
) -> dict[str, Any]:
    """Return at most `limit` sessions, the last active first, and `next`: `after` of the next page, or None.

    Raise `MemkitError` if `after` is none.
    """
    begin = tuple(after.split(_SEPARATOR, 2)) if after else ()
    if begin and (len(begin) != 3 or day_of(begin[0]) is None):
        raise MemkitError("`after` is the `next` of the page before")
    if filters.until:
        found = past_sessions(
            [timeline.project], filters, announce,
            find_days=lambda _: timeline.session_days(filters.since or "0001-01-01", filters.until),
        )  # fmt: skip
    else:
        first = begin[0][:10] if begin else ""
        found = past_sessions(
            [timeline.project], filters, announce, find_ending=lambda _: timeline.sessions_ending(first)
        )
    if begin:
        found = dropwhile(lambda one: activity(one) >= begin, found)
    page = list(islice(found, limit + 1))
    is_last = len(page) <= limit
    return {
        "sessions": [one.as_dict() for one in page[:limit]],
        "next": None if is_last else _SEPARATOR.join(activity(page[limit - 1])),
    }
