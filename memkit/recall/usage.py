"""What was shown, what was asked for then, and that something was searched for: a line each in
`log/events.jsonl`. Of a search the time alone, never the question.

`memkit status` and `memkit stats` count them.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import parse_json

MOST_BYTES = 1024 * 1024
"""A log that is longer becomes `events.jsonl.1`, in place of the one before."""


class RecallUsage(NamedTuple):
    """How often something was searched for, pointers were `given`, and one of them was `followed` by an
    expand. `first` is the time (seconds since the epoch) of the oldest event that is counted.
    """

    searches: int
    given: int
    followed: int
    first: float | None


def note(home: Home, event: str, ids: Sequence[str] = ()) -> None:
    """Add an event: `search`, or `pointers` or `expand` with the entries it is about. Raises `OSError`."""
    make_private_directory(home.log)
    path = home.events_file
    if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
        os.replace(path, path + ".1")
    line = json.dumps({"time": round(time.time(), 3), "event": event, "ids": list(ids)}) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
    try:
        os.write(
            descriptor, line.encode("ascii")
        )  # in one call: two processes do not mix their lines
    finally:
        os.close(descriptor)


def usage(home: Home, since: float = 0.0) -> RecallUsage:
    """What the log holds, from `since` (seconds since the epoch) on."""
    searches = given = followed = 0
    first: float | None = None
    waiting: list[list[str]] = []
    for event in _read(home):
        when = event.get("time")
        if isinstance(when, (int, float)):
            if when < since:
                continue
            first = when if first is None else min(first, when)
        elif since:
            continue
        ids = [name for name in event.get("ids", []) if isinstance(name, str)]
        if event.get("event") == "search":
            searches += 1
        elif event.get("event") == "pointers":
            given += 1
            waiting.append(ids)
        elif event.get("event") == "expand":
            rest = [own for own in waiting if not _names_one_of(ids, own)]
            followed += len(waiting) - len(rest)
            waiting = rest
    return RecallUsage(searches, given, followed, first)


def _names_one_of(asked: list[str], shown: list[str]) -> bool:
    """Whether an id that was asked for is the beginning of one that was shown, or goes on from it."""
    pairs = ((one, other) for one in asked for other in shown)
    return any(one and (one.startswith(other) or other.startswith(one)) for one, other in pairs)


def _read(home: Home) -> Iterator[dict[str, Any]]:
    for path in (home.events_file + ".1", home.events_file):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                value = parse_json(line)
            except ValueError:  # cut off by a full disk
                continue
            if isinstance(value, dict):
                yield value
