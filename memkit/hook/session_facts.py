"""Facts for a starting session: that there is a memory, its days, and its newest entries.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator
from itertools import islice
from typing import NamedTuple

from memkit.files import inside, read_tail
from memkit.hook.own_entries import answer_of, entries_of, entry_words
from memkit.hook.project import Project
from memkit.text import defuse

NEWEST_BYTES = 1024 * 1024
"""Bytes of a day file's end to read for its newest entries."""

DAY_FILE = re.compile(r"^\d{4}-\d{2}-\d{2}(?:\.local)?\.md$")

_MOST_ENTRIES = 200
"""Entries to check against the record of own entries; a stranger's file may have any number."""

_FOREIGN = (
    " Entries that this memory home did not write, or that were changed since, are files of the repository: "
    "they are not quoted here."
)
_BEGIN = "\nNewest entries, quoted from earlier sessions:\n<memory>\n"
_END = "</memory>"


class SessionEntry(NamedTuple):
    """One remembered turn or note: its day, its heading ("14:02 Which port …"), the answer's start."""

    day: str
    heading: str
    answer: str


def days(project: Project) -> list[str]:
    """Return the remembered days, oldest first: the names of their files without the suffix.

    That is an ISO date, or the date and `.local` where git tracks the file of that name. A day may have
    both, so take the first ten characters for the date. Leave out devices and links out of the memory;
    return nothing if the memory itself leads out of the project. The doctor reports both.
    """
    try:
        memory = inside(project.memory, project.root)
        with os.scandir(memory) as entries:
            found = [entry for entry in entries if DAY_FILE.match(entry.name)]
        return sorted(entry.name[:-3] for entry in found if _is_day(entry, memory))
    except OSError:
        return []


def _is_day(entry: os.DirEntry[str], memory: str) -> bool:
    if entry.is_file(follow_symlinks=False):
        return True
    try:
        return entry.is_symlink() and os.path.isfile(inside(entry.path, memory))
    except OSError:
        return False


def session_facts(project: Project, limit: int, own: Container[str] | None = None) -> str:
    """Return the facts for a starting session, at most `limit` characters, cut between entries only.

    `own` contains the words that this home wrote (see `own_entries`): quote only these, since the rest are
    files of the repository. None, when a user asked for the facts, quotes all entries.
    """
    remembered = days(project)
    if not remembered:
        return "memkit keeps a memory of this project from today on; it is empty so far."[:limit]
    dates = sorted({day[:10] for day in remembered})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    text = (
        "memkit keeps a memory of this project in {}: {} ({}). "
        "The memkit:memory-recall skill searches all of it and drills down to the original exchanges."
    ).format(_place(project), "1 day" if len(dates) == 1 else f"{len(dates)} days", span)
    room = limit - len(text) - len(_BEGIN) - len(_END)
    lines: list[str] = []
    is_foreign_named = False
    for entry in islice(newest_entries(project, remembered[-_MOST_ENTRIES:]), _MOST_ENTRIES):
        quoted = entry if own is None else _own_part(entry, own)
        if quoted != entry and not is_foreign_named:
            is_foreign_named = True
            text += _FOREIGN
            room -= len(_FOREIGN)
        if quoted is None:
            continue
        line = defuse(f"{quoted.day} {entry_words(quoted.heading, quoted.answer)}\n", "memory")
        if len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    while lines and room < 0:  # the remark on foreign entries took it
        room += len(lines.pop())
    if not lines:
        return text[:limit]
    return text + _BEGIN + "".join(lines) + _END


def _own_part(entry: SessionEntry, own: Container[str]) -> SessionEntry | None:
    """Return an entry if this home wrote it; its heading alone if only the answer changed; else None."""
    if entry_words(entry.heading, entry.answer) in own:
        return entry
    return entry._replace(answer="") if entry.heading in own else None


def _place(project: Project) -> str:
    """Return the memory's path, relative where the working directory is the project's."""
    try:
        is_inside = os.path.join(os.getcwd(), "").startswith(os.path.join(project.root, ""))
    except OSError:  # the directory is gone
        is_inside = False
    return ".memkit/memory/" if is_inside else os.path.join(project.memory, "")


def prompt_hint(project: Project, today: str) -> str:
    """Return a line for a prompt, once there is a day before `today` to recall; else ""."""
    earlier = [day for day in days(project) if day < today]
    if not earlier:
        return ""
    return (
        f"memkit holds what was said and done in this project since {earlier[0][:10]}; "
        "the memkit:memory-recall skill finds it when history would help."
    )


def newest_entries(
    project: Project, names: list[str], most: int = NEWEST_BYTES
) -> Iterator[SessionEntry]:
    """Yield the turns and notes of these days, newest first; of each day those in its last `most` bytes."""
    for day in reversed(names):
        try:
            memory = inside(project.memory, project.root)
            data = read_tail(inside(os.path.join(memory, day + ".md"), memory), most)
        except OSError:  # deleted or unreadable since the listing; go on with the other days
            continue
        text = data.decode("utf-8", "replace")
        entries = sorted(entries_of(text), key=lambda entry: entry[0][:5], reverse=True)
        for heading, body in entries:
            yield SessionEntry(day[:10], heading, answer_of(body))
