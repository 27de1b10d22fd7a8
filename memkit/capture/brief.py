"""What a session is told when it starts: that there is a memory, since when, and its newest entries.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re
from typing import Iterator, List, NamedTuple, Tuple

from memkit import anchors
from memkit.capture.fence import defuse
from memkit.project import Project

ANSWER_CHARACTERS = 280
"""How much of an entry's text is shown; the skill shows the rest."""

_DAY_FILE = re.compile(r"^\d{4}-\d{2}-\d{2}\.md$")
_LABEL = re.compile(r"^\*\*(Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)


class Entry(NamedTuple):
    """One remembered turn, or a note: its day, its heading ("14:02 Which port …"), the answer's start."""

    day: str
    heading: str
    answer: str


def days(project: Project) -> List[str]:
    """The remembered days as ISO dates, oldest first."""
    try:
        names = os.listdir(project.memory)
    except OSError:
        return []
    return sorted(name[:-3] for name in names if _DAY_FILE.match(name))


def session_brief(project: Project, limit: int) -> str:
    """The facts for a starting session, at most `limit` characters, cut between entries only."""
    known = days(project)
    if not known:
        return "memkit keeps a memory of this project from today on; it is empty so far."[:limit]
    span = known[0] if len(known) == 1 else "{} to {}".format(known[0], known[-1])
    text = (
        "memkit keeps a memory of this project in {}: {} ({}). "
        "The memkit:memory-recall skill searches all of it and drills down to the original exchanges."
    ).format(_place(project), "1 day" if len(known) == 1 else "{} days".format(len(known)), span)
    opening = "\nNewest entries, quoted from earlier sessions:\n<memory>\n"
    closing = "</memory>"
    room = limit - len(text) - len(opening) - len(closing)
    lines: List[str] = []
    for entry in newest_entries(project, known):
        line = "{} {}{}\n".format(
            entry.day, entry.heading, " -> " + entry.answer if entry.answer else ""
        )
        line = defuse(line, "memory")
        if len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    if not lines:
        return text[:limit]
    return text + opening + "".join(lines) + closing


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
        "memkit holds what was said and done in this project since {}; "
        "the memkit:memory-recall skill finds it when history would help."
    ).format(earlier[0])


def newest_entries(project: Project, known: List[str]) -> Iterator[Entry]:
    """The remembered turns and notes, newest first."""
    for day in reversed(known):
        try:
            with open(
                os.path.join(project.memory, day + ".md"), encoding="utf-8", errors="replace"
            ) as file:
                text = file.read()
        except OSError:  # deleted or unreadable since the listing: the other days still stand
            continue
        entries = [Entry(day, heading, _answer(body)) for heading, body in _turns(text)]
        for entry in sorted(entries, key=lambda entry: entry.heading[:5], reverse=True):
            yield entry


def _turns(text: str) -> Iterator[Tuple[str, str]]:
    """Heading and body of each turn and note; as in the journal, only anchors bound them."""
    heading, body = "", []  # type: Tuple[str, List[str]]
    for line in text.splitlines():
        found = anchors.parse(line) if line.startswith(("## ", "### ")) else {}
        is_entry = ("turn" if line.startswith("### ") else "note") in found
        if is_entry or (line.startswith("## ") and "session" in found):
            if heading:
                yield heading, "\n".join(body)
            heading, body = anchors.strip(line).lstrip("#").strip() if is_entry else "", []
        else:
            body.append(line)
    if heading:
        yield heading, "\n".join(body)


def _answer(body: str) -> str:
    """The start of the answer on one line, cut at a word."""
    parts = _LABEL.split(body)
    labelled = dict(zip(parts[1::2], parts[2::2]))  # noqa: B905 - strict is newer than 3.9
    text = " ".join((labelled.get("Answered") or labelled.get("Did") or "").split())
    if len(text) <= ANSWER_CHARACTERS:
        return text
    return text[: ANSWER_CHARACTERS - 2].rsplit(" ", 1)[0] + " …"
