"""Count what a memory holds, for people: at a session's start, in the status line, and for commands.

The counts of each day file are kept in `run/tally/`, so that only changed files are read again.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, NamedTuple

from memkit import anchors
from memkit.errors import MemkitError
from memkit.files import make_private_directory, read_head, write_durably
from memkit.hook.entries import HOOK_BYTES, OwnEntries, days, heading_words, read_days
from memkit.paths import Home
from memkit.projects.project import Project, digest16, sha256
from memkit.state import parse_json, read_state
from memkit.text import one_line, plural, printable

VERSION = 2

DAY_BYTES = 4 * 1024 * 1024
"""Bytes to read of one day file. A repository may bring files of any size."""

MOST_BYTES = 8 * 1024 * 1024
"""Bytes that a hook reads at once. The next count reads on."""

MOST_SESSIONS = 1000
"""Sessions to count in one day."""

TITLE_CHARACTERS = 60
TITLE_BYTES = 64 * 1024
"""Bytes at the end of the newest day in which to look for a title."""


class Tally(NamedTuple):
    """The number of sessions, days, turns, and notes, and the times of the first and the newest entry.

    These are an ISO day, and a `day` and a `minute`, "" if there is none. There are more sessions, turns, and
    notes if the count is not complete yet.
    """

    sessions: int = 0
    days: int = 0
    turns: int = 0
    notes: int = 0
    first: str = ""
    day: str = ""
    minute: str = ""
    is_complete: bool = True

    @property
    def words(self) -> str:
        """The number of sessions: `31 sessions`."""
        return plural(self.sessions, "session") if self.is_complete else f"{self.sessions:,}+ sessions"


class _Day(NamedTuple):
    """The counts of a day file as they are kept, with its modification time in ns and its size."""

    changed: int
    size: int
    sessions: list[str]
    minute: str
    turns: int
    notes: int


def tally(home: Home, project: Project, most: int | None = None) -> Tally:
    """Count what a memory holds; read at most about `most` bytes, and leave out unreadable files."""
    project = project.for_counting()
    path = os.path.join(home.run, "tally", digest16(project.root) + ".json")
    known = _read(path)
    names = days(project)
    found: dict[str, _Day] = {}
    room = MOST_BYTES if most is None else most
    for name in reversed(names):
        file = project.day_file(name)
        try:
            status = os.stat(file)
            kept = known.get(name)
            if kept is not None and kept[:2] == (status.st_mtime_ns, status.st_size):
                found[name] = kept
            elif room > 0:
                data = read_head(project.real_file(file), DAY_BYTES)
                room -= len(data)
                found[name] = _Day(status.st_mtime_ns, status.st_size, *_count(data))
        except OSError:  # removed or replaced since the listing
            continue
    if found != known:
        try:
            make_private_directory(os.path.dirname(path))
            write_durably(path, json.dumps({"version": VERSION, "days": found}).encode("ascii"))
        except OSError as error:  # counting again takes longer, and the doctor reports such a home
            import logging  # hooks rarely need it

            logging.getLogger(__name__).info("the counts of %s are not kept: %s", project.root, error)
    counted = found.values()
    dates = sorted({name[:10] for name in names})
    newest = dates[-1] if dates else ""
    return Tally(
        sessions=len({session for one in counted for session in one.sessions}),
        days=len(dates),
        turns=sum(one.turns for one in counted),
        notes=sum(one.notes for one in counted),
        first=dates[0] if dates else "",
        day=newest,
        minute=max((one.minute for name, one in found.items() if name[:10] == newest), default=""),
        is_complete=len(found) == len(names),
    )


def full_tally(home: Home, project: Project) -> Tally:
    """Count all that a project's memory holds, however long that takes."""
    return tally(home, project, sys.maxsize)


def _count(data: bytes) -> tuple[list[str], str, int, int]:
    sessions: dict[str, None] = {}
    last, turns, notes = "", 0, 0
    for line in data.split(b"\n"):
        if not line.startswith((b"## ", b"### ")) or b"<!--" not in line:
            continue
        heading = line.decode("utf-8", "replace")
        pairs = anchors.parse(heading)
        minute = heading.lstrip("# ")[:5]
        if pairs and minute.isascii() and minute[2:3] == ":" and (minute[:2] + minute[3:]).isdigit():
            last = max(last, minute)
        turns += "turn" in pairs
        notes += "note" in pairs
        if "session" in pairs and len(sessions) < MOST_SESSIONS:
            sessions[pairs["session"][: anchors.VALUE_CHARACTERS]] = None
    return list(sessions), last, turns, notes


def _read(path: str) -> dict[str, _Day]:
    """Return the counts as they were kept; none if there are none, or they are damaged."""

    def convert(value: dict[str, Any]) -> dict[str, _Day]:
        found = {name: _Day(*one) for name, one in value["days"].items()}
        for one in found.values():
            numbers = (one.changed, one.size, one.turns, one.notes)
            words = (one.minute, *one.sessions)
            if not all(isinstance(n, int) for n in numbers) or not all(isinstance(w, str) for w in words):
                raise TypeError("not the counts of a day")
        return found

    try:
        return read_state(path, VERSION, convert) or {}
    except (MemkitError, OSError):  # counted again
        return {}


def greeting(home: Home, project: Project, now: float) -> str:
    """Return the line for a session's start, once a day in each project; "" if none is due.

    It names no title that this home did not write. Raise `OSError`.
    """
    mark = os.path.join(home.run, "tally", digest16(project.root) + ".greeted")
    try:
        before = os.stat(mark).st_mtime
    except FileNotFoundError:
        before = 0.0
    if _day(before) == _day(now) or os.path.exists(_excluded_mark(home, project.root)):
        return ""
    counted = tally(home, project)
    if not counted.sessions:
        return ""
    with open(mark, "wb"):
        os.utime(mark, (now, now))
    line = f"memkit: {counted.words} on {plural(counted.days, 'day')}"
    given = _pointers_since(home, project, before) if before else 0
    if given:
        line += f", {plural(given, 'pointer')} since {_day(before)}"
    title = _last_title(project, OwnEntries(home, project.root, HOOK_BYTES))
    return f"{line}; last: {counted.day} {title or counted.minute}".rstrip()


def note_excluded(home: Home, root: str, is_excluded: bool) -> None:
    """Record whether the settings exclude the project at `root`: hooks cannot read them. Raise `OSError`."""
    mark = _excluded_mark(home, root)
    if is_excluded == os.path.exists(mark):
        return
    if is_excluded:
        make_private_directory(os.path.dirname(mark))
        open(mark, "wb").close()
    else:
        os.unlink(mark)


def history_file(home: Home, session: str) -> str:
    """The path of the pointers that `session` got."""
    name = sha256()(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return os.path.join(home.pointer_history, name + ".json")


def pointers_given(path: str, root: str = "") -> int:
    """Return the number of pointers in a file of `run/shown/`, of the project at `root` if given."""
    try:
        with open(path, "rb") as file:
            value = parse_json(file.read())
        return len(value["ids"]) if not root or value.get("root") == root else 0
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none yet, or damaged
        return 0


def _pointers_since(home: Home, project: Project, since: float) -> int:
    try:
        with os.scandir(home.pointer_history) as entries:
            paths = [one.path for one in entries if one.stat().st_mtime > since]
    except FileNotFoundError:
        return 0
    return sum(pointers_given(path, project.root) for path in paths)


def _last_title(project: Project, own: OwnEntries) -> str:
    """Return the last heading of the newest day that has one of this home's words, else ""."""
    project = project.for_counting()
    for _, text in read_days(project, days(project)[-1:], TITLE_BYTES):
        for line in reversed(text.split("\n")):
            if line.startswith("## ") and "session" in anchors.parse(line):
                words = heading_words(line)
                if words in own:
                    return one_line(printable(words), TITLE_CHARACTERS)
    return ""


def _excluded_mark(home: Home, root: str) -> str:
    return os.path.join(home.run, "tally", digest16(root) + ".excluded")


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(when))
