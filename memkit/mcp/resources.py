"""The days and sessions of a memory as resources: `memkit://day/2026-11-20`, `memkit://session/8bb06550`."""

from __future__ import annotations

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
KINDS = ("day", "session")

TEMPLATES = [
    {"uriTemplate": f"{SCHEME}{kind}/{{{kind}}}", "name": f"A {kind}", "mimeType": TYPE} for kind in KINDS
]


def known(memory: Memory) -> list[dict[str, str]]:
    """Return the newest days and sessions as the protocol describes them. The templates reach all others."""
    named = [("day", day, f"The day {day}") for day in reversed(memory.days[-MOST_DAYS:])]
    newest = islice(memory.sessions(), MOST_SESSIONS)
    named += [("session", one.id, one_line(one.title, 100)) for one in newest]
    return [
        {"uri": f"{SCHEME}{kind}/{name}", "name": name, "title": title, "mimeType": TYPE}
        for kind, name, title in named
    ]


def read(uri: str, memory: Memory) -> str:
    """Return the Markdown of a day or session, marked as quotations. Raise `NotFoundError`, `MemkitError`."""
    kind, _, name = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or kind not in KINDS or not name:
        there = ", ".join(one["uriTemplate"] for one in TEMPLATES)
        raise NotFoundError(f"there is no resource {one_line(uri, 200)}; there are {there}")
    if kind == "day":
        text = memory.journal.day(name).render() if name in memory.days else ""
    else:
        found = find_entry(memory.journal, name)
        text = found.markdown if found is not None and found.kind == "session" else ""
    if not text:
        raise NotFoundError(f"{memory.project.root} has no {kind} {one_line(name, 100)}")
    return cut(f"{QUOTED}\n\n{anchors.strip(text)}")
