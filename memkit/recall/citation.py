"""The proof of a bullet: the passage of its turns that fits it best, and what happened around that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memkit import anchors
from memkit.claude_code.exchange import Message
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.hook.project import Project
from memkit.journal.day_file import DayFile
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.recall.transcript import find_original, is_told_of

EXCERPT_CHARACTERS = 200

_TERM = re.compile(r"[^\W_]{2,}(?:[./_-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Citation:
    """A bullet with its proof.

    `source` says where the excerpt is from: "transcript", "archive", "journal" if only the digest is
    left, or "" if nothing is; `place` is the number of the event that holds it among `events`, -1 if
    none does.
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

    def as_dict(self) -> dict[str, Any]:
        """As `memkit grip --json` prints it."""
        return {
            "id": self.id,
            "bullet": self.bullet,
            "date": self.day[:10],
            "session": self.session,
            "turns": list(self.turns),
            "verified": self.is_verified,
            "excerpt": self.excerpt,
            "source": self.source,
            "place": self.place,
            "events": [message.as_dict() for message in self.events],
        }


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a bullet stands in the journal."""

    id: str
    day: str
    content: DayFile
    number: int
    pairs: dict[str, str]


def find_grip(
    project: Project,
    home: Home,
    prefix: str,
    context: int,
    redact: Callable[[str], str],
    *,
    other_projects: bool = True,
) -> Citation:
    """The bullet whose grip's id begins with `prefix`, with `context` events before and after its proof.

    What was said passes `redact`. Without `other_projects` no session is read that memkit's own records
    do not count to the project: a repository can bring bullets that name any.

    Raises `NotFoundError`, `AmbiguousIdError`, and for what is damaged `JournalError`, `ArchiveError`
    or `TranscriptError`.
    """
    line = _find_line(Journal(project), prefix)
    bullet = anchors.strip(line.content.lines[line.number]).strip().removeprefix("- ")
    turns = tuple(filter(None, line.pairs.get("turns", "").split(",")))
    session = _session_of(line)
    messages: list[Message] = []
    source = ""
    try:
        original = find_original(home, session)
    except AmbiguousIdError:  # a session that someone wrote in short
        original = None
    if original is not None and not other_projects:
        original = original if is_told_of(home, project, original.session) else None
    if original is not None:
        source = "transcript" if original.archive is None else "archive"
        messages = list(original.messages(redact))
    place, excerpt = _best_event(bullet, messages, turns)
    if place < 0:
        texts = [line.content.text(s) for turn in turns if (s := line.content.find_turn(turn))]
        excerpt = best_passage(bullet, texts)
        source = "journal" if excerpt else ""
    first = max(0, place - context)
    events = messages[first : place + context + 1] if place >= 0 else []
    return Citation(
        id=line.id,
        bullet=bullet,
        day=line.day,
        session=session,
        turns=turns,
        is_verified="check" not in line.pairs,
        excerpt=excerpt,
        source=source,
        events=tuple(events),
        place=place - first if place >= 0 else -1,
    )


def _find_line(journal: Journal, prefix: str) -> _Line:
    found = {line.id: line for line in _lines(journal, prefix)} if prefix else {}
    if not found:
        raise NotFoundError(f"no bullet in {journal.directory} has the grip {prefix!r}")
    if len(found) > 1:
        raise AmbiguousIdError(f"the grip {prefix!r} fits several: {', '.join(sorted(found)[:5])}")
    return next(iter(found.values()))


def _lines(journal: Journal, prefix: str) -> Iterator[_Line]:
    """The bullets whose grip begins with `prefix`, newest day first."""
    for day in reversed(journal.days()):
        content = journal.day(day)
        for number, text in enumerate(content.lines):
            if f"grip:{prefix}" in text:
                pairs = anchors.parse(text)
                if pairs.get("grip", "").startswith(prefix):
                    yield _Line(pairs["grip"], day, content, number, pairs)


def _session_of(line: _Line) -> str:
    """The session of the heading above a bullet."""
    above = [s for s in line.content.sections if s.start < line.number and "session" in s.pairs]
    return above[-1].pairs["session"] if above else ""


def _best_event(bullet: str, messages: Sequence[Message], turns: Sequence[str]) -> tuple[int, str]:
    """The number of the message of these turns that fits best, and its passage; -1 if there is none."""
    texts = {
        number: "\n".join(message.texts())
        for number, message in enumerate(messages)
        if message.turn in turns
    }
    if not texts:
        return -1, ""
    best = max(texts, key=lambda number: _passage(bullet, texts[number])[0])
    return best, _passage(bullet, texts[best])[1]


def best_passage(bullet: str, texts: Sequence[str]) -> str:
    """The passage of up to `EXCERPT_CHARACTERS` that has most in common with `bullet`."""
    return max((_passage(bullet, text) for text in texts), default=(0, ""))[1]


def _passage(bullet: str, text: str) -> tuple[int, str]:
    """The passage of `text` that has most words of `bullet`, and what they weigh together."""
    weights = {term.casefold(): _weight(term) for term in _TERM.findall(bullet)}
    plain = " ".join(text.split())
    hits = [
        (match.start(), match.end(), match[0].casefold())
        for match in _TERM.finditer(plain)
        if match[0].casefold() in weights
    ]
    best, span = 0, (0, 0)
    first = 0
    for last, (_, end, _) in enumerate(hits):
        while end - hits[first][0] > EXCERPT_CHARACTERS and first < last:
            first += 1
        found = sum(weights[term] for term in {term for _, _, term in hits[first : last + 1]})
        if found > best:
            best, span = found, (hits[first][0], end)
    return best, _around(plain, *span)


def _weight(term: str) -> int:
    """Names and numbers prove more than words, and the shortest words nothing."""
    if not term.isalpha():
        return 6
    return int(len(term) > 3)


def _around(text: str, start: int, end: int) -> str:
    """`text[start:end]` with as much on either side as there is room for, cut between words."""
    room = (EXCERPT_CHARACTERS - (end - start)) // 2
    first, last = max(0, start - room), min(len(text), end + room)
    if first:
        space = text.find(" ", first, start)
        first = space + 1 if space >= 0 else start
    if last < len(text):
        space = text.rfind(" ", end, last)
        last = space if space >= 0 else end
    return text[first:last]
