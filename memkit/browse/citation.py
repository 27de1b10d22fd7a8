"""Citations: the passage that proves a bullet of a summary, and the events around it.

A bullet in the memory ends with an anchor such as `<!-- grip:k3f9a1 turns:8ad3df7f -->`: `grip` is the id
of the citation, `turns` are the turns that prove the bullet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import TypedDict

from memkit import anchors
from memkit.browse.transcript import find_original, is_recorded
from memkit.bullets import EDITED, WrittenBullet, read_bullets, sentences
from memkit.conversation.turn import Message, MessageView
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.journal.day_file import DayFile
from memkit.journal.journal import Journal
from memkit.journal.markup import one_line, short_id
from memkit.journal.tool_lines import file_calls
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.projects.project import Project

EDITS_CHARACTERS = 400

_TERM = re.compile(r"[^\W_]{2,}(?:[./_-][^\W_]+)*")


class CitationView(TypedDict):
    """A `Citation` as JSON."""

    id: str
    bullet: str
    date: str
    session: str
    turns: list[str]
    verified: bool
    excerpt: str
    source: str
    place: int
    events: list[MessageView]


@dataclass(frozen=True, slots=True)
class Citation:
    """A bullet with its proof.

    `source` is where the excerpt comes from: "transcript", "archive", "journal" if only the digest is left,
    or "" if nothing is left. `events[place]` holds the excerpt; `place` is -1 if no event does.
    """

    id: str
    bullet: str
    day: str
    session: str
    turns: tuple[str, ...]
    is_verified: bool
    excerpt: str
    source: str
    events: tuple[Message, ...]
    place: int

    def as_dict(self) -> CitationView:
        """Return the citation as `memkit cite --json` prints it."""
        return {
            "id": self.id, "bullet": self.bullet, "date": self.day[:10], "session": self.session,
            "turns": list(self.turns), "verified": self.is_verified, "excerpt": self.excerpt,
            "source": self.source, "place": self.place,
            "events": [message.as_dict() for message in self.events],
        }


def find_citation(
    project: Project, home: Home, prefix: str, context: int, redact: Callable[[str], str], *,
    other_projects: bool = True,
) -> Citation:
    """Return the bullet whose citation id begins with `prefix`, with `context` events around its proof.

    All quoted text passes through `redact`. Without `other_projects`, read only sessions that memkit's own
    records assign to the project: a repository can bring bullets that name any session.

    Raise `NotFoundError`, `AmbiguousIdError`, and for damaged files `JournalError`, `ArchiveError`, or
    `TranscriptError`.
    """
    day, content, number, bullet = _find_bullet(Journal(project), prefix)
    above = [s for s in content.sections if s.start < number and "session" in s.pairs]
    session = above[-1].pairs["session"] if above else ""
    try:
        original = find_original(home, session)
    except AmbiguousIdError:  # somebody wrote an abbreviated session by hand
        original = None
    if original and not other_projects and not is_recorded(home, project, original.session):
        original = None
    messages = list(original.messages(redact)) if original else []
    texts = [
        (text, number)
        for number, message in enumerate(messages)
        if message.turn in bullet.turns
        for text in message.texts()
    ]
    excerpt, place = _best(bullet, texts)
    source = "archive" if original and original.archive else "transcript"
    sections = [anchors.strip(content.text(one)) for one in map(content.find_turn, bullet.turns) if one]
    if bullet.text.startswith(EDITED) and (edits := _edits(sections)):  # what was said may not name the files
        excerpt, place, source = edits, -1, "journal"
    elif place < 0:
        excerpt, _ = _best(bullet, [(one, 0) for one in sections])
        source = "journal" if excerpt else ""
    first = max(0, place - context)
    return Citation(
        id=bullet.id, bullet=bullet.text, day=day, session=session, turns=bullet.turns,
        is_verified=bullet.is_verified, excerpt=excerpt, source=source,
        events=tuple(messages[first : place + context + 1]) if place >= 0 else (),
        place=place - first if place >= 0 else -1,
    )


def _find_bullet(journal: Journal, prefix: str) -> tuple[str, DayFile, int, WrittenBullet]:
    found = {}
    for day in reversed(journal.days()) if prefix else ():
        if f"grip:{prefix}" not in journal.text(f"{day}.md"):  # reading is fast, parsing is not
            continue
        content = journal.day(day)
        for number, bullet in read_bullets(content.lines):
            if bullet.id.startswith(prefix):
                found[bullet.id] = day, content, number, bullet
    if not found:
        raise NotFoundError(
            f"no bullet in {journal.directory} has the citation {prefix!r}; `memkit expand` prints "
            "citations, and `memkit transcript --turn ID` shows the original of a turn"
        )
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise AmbiguousIdError(f"{prefix!r} matches several citations: {shown}")
    return next(iter(found.values()))


def _edits(sections: Iterable[str]) -> str:
    """Return the lines of the calls that edited files, on one line."""
    lines = (line for one in sections for line in read_parts(one).tools)
    edits = dict.fromkeys(line for line in lines if any(call.is_edit for call in file_calls(line)))
    return one_line(" · ".join(edits), EDITS_CHARACTERS)


def _best(bullet: WrittenBullet, texts: Iterable[tuple[str, int]]) -> tuple[str, int]:
    """Return the sentence of the numbered `texts` that proves a bullet, ("", -1) if there is none.

    It is the one that the model quoted. Without that, it has most in common with the bullet: a name or a
    number counts as much as six words; words of up to three letters do not count.
    """
    weights = {
        term.casefold(): int(len(term) > 3) if term.isalpha() else 6
        for term in _TERM.findall(bullet.text)
    }

    def weight(passage: tuple[str, int]) -> float:
        if bullet.proof and short_id(passage[0]) == bullet.proof:
            return inf
        terms = {term.casefold() for term in _TERM.findall(passage[0])}
        return sum(weights.get(term, 0) for term in terms)

    passages = ((passage, number) for text, number in texts for passage in sentences(text))
    return max(passages, key=weight, default=("", -1))
