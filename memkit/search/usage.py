"""Counts of searches, pointers, and expands: one line each in `log/events.jsonl`.

A search leaves its time and a hash of its session, never the question. `memkit status` and `memkit stats`
count the lines.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.projects.project import digest16
from memkit.state import read_json_lines

MOST_BYTES = 1024 * 1024
"""A longer log becomes `events.jsonl.1` and replaces the previous one."""


PROMPT = "prompt"


class _Given(NamedTuple):
    ids: list[str]
    session: str
    kind: str


class RecallUsage(NamedTuple):
    """The number of searches, of times that pointers were `given`, and of those that were `followed`.

    Pointers are followed by an expand of one of them, or a search in the same session. `kinds` has both
    numbers for each kind of pointers. `first` is the time of the oldest event that counts, in seconds since
    the epoch.
    """

    searches: int
    given: int
    followed: int
    first: float | None
    kinds: dict[str, tuple[int, int]]

    @property
    def pointers(self) -> dict[str, Any]:
        """The counts of pointers, as `memkit status --json` prints them."""
        kinds = {kind: {"given": one[0], "followed": one[1]} for kind, one in self.kinds.items()}
        return {"given": self.given, "followed": self.followed, "kinds": kinds}


def pointers_line(pointers: dict[str, Any]) -> str:
    """Return `RecallUsage.pointers` in words: `12 shown, 3 followed (edit 2/1, prompt 10/2)`."""
    line = f"{pointers['given']:,} shown, {pointers['followed']:,} followed"
    if pointers["kinds"].keys() <= {PROMPT}:
        return line
    kinds = (f"{kind} {one['given']:,}/{one['followed']:,}" for kind, one in pointers["kinds"].items())
    return f"{line} ({', '.join(kinds)})"


def note(home: Home, event: str, ids: Sequence[str] = (), *, kind: str = "", session: str = "") -> None:
    """Log an event: `search`, or `pointers` or `expand` with the ids of its entries. Raise `OSError`.

    `kind` is that of `Operations.moment` or `prompt`, for pointers. `session` is in the log as a hash only.
    """
    make_private_directory(home.log)
    path = home.events_file
    if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
        os.replace(path, path + ".1")
    value = {"time": round(time.time(), 3), "event": event, "ids": list(ids)}
    value |= {"kind": kind} if kind else {}
    value |= {"session": digest16(session)} if session else {}
    line = json.dumps(value) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
    try:
        os.write(descriptor, line.encode("ascii"))  # one call: lines of two processes do not mix
    finally:
        os.close(descriptor)


def usage(home: Home, since: float = 0.0) -> RecallUsage:
    """Return the counts of the log from `since` (seconds since the epoch) on."""
    searches = 0
    first: float | None = None
    given: Counter[str] = Counter()
    followed: Counter[str] = Counter()
    waiting: list[_Given] = []
    for event in _read(home):
        when = event.get("time")
        if not isinstance(when, (int, float)):
            when = None
        if since and (when is None or when < since):
            continue
        if when is not None:
            first = when if first is None else min(first, when)
        ids = [name for name in event.get("ids", []) if isinstance(name, str)]
        session = str(event.get("session", ""))
        kind = event.get("event")
        if kind == "search":
            searches += 1
        elif kind == "pointers":
            waiting.append(_Given(ids, session, str(event.get("kind", PROMPT))))
            given[waiting[-1].kind] += 1
        if kind in ("search", "expand"):
            is_same = kind == "search" and bool(session)
            left = []
            for one in waiting:
                if (is_same and one.session == session) or _share_id(ids, one.ids):
                    followed[one.kind] += 1
                else:
                    left.append(one)
            waiting = left
    kinds = {kind: (count, followed[kind]) for kind, count in sorted(given.items())}
    return RecallUsage(searches, given.total(), followed.total(), first, kinds)


def _share_id(some: list[str], others: list[str]) -> bool:
    pairs = ((one, other) for one in some for other in others)
    return any(one and (one.startswith(other) or other.startswith(one)) for one, other in pairs)


def _read(home: Home) -> Iterator[dict[str, Any]]:
    for path in (home.events_file + ".1", home.events_file):
        yield from read_json_lines(path)
