"""Counts of searches, pointers, and expands: one line each in `log/events.jsonl`.

A search leaves its time only, never the question. `memkit status` and `memkit stats` count the lines.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import read_json_lines

MOST_BYTES = 1024 * 1024
"""A longer log becomes `events.jsonl.1` and replaces the previous one."""


class RecallUsage(NamedTuple):
    """The number of searches, of pointers `given`, and of pointers that an expand `followed`.

    `first` is the time of the oldest event that counts, in seconds since the epoch.
    """

    searches: int
    given: int
    followed: int
    first: float | None


def note(home: Home, event: str, ids: Sequence[str] = ()) -> None:
    """Log an event: `search`, or `pointers` or `expand` with the ids of its entries. Raise `OSError`."""
    make_private_directory(home.log)
    path = home.events_file
    if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
        os.replace(path, path + ".1")
    line = json.dumps({"time": round(time.time(), 3), "event": event, "ids": list(ids)}) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
    try:
        os.write(descriptor, line.encode("ascii"))  # one call: lines of two processes do not mix
    finally:
        os.close(descriptor)


def usage(home: Home, since: float = 0.0) -> RecallUsage:
    """Return the counts of the log from `since` (seconds since the epoch) on."""
    searches = given = followed = 0
    first: float | None = None
    open_pointers: list[list[str]] = []
    for event in _read(home):
        when = event.get("time")
        if not isinstance(when, (int, float)):
            when = None
        if since and (when is None or when < since):
            continue
        if when is not None:
            first = when if first is None else min(first, when)
        ids = [name for name in event.get("ids", []) if isinstance(name, str)]
        kind = event.get("event")
        if kind == "search":
            searches += 1
        elif kind == "pointers":
            given += 1
            open_pointers.append(ids)
        elif kind == "expand":
            rest = [shown for shown in open_pointers if not _share_id(ids, shown)]
            followed += len(open_pointers) - len(rest)
            open_pointers = rest
    return RecallUsage(searches, given, followed, first)


def _share_id(some: list[str], others: list[str]) -> bool:
    """Return whether an id in one list is a prefix of an id in the other."""
    pairs = ((one, other) for one in some for other in others)
    return any(one and (one.startswith(other) or other.startswith(one)) for one, other in pairs)


def _read(home: Home) -> Iterator[dict[str, Any]]:
    for path in (home.events_file + ".1", home.events_file):
        yield from read_json_lines(path)
