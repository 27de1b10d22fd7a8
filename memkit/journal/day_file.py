"""One day of the journal as text: find sections by their anchors, and change one without touching the rest.

`memkit.journal` shows the format. A session has one section for each of its summaries:

    ## 14:02 Staging gateway port <!-- session:fd0aee29-… branch:feature/gw summary:77c1e09b -->

    - Decided: the staging gateway listens on 7443. <!-- grip:k3f9a1 turns:8ad3df7f -->

    ### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->

`summary` names the last turn that the bullets cover; later turns have no bullets yet. A note (see
`memkit.journal.digest`) is a section next to those of sessions.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from memkit import anchors
from memkit.journal.digest import Digest, Note

_OPENING = frozenset({"session", "note"})
"""Keys of anchors on level-2 headings; each heading has one."""

_TIME = re.compile(r"^#{2,3} ((?:[01][0-9]|2[0-3]):[0-5][0-9]) ")


@dataclass(frozen=True, slots=True)
class Section:
    """The lines from one anchored heading to the next: `start` inclusive, `end` exclusive."""

    start: int
    end: int
    heading: str
    pairs: Mapping[str, str]

    @property
    def minute(self) -> str:
        """The local time (`HH:MM`) that begins the heading, or "" if the user removed it."""
        match = _TIME.match(self.heading)
        return match[1] if match else ""

    @property
    def is_opening(self) -> bool:
        """Whether the section opens a session or is a note, and so ends the turns above it."""
        return bool(self.pairs.keys() & _OPENING)


class JournalTurn(NamedTuple):
    """A turn's section, the line of its session's heading, and whether a summary covers it."""

    section: Section
    heading: int
    is_summarized: bool


class _Index:
    """Positions of turns, headings, and notes in a day's sections. Grows with the day."""

    def __init__(self, sections: Iterable[Section]) -> None:
        self.turns: dict[str, int] = {}
        self.headings: dict[str, list[int]] = {}  # by session
        self.openings: list[int] = []
        self._count = 0
        self.extend(sections)

    def extend(self, sections: Iterable[Section]) -> None:
        for number, section in enumerate(sections, start=self._count):
            if "turn" in section.pairs:
                self.turns.setdefault(section.pairs["turn"], number)
            if "session" in section.pairs:
                self.headings.setdefault(section.pairs["session"], []).append(number)
            if section.is_opening:
                self.openings.append(number)
            self._count = number + 1


class DayFile:
    """A day file as lines. Only headings with an anchor bound sections; the user's own do not."""

    def __init__(self, text: str) -> None:
        self.lines = text.rstrip("\n").split("\n")
        self._sections: list[Section] | None = None
        self._index: _Index | None = None

    @property
    def sections(self) -> list[Section]:
        """Return all anchored sections, in order."""
        if self._sections is None:
            self._sections = self._read_sections(0)
        return self._sections

    @property
    def _places(self) -> _Index:
        if self._index is None:
            self._index = _Index(self.sections)
        return self._index

    def _put(self, start: int, end: int, lines: Iterable[str]) -> None:
        before = self._sections if start == len(self.lines) else None
        self.lines[start:end] = lines
        if before is None:
            self._sections = self._index = None
            return
        # A day of thousands of turns grows at its end, so only new lines are read.
        added = self._read_sections(start)
        end = added[0].start if added else len(self.lines)
        self._sections = [*before[:-1], *(replace(last, end=end) for last in before[-1:]), *added]
        if self._index is not None:
            self._index.extend(added)

    def _read_sections(self, first: int) -> list[Section]:
        """Return the sections whose heading is at line `first` or below."""
        found = []
        for number in range(first, len(self.lines)):
            line = self.lines[number]
            if line[:2] == "##" and line.startswith(("## ", "### ")):
                pairs = _pairs(line)
                if pairs.keys() & (_OPENING if line.startswith("## ") else {"turn"}):
                    found.append((number, line, pairs))
        ends = [*(number for number, _, _ in found), len(self.lines)][1:]
        return [
            Section(number, end, line, pairs)
            for (number, line, pairs), end in zip(found, ends, strict=True)
        ]

    def find_turn(self, turn: str) -> Section | None:
        """Return the section of a turn, or None."""
        number = self._places.turns.get(turn)
        return None if number is None else self.sections[number]

    def written_lines(self, section: Section, hashes: Iterable[str]) -> int:
        """Return how many lines of the section read as they were written, or 0 if they were edited.

        A user's note below them does not count.
        """
        read = hashlib.sha256()
        count = 0
        for number, line in enumerate(self.lines[section.start : section.end], start=1):
            read.update(encoded(line if number == 1 else f"\n{line}"))
            if _shown(read) in hashes:
                count = number
        return count

    def redact(
        self, redact: Callable[[int, str], str], growing: Mapping[str, Iterable[str]]
    ) -> dict[str, str]:
        """Pass all text through `redact`, piece by piece, with the number of its first line, from 1.

        A piece is the text before the first section, a heading without its anchor, or the text below it. In
        a section that may grow (`growing` maps its turn to hashes), the lines that memkit wrote are a piece
        of their own. Return the new hashes of growing sections that are unedited, by turn.
        """
        hashes = {}
        for section in reversed(self.sections):
            turn = section.pairs.get("turn", "")
            written = self.written_lines(section, growing[turn]) if turn in growing else 0
            heading = anchors.strip(section.heading)
            shown = redact(section.start + 1, heading)
            if shown != heading:
                shown = " ".join(shown.split())
                line = f"{shown} {anchors.render(**section.pairs)}"
                self._put(section.start, section.start + 1, [line])
            middle = section.start + max(written, 1)
            self._redact_lines(middle, section.end, redact)
            length = len(self.lines)
            self._redact_lines(section.start + 1, middle, redact)
            if written:
                end = middle + len(self.lines) - length
                hashes[turn] = section_hash("\n".join(self.lines[section.start : end]))
        sections = self.sections
        self._redact_lines(0, sections[0].start if sections else len(self.lines), redact)
        return hashes

    def _redact_lines(self, start: int, end: int, redact: Callable[[int, str], str]) -> None:
        text = "\n".join(self.lines[start:end])
        redacted = redact(start + 1, text)
        if redacted != text:
            self._put(start, end, redacted.split("\n"))

    def replace(self, section: Section, count: int, text: str) -> None:
        """Replace the section's first `count` lines with `text`."""
        self._put(section.start, section.start + count, text.split("\n"))

    def insert(self, digest: Digest) -> None:
        """Insert the turn below its session's heading, in order of time. Create a missing heading."""
        sections, places = self.sections, self._places
        own = places.headings.get(digest.session)
        text = digest.section
        if own:
            before = [n for n in own if sections[n].minute <= digest.minute]
            heading = before[-1] if before else own[0]
            # The turns below a heading end at the next heading. Most often, the new one is the last.
            following = bisect_right(places.openings, heading)
            place = [*places.openings[following : following + 1], len(sections)][0]
            while place > heading + 1 and sections[place - 1].minute > digest.minute:
                place -= 1
            later = sections[place] if place < len(sections) else None
        else:
            anchor = anchors.render(session=digest.session, branch=digest.branch)
            text = f"## {digest.minute} {digest.title} {anchor}\n\n{text}"
            openings = (sections[n] for n in places.openings)
            later = next((s for s in openings if s.minute > digest.minute), None)
        self.insert_before(later, text)

    def insert_note(self, note: Note) -> bool:
        """Insert a note between the sessions, in order of time. Return False if it is already there."""
        if any(section.pairs.get("note") == note.id for section in self.sections):
            return False
        later = (s for s in self.sections if s.is_opening and s.minute > note.minute)
        self.insert_before(next(later, None), note.section)
        return True

    def keep(self, gone: Collection[int], others: Mapping[int, str]) -> None:
        """Drop the lines numbered `gone` (from 0), and replace those in `others` by their new text.

        Blank lines in a row become one next to a removed line.
        """
        lines: list[str] = []
        was_cut = False
        for number, line in enumerate(self.lines):
            if number in gone:
                was_cut = True
                continue
            if not (was_cut and not line.strip() and lines and not lines[-1].strip()):
                lines.append(others.get(number, line))
                was_cut = was_cut and not line.strip()
        while was_cut and lines and not lines[-1].strip():
            lines.pop()
        self._put(0, len(self.lines), lines)

    def sessions(self) -> list[str]:
        """Return the sessions of the day, in order, each once."""
        named = (s.pairs["session"] for s in self.sections if "session" in s.pairs)
        return list(dict.fromkeys(named))

    def turns_of(self, session: str) -> list[JournalTurn]:
        """Return the turns of a session, in order."""
        return [
            JournalTurn(turn, heading.start, number <= _summarized(heading, turns))
            for heading, turns in self._headings()
            if heading.pairs["session"] == session
            for number, turn in enumerate(turns, start=1)
        ]

    def summarize(self, turns: Sequence[str], bullets: Sequence[str]) -> bool:
        """Insert `bullets`, one line each, above `turns`, which are consecutive below one heading.

        Existing text stays, including the heading's title. Return False without a change if none of the
        turns is there any more, or if a summary already covers one of them.
        """
        for heading, below in self._headings():
            places = [n for n, section in enumerate(below) if section.pairs["turn"] in turns]
            if not places:
                continue
            first, last = below[places[0]], below[places[-1]]
            if places[0] < _summarized(heading, below):
                continue  # the user may have copied turns that are not summarized
            pairs = {**heading.pairs, "summary": last.pairs["turn"]}
            if places[0] == 0:
                title = anchors.strip(heading.heading).rstrip()
                rest = self.lines[heading.start + 1 : heading.end]
                new = [f"{title} {anchors.render(**pairs)}", *(["", *bullets] if bullets else [])]
                if rest and rest[0].strip():
                    new.append("")
                self._put(heading.start, heading.start + 1, new)
            else:
                title = anchors.strip(first.heading).rstrip()[1:]
                pairs["branch"] = first.pairs.get("branch") or pairs.get("branch", "")
                lines = [f"{title} {anchors.render(**pairs)}", *(["", *bullets] if bullets else [])]
                self.insert_before(first, "\n".join(lines))
            return True
        return False

    def groups(self) -> Iterator[tuple[Section | None, list[Section]]]:
        """Yield each session heading or note with the turns below it; None for turns above them all."""
        opening: Section | None = None
        turns: list[Section] = []
        for section in self.sections:
            if "turn" in section.pairs:
                turns.append(section)
                continue
            yield opening, turns
            opening, turns = section, []
        yield opening, turns

    def _headings(self) -> list[tuple[Section, list[Section]]]:
        """Return each session heading with the turns below it."""
        return [(one, turns) for one, turns in self.groups() if one and "session" in one.pairs]

    def insert_before(self, section: Section | None, text: str) -> None:
        """Insert `text` before a section, or at the end."""
        position = section.start if section else len(self.lines)
        block = text.split("\n")
        if position and self.lines[position - 1].strip():
            block.insert(0, "")
        if section:
            block.append("")
        self._put(position, position, block)

    def text(self, section: Section) -> str:
        """Return the text of a section, including its heading."""
        return "\n".join(self.lines[section.start : section.end]).rstrip()

    def render(self) -> str:
        """Return the whole file."""
        return "\n".join(self.lines) + "\n"


@lru_cache(maxsize=16384)
def _pairs(line: str) -> Mapping[str, str]:
    return anchors.parse(line)


def _summarized(heading: Section, turns: Sequence[Section]) -> int:
    """Return how many of the turns below a heading its summary covers."""
    last = heading.pairs.get("summary")
    if last is None:
        return 0
    named = [number for number, turn in enumerate(turns, start=1) if turn.pairs["turn"] == last]
    # The user removed that turn. Covering the others is better than summarizing one twice.
    return named[-1] if named else len(turns)


def section_hash(section: str) -> str:
    """Return a fingerprint of a turn's section as written, to detect a later edit."""
    return _shown(hashlib.sha256(encoded(section)))


def _shown(read: hashlib._Hash) -> str:
    return read.hexdigest()[:16]


def encoded(text: str) -> bytes:
    """Return `text` as bytes for a file. Bytes that were not UTF-8 when read come back unchanged."""
    return text.encode("utf-8", "surrogateescape")
