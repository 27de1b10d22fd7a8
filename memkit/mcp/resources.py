"""The days and sessions of a memory as resources: `memkit://day/2026-11-20`, `memkit://session/8bb06550`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from memkit import anchors
from memkit.browse.names import find_entry
from memkit.errors import NotFoundError
from memkit.mcp.tools import QUOTED, cut
from memkit.memory import Memory
from memkit.text import one_line

SCHEME = "memkit://"
TYPE = "text/markdown"
MOST_DAYS, MOST_SESSIONS = 30, 20

TEMPLATES = {"A day": "memkit://day/{day}", "A session": "memkit://session/{session}"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A resource in the list."""

    uri: str
    name: str
    title: str


def known(memory: Memory) -> list[Listed]:
    """Return the newest days and sessions, newest first. The templates reach all others."""
    days = [
        Listed(f"{SCHEME}day/{day}", day, f"The day {day}")
        for day in reversed(memory.days[-MOST_DAYS:])
    ]
    sessions = [
        Listed(f"{SCHEME}session/{one.id}", one.id, one_line(one.title, 100))
        for one in islice(memory.sessions(), MOST_SESSIONS)
    ]
    return days + sessions


def read(uri: str, memory: Memory) -> str:
    """Return the Markdown of a day or session, marked as quotations. Raise `NotFoundError`, `MemkitError`."""
    kind, _, name = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or kind not in ("day", "session") or not name:
        known_kinds = ", ".join(TEMPLATES.values())
        raise NotFoundError(f"there is no resource {one_line(uri, 200)}; there are {known_kinds}")
    if kind == "day":
        text = memory.day(name) if name in memory.days else ""
    else:
        found = find_entry(memory.journal, name)
        text = found.markdown if found is not None and found.kind == "session" else ""
    if not text:
        raise NotFoundError(f"{memory.project.root} has no {kind} {one_line(name, 100)}")
    return cut(f"{QUOTED}\n\n{anchors.strip(text)}")
