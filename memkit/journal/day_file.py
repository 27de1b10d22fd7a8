"""One day of the journal as text: find sections by their anchors, and change one without touching the rest.

`memkit.journal` shows the format. A session has one section for each of its summaries:

    ## 14:02 Staging gateway port <!-- session:fd0aee29-… branch:feature/gw summary:77c1e09b -->

    - Decided: the staging gateway listens on 7443. <!-- grip:k3f9a1 turns:8ad3df7f -->

    ### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->

`summary` names the last turn that the bullets cover; later turns have no bullets yet. `extract` is the same
for lines made without a model (see `memkit.journal.extracts`), which a summary replaces. A note (see
`memkit.journal.digest`) is a section next to those of sessions.

A session of one turn, without bullets, has one heading with both anchors in one:

    ## 16:30 Fix the flaky test <!-- session:03b1c77e-… branch:main turn:1c9d02aa -->

`DayFile` shows it as the two headings that it stands for, so all that follows knows one form only.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from memkit import anchors
from memkit.hook.phrases import is_filler
from memkit.journal.digest import Digest, Note
from memkit.journal.extracts import is_unedited, redacted_lines, remaining
from memkit.journal.shared_heading import SharedHeading, heading_words, parted

_OPENING = frozenset({"session", "note"})
"""Keys of anchors on level-2 headings; each heading has one."""

_FORMAT = "-2"
"""Ends the fingerprints of sections as `memkit.journal.digest` renders them now. Earlier ones lack it."""

_TITLE = re.compile(r"^#{2,3}\s+(?:\d\d:\d\d\s+)?")
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
    """A day file as lines. Only headings with an anchor bound sections; the user's own do not.

    `lines` has two headings where a session shares its heading with its only turn; see `file_lines`.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.rstrip("\n").split("\n")
        if " turn:" in text:
            self.lines = [part for line in self.lines for part in parted(line)]
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

    @property
    def opening(self) -> list[str]:
        """The lines above the first section."""
        return self.lines[: self.sections[0].start if self.sections else len(self.lines)]

    def replace_opening(self, lines: Sequence[str]) -> None:
        """Replace the lines above the first section."""
        self._put(0, len(self.opening), lines)

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
        hashes = {one.removesuffix(_FORMAT) for one in hashes}
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
        numbers = self.file_lines()
        joined = self._joined()

        def redact_piece(line: int, text: str) -> str:
            return redact(numbers[line], text)

        for section in reversed(self.sections):
            turn = section.pairs.get("turn", "")
            written = self.written_lines(section, growing[turn]) if turn in growing else 0
            heading = anchors.strip(section.heading)
            if section.start + 1 in joined:  # the same line as that of the turn, which is done
                shown = anchors.strip(self.lines[section.start + 2]).removeprefix("#")
            else:
                shown = redact_piece(section.start, heading)
            if shown != heading:
                shown = " ".join(shown.split())
                line = f"{shown} {anchors.render(**section.pairs)}"
                self._put(section.start, section.start + 1, [line])
            middle = section.start + max(written, 1)
            self._redact_lines(middle, section.end, redact_piece)
            length = len(self.lines)
            self._redact_lines(section.start + 1, middle, redact_piece)
            if written:
                end = middle + len(self.lines) - length
                hashes[turn] = section_hash("\n".join(self.lines[section.start : end]))
        sections = self.sections
        self._redact_lines(0, sections[0].start if sections else len(self.lines), redact_piece)
        return hashes

    def _redact_lines(self, start: int, end: int, redact: Callable[[int, str], str]) -> None:
        text = "\n".join(self.lines[start:end])
        redacted = redact(start, text)
        if redacted != text:
            self._put(start, end, redacted_lines(self.lines[start:end], redacted.split("\n")))

    def replace(self, section: Section, count: int, text: str) -> None:
        """Replace the section's first `count` lines with `text`.

        A heading that a session shares with the turn follows that of the turn.
        """
        lines = text.split("\n")
        if section.start - 1 in self._joined():
            top = f"{heading_words(lines[0])[1:]} {anchors.render(**_pairs(self.lines[section.start - 2]))}"
            self._put(section.start - 2, section.start - 1, [top])
        self._put(section.start, section.start + count, lines)

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
        if own:
            self._improve_title(sections[heading], is_first=place == heading + 1)
        else:
            self.share_heading(digest.turn)

    def _improve_title(self, heading: Section, *, is_first: bool) -> None:
        """Give a session the first title of its turns that says something, and the time of the first turn.

        `is_first` tells that a turn was inserted above all others. A title by the user or a summary stays.
        """
        if not heading.minute or not (is_first or is_filler(heading_title(heading))):
            return
        turns = next(below for one, below in self._headings() if one.start == heading.start)
        title = next((words for turn in turns if not is_filler(words := heading_title(turn))), "")
        if title and _has_own_title(heading, turns[is_first:]):
            minute = min(heading.minute, turns[0].minute or heading.minute)
            line = f"## {minute} {title} {anchors.render(**heading.pairs)}"
            self._put(heading.start, heading.start + 1, [line])

    def rename_session(self, session: str, title: str, new: str) -> None:
        """Replace a session's `title`, which repeats that of a turn, by the turn's `new` one."""
        for section in self.sections if title != new else ():
            if section.pairs.get("session") == session and heading_title(section) == title:
                heading = f"## {section.minute} {new} {anchors.render(**section.pairs)}"
                self._put(section.start, section.start + 1, [heading])

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
        lines = [others.get(n, self.lines[n]) for n in remaining(self.lines, gone)]
        self._put(0, len(self.lines), lines)

    def sessions(self) -> list[str]:
        """Return the sessions of the day, in order, each once."""
        named = (s.pairs["session"] for s in self.sections if "session" in s.pairs)
        return list(dict.fromkeys(named))

    def turns_of(self, session: str) -> list[JournalTurn]:
        """Return the turns of a session, in order."""
        return [
            JournalTurn(turn, heading.start, number <= _covered(heading, turns, "summary"))
            for heading, turns in self._headings()
            if heading.pairs["session"] == session
            for number, turn in enumerate(turns, start=1)
        ]

    def extracted(self, session: str) -> set[str]:
        """Return the turns of a session that an extract or a summary covers."""
        return {
            turn.pairs["turn"]
            for heading, turns in self._headings()
            if heading.pairs["session"] == session
            for turn in turns[: _covered(heading, turns, "summary", "extract")]
        }

    def summarize(
        self, turns: Sequence[str], bullets: Sequence[str], title: str = "", *, key: str = "summary"
    ) -> bool:
        """Insert `bullets`, one line each, above `turns`, which are consecutive below one heading.

        `title` becomes the words of the heading, unless the user edited them. `key` is the heading's mark:
        `summary`, or `extract` for lines made without a model. A summary removes the unedited lines of an
        extract of these turns. All other text stays. Return False without a change if none of the turns is
        there any more, or if one is covered already.
        """
        keys = ["summary", "extract"] if key == "extract" else ["summary"]
        for heading, below in self._headings():
            names = [section.pairs["turn"] for section in below]
            places = [number for number, name in enumerate(names) if name in turns]
            if not places or places[0] < _covered(heading, below, *keys):
                continue  # the user may have copied turns that are covered
            is_own = _has_own_title(heading, below)
            first = below[places[0]]
            if key == "summary":
                first = replace(first, start=first.start - self._drop_extract(heading, turns))
            pairs = {**heading.pairs, key: names[places[-1]]}
            if key == "summary" and pairs.get("extract") not in names[places[-1] + 1 :]:
                pairs["extract"] = ""
            # An extract without lines needs no heading of its own.
            is_joined = key == "extract" and not bullets and places[0] == _covered(heading, below, *keys)
            if places[0] == 0 or is_joined:
                words = _words(heading)
                if title and heading.minute and is_own and places[0] == 0:
                    words = f"## {heading.minute} {title}"
                new = [f"{words} {anchors.render(**pairs)}", *(["", *bullets] if bullets else [])]
                if any(line.strip() for line in self.lines[heading.start + 1 : heading.start + 2]):
                    new.append("")
                self._put(heading.start, heading.start + 1, new)
            else:
                words = f"## {first.minute} {title}" if title and first.minute else _words(first)[1:]
                pairs["branch"] = first.pairs.get("branch") or pairs.get("branch", "")
                if key == "extract":
                    pairs["summary"] = ""
                lines = [f"{words} {anchors.render(**pairs)}", *(["", *bullets] if bullets else [])]
                self.insert_before(first, "\n".join(lines))
            return True
        return False

    def _drop_extract(self, heading: Section, turns: Sequence[str]) -> int:
        """Remove the unedited lines below a heading that an extract made from one of `turns`.

        Return how many lines fewer there are.
        """
        gone = [
            number
            for number in range(heading.start + 1, heading.end)
            if is_unedited(line := self.lines[number])
            and not set(anchors.parse(line)["turns"].split(",")).isdisjoint(turns)
        ]
        before = len(self.lines)
        if gone:
            self.keep(gone, {})
        return before - len(self.lines)

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

    def share_heading(self, turn: str) -> None:
        """Let the session of a turn share its heading with it, for as long as the turn is its only one."""
        section = self.find_turn(turn)
        if section and section.start > 1 and not self.lines[section.start - 1]:
            self.lines[section.start - 1] = SharedHeading()

    def sharing_turns(self) -> set[str]:
        """Return the turns that share the heading of their session."""
        return {_pairs(self.lines[place + 1])["turn"] for place in self._joined()}

    def _joined(self) -> dict[int, str]:
        """Return the shared headings as the file has them, by the number of the blank line."""
        found: dict[int, str] = {}
        places = [n for n, line in enumerate(self.lines) if isinstance(line, SharedHeading)]
        if not places:
            return found
        numbers = {section.start: number for number, section in enumerate(self.sections)}
        for place in places:
            number = numbers.get(place + 1)
            if number is None or numbers.get(place - 1) != number - 1:
                continue
            above, below, *after = self.sections[number - 1 : number + 2]
            if after and not after[0].is_opening:
                continue
            shared = self.lines[place]
            assert isinstance(shared, SharedHeading)
            line = f"{_words(above)} {anchors.render(**above.pairs, turn=below.pairs.get('turn', ''))}"
            if shared.parts == (above.heading, below.heading):
                found[place] = shared.line
            elif parted(line) == [above.heading, "", below.heading]:
                found[place] = line
        return found

    def file_lines(self) -> list[int]:
        """Return the number in the file, from 1, of each of `lines`, and of the end."""
        joined = self._joined()
        numbers, number = [], 1
        for place in range(len(self.lines) + 1):
            numbers.append(number)
            number += place + 1 not in joined and place not in joined
        return numbers

    def render(self) -> str:
        """Return the whole file."""
        joined = self._joined()
        lines = [
            joined.get(place + 1, line)
            for place, line in enumerate(self.lines)
            if place not in joined and place - 1 not in joined
        ]
        return "\n".join(lines) + "\n"


def _words(section: Section) -> str:
    """Return the heading of a section without its anchor."""
    return heading_words(section.heading)


@lru_cache(maxsize=16384)
def _pairs(line: str) -> Mapping[str, str]:
    return anchors.parse(line)


def _covered(heading: Section, turns: Sequence[Section], *keys: str) -> int:
    """Return how many turns below a heading are covered. Its anchor names the last one in one of `keys`."""
    most = 0
    for last in filter(None, map(heading.pairs.get, keys)):
        named = [number for number, turn in enumerate(turns, start=1) if turn.pairs["turn"] == last]
        # The user removed that turn. Covering the others is better than summarizing one twice.
        most = max(most, named[-1] if named else len(turns))
    return most


def _has_own_title(heading: Section, turns: Sequence[Section]) -> bool:
    """Return whether memkit wrote the words of a session's heading: those of its first turn, of the first one
    that says something, or with an extract those of another turn.
    """
    titles = [heading_title(turn) for turn in turns]
    if "extract" not in heading.pairs:
        telling = (title for title in titles if not is_filler(title))
        titles = [*titles[:1], *islice(telling, 1)]
    return heading_title(heading) in titles


def heading_title(section: Section) -> str:
    """Return the words of a heading without its time and anchor."""
    return _TITLE.sub("", _words(section)).strip()


def section_hash(section: str) -> str:
    """Return a fingerprint of a turn's section as written, to detect a later edit. It names the format."""
    return _shown(hashlib.sha256(encoded(section))) + _FORMAT


def is_of_format_1(known: str) -> bool:
    """Return whether a version that rendered turns otherwise made this fingerprint."""
    return not known.endswith(_FORMAT)


def _shown(read: hashlib._Hash) -> str:
    return read.hexdigest()[:16]


def encoded(text: str) -> bytes:
    """Return `text` as bytes for a file. Bytes that were not UTF-8 when read come back unchanged."""
    return text.encode("utf-8", "surrogateescape")
