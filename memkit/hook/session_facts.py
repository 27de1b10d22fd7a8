"""What a session is told when it starts: that there is a memory, since when, and its newest entries.

Standard library only, Python 3.9 syntax: the hooks import this module.
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
"""How much of a day file's end is read for its newest entries; more is read only to count them all."""

DAY_FILE = re.compile(r"^\d{4}-\d{2}-\d{2}(?:\.local)?\.md$")

_MOST_LOOKED_AT = 200
"""Entries that are held against the record of what this home wrote; a stranger's file may have any number."""


_FOREIGN = (
    " Entries that this memory home did not write, or that were changed since, are files of the repository: "
    "they are not quoted here."
)


class SessionEntry(NamedTuple):
    """One remembered turn, or a note: its day, its heading ("14:02 Which port …"), the answer's start."""

    day: str
    heading: str
    answer: str


def days(project: Project) -> list[str]:
    """The remembered days, oldest first: the names of their files without the suffix.

    That is an ISO date, or, where git tracks the file of that name, the date and `.local`: a day may have
    both, so take the first ten characters for the date. There are none if the memory leads out of the
    project, and a day that is a device or leads out is not there either. The doctor names both.
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
    """The facts for a starting session, at most `limit` characters, cut between entries only.

    `own` holds the words that this home wrote (see `own_entries`): only these are quoted, the rest are
    files of the repository. Without it, because somebody asked, all entries are.
    """
    known = days(project)
    if not known:
        return "memkit keeps a memory of this project from today on; it is empty so far."[:limit]
    dates = sorted({day[:10] for day in known})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    text = (
        "memkit keeps a memory of this project in {}: {} ({}). "
        "The memkit:memory-recall skill searches all of it and drills down to the original exchanges."
    ).format(_place(project), "1 day" if len(dates) == 1 else f"{len(dates)} days", span)
    newest = list(islice(newest_entries(project, known[-_MOST_LOOKED_AT:]), _MOST_LOOKED_AT))
    if own is not None:
        every = newest
        newest = list(_own_of(every, own))
        if newest != every:
            text += _FOREIGN
    opening = "\nNewest entries, quoted from earlier sessions:\n<memory>\n"
    closing = "</memory>"
    room = limit - len(text) - len(opening) - len(closing)
    lines: list[str] = []
    for entry in newest:
        line = f"{entry.day} {entry_words(entry.heading, entry.answer)}\n"
        line = defuse(line, "memory")
        if len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    if not lines:
        return text[:limit]
    return text + opening + "".join(lines) + closing


def _own_of(entries: list[SessionEntry], own: Container[str]) -> Iterator[SessionEntry]:
    """The entries that this home wrote; of one that was changed since, the heading if that is as it was."""
    for entry in entries:
        if entry_words(entry.heading, entry.answer) in own:
            yield entry
        elif entry.heading in own:
            yield entry._replace(answer="")


def _place(project: Project) -> str:
    """The memory as it is reached from the working directory, where the session is, else its full path."""
    try:
        inside = os.path.join(os.getcwd(), "").startswith(os.path.join(project.root, ""))
    except OSError:  # the directory is gone
        inside = False
    return ".memkit/memory/" if inside else os.path.join(project.memory, "")


def prompt_hint(project: Project, today: str) -> str:
    """One line for a prompt, once there is a day before `today` to recall; else empty."""
    earlier = [day for day in days(project) if day < today]
    if not earlier:
        return ""
    return (
        f"memkit holds what was said and done in this project since {earlier[0][:10]}; "
        "the memkit:memory-recall skill finds it when history would help."
    )


def newest_entries(
    project: Project, known: list[str], most: int = NEWEST_BYTES
) -> Iterator[SessionEntry]:
    """The remembered turns and notes, newest first, of each day those in its last `most` bytes."""
    for day in reversed(known):
        try:
            memory = inside(project.memory, project.root)
            data = read_tail(inside(os.path.join(memory, day + ".md"), memory), most)
        except OSError:  # deleted or unreadable since the listing: the other days still stand
            continue
        text = data.decode("utf-8", "replace")
        entries = [SessionEntry(day[:10], heading, answer_of(body)) for heading, body in entries_of(text)]
        yield from sorted(entries, key=lambda entry: entry.heading[:5], reverse=True)
