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

In a file that memkit shares with OpenClaw, the line `anchors.END` follows memkit's last section. What
OpenClaw appends below it belongs to no section.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from memkit import anchors
from memkit.hook.phrases import is_filler
from memkit.journal.extracts import remaining
from memkit.journal.markup import short_id
from memkit.projects.project import digest16

_OPENING = frozenset({"session", "note"})
"""Keys of anchors on level-2 headings; each heading has one."""

SECTION_FORMAT = 2
"""The format in which `memkit.journal.digest` renders turns; part of their fingerprints."""

_TITLE = re.compile(r"^#{2,3}\s+(?:\d\d:\d\d\s+)?")
_FENCE = re.compile(r"`{3,}|~{3,}")
_TIME = re.compile(r"^#{2,3} ((?:[01][0-9]|2[0-3]):[0-5][0-9]) ")


class SharedHeading(str):
    """The blank line between the heading of a session and that of its only turn, which share a line in the
    file: `parts` are the two headings as read, and `line` that line.
    """

    parts: tuple[str, str] | None = None
    line = ""


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


class SectionIndex:
    """Positions of turns, headings, and notes in a day's sections. Grows with the day."""

    def __init__(self, sections: Iterable[Section]) -> None:
        self.turns: dict[str, int] = {}
        self.headings: dict[str, list[int]] = {}  # by session
        self.openings: list[int] = []
        self._count = 0
        self.extend(sections)

    def extend(self, sections: Iterable[Section]) -> None:
        """Add sections that follow those that are known."""
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

    `lines` has two headings where a session shares its heading with its only turn; see `file_lines`. It ends
    at the line `anchors.END`; `rest` is the text below that line, None if there is no such line.
    """

    def __init__(self, text: str) -> None:
        text, self.rest = anchors.split_end(text)
        self.lines = text.rstrip("\n").split("\n")
        if " turn:" in text:
            self.lines = [part for line in self.lines for part in _parted(line)]
        self._sections: list[Section] | None = None
        self._index: SectionIndex | None = None

    @property
    def sections(self) -> list[Section]:
        """Return all anchored sections, in order."""
        if self._sections is None:
            self._sections = self._read_sections(0)
        return self._sections

    @property
    def places(self) -> SectionIndex:
        """The positions of turns and headings in `sections`."""
        if self._index is None:
            self._index = SectionIndex(self.sections)
        return self._index

    def put(self, start: int, end: int, lines: Iterable[str]) -> None:
        """Replace the lines from `start` to `end`, exclusive."""
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
        self.put(0, len(self.opening), lines)

    def find_turn(self, turn: str) -> Section | None:
        """Return the section of a turn, or None."""
        number = self.places.turns.get(turn)
        return None if number is None else self.sections[number]

    def replace(self, section: Section, count: int, text: str) -> None:
        """Replace the section's first `count` lines with `text`.

        If the session shares its heading with the turn, it gets the new words too.
        """
        lines = text.split("\n")
        if section.start - 1 in self.shared_headings():
            top = f"{heading_words(lines[0])[1:]} {anchors.render(**_pairs(self.lines[section.start - 2]))}"
            self.put(section.start - 2, section.start - 1, [top])
        self.put(section.start, section.start + count, lines)

    def keep(self, gone: Collection[int], others: Mapping[int, str]) -> None:
        """Drop the lines numbered `gone` (from 0), and replace those in `others` by their new text.

        Blank lines in a row become one next to a removed line.
        """
        lines = [others.get(n, self.lines[n]) for n in remaining(self.lines, gone)]
        self.put(0, len(self.lines), lines)

    def sessions(self) -> list[str]:
        """Return the sessions of the day, in order, each once."""
        named = (s.pairs["session"] for s in self.sections if "session" in s.pairs)
        return list(dict.fromkeys(named))

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

    def headings(self) -> list[tuple[Section, list[Section]]]:
        """Return each session heading with the turns below it."""
        return [(one, turns) for one, turns in self.groups() if one and "session" in one.pairs]

    def insert_before(self, section: Section | None, text: str) -> None:
        """Insert `text` before a section, or at the end."""
        position = section.start if section else len(self.lines)
        block = text.split("\n")
        if text.startswith("### "):  # a turn does not go below a heading of the user's
            position = self.own_heading(position)
        if position and self.lines[position - 1].strip():
            block.insert(0, "")
        if position < len(self.lines):
            block.append("")
        self.put(position, position, block)

    def own_heading(self, end: int) -> int:
        """Return where a user's heading of level 1 or 2 begins in the section before `end`, else `end`."""
        start = next((one.start for one in reversed(self.sections) if one.start < end), end)
        fence = ""
        for number in range(start + 1, end):
            line = self.lines[number]
            if marks := _FENCE.match(line):
                fence = "" if fence == marks[0] else fence or marks[0]
            elif not fence and line.startswith(("# ", "## ")):
                return number
        return end

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
        return {_pairs(self.lines[place + 1])["turn"] for place in self.shared_headings()}

    def shared_headings(self) -> dict[int, str]:
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
            line = f"{heading_of(above)} {anchors.render(**above.pairs, turn=below.pairs.get('turn', ''))}"
            if shared.parts == (above.heading, below.heading):
                found[place] = shared.line
            elif _parted(line) == [above.heading, "", below.heading]:
                found[place] = line
        return found

    def file_lines(self) -> list[int]:
        """Return the number in the file, from 1, of each of `lines`, and of the end."""
        joined = self.shared_headings()
        numbers, number = [], 1
        for place in range(len(self.lines) + 1):
            numbers.append(number)
            number += place + 1 not in joined and place not in joined
        return numbers

    def render(self) -> str:
        """Return the whole file."""
        joined = self.shared_headings()
        lines = [
            joined.get(place + 1, line)
            for place, line in enumerate(self.lines)
            if place not in joined and place - 1 not in joined
        ]
        text = "\n".join(lines) + "\n"
        return text if self.rest is None else f"{text}\n{anchors.END}\n{self.rest}"

    def mark_end(self) -> None:
        """Have the line `anchors.END` follow the sections, or remove it if there are none."""
        if self.sections and self.rest is None:
            self.rest = ""
        elif not self.sections and self.rest is not None:
            if self.rest.strip():
                self.put(len(self.lines), len(self.lines), self.rest.rstrip("\n").split("\n"))
            self.rest = None


def _parted(line: str) -> list[str]:
    """Return a line, or the two headings that it stands for with a blank line between."""
    if line[:3] != "## " or " turn:" not in line:
        return [line]
    pairs = anchors.parse(line)
    if not pairs.keys() >= {"session", "turn"} or "note" in pairs:
        return [line]
    words, turn = heading_words(line), pairs.pop("turn")
    above = f"{words} {anchors.render(**pairs)}"
    below = f"#{words} {anchors.render(turn=turn, branch=pairs.get('branch', ''))}"
    shared = SharedHeading()
    shared.parts, shared.line = (above, below), line
    return [above, shared, below]


def heading_words(heading: str) -> str:
    """Return a heading without its anchor."""
    return anchors.strip(heading).rstrip()


def heading_of(section: Section) -> str:
    """Return the heading of a section without its anchor."""
    return heading_words(section.heading)


@lru_cache(maxsize=16384)
def _pairs(line: str) -> Mapping[str, str]:
    return anchors.parse(line)


def has_own_title(heading: Section, turns: Sequence[Section]) -> bool:
    """Return whether memkit wrote the words of a session's heading: those of its first turn, of the first one
    that says something, or with an extract those of another turn, or the ones that `title` is a hash of.
    """
    words, titles = heading_title(heading), [heading_title(turn) for turn in turns]
    if heading.pairs.get("title") == short_id(words):
        return True
    if "extract" not in heading.pairs:
        telling = (title for title in titles if not is_filler(title))
        titles = [*titles[:1], *islice(telling, 1)]
    return words in titles


def heading_title(section: Section) -> str:
    """Return the words of a heading without its time and anchor."""
    return _TITLE.sub("", heading_of(section)).strip()


def encoded(text: str) -> bytes:
    """Return `text` as bytes for a file. Bytes that were not UTF-8 when read come back unchanged."""
    return text.encode("utf-8", "surrogateescape")


def as_taken(text: str) -> str:
    """Return a day of another machine with a fingerprint of its text in the title, which an edit breaks."""
    title, _, rest = text.partition("\n")
    return f"{heading_words(title)} {anchors.render(proof=digest16(rest))}\n{rest}"


def is_as_taken(text: str) -> bool:
    """Return whether a day of another machine reads as memkit wrote it, or is empty."""
    title, _, rest = text.partition("\n")
    return not text.strip() or anchors.parse(title).get("proof") == digest16(rest)


def written_lines(content: DayFile, section: Section, hashes: Collection[str]) -> int:
    """Return how many lines of the section read as they were written, or 0 if they were edited.

    A user's note below them does not count.
    """
    read = hashlib.sha256()
    count = 0
    for number, line in enumerate(content.lines[section.start : section.end], start=1):
        read.update(encoded(line if number == 1 else f"\n{line}"))
        if _fingerprint(read) in hashes:
            count = number
    return count


def section_hash(section: str) -> str:
    """Return a fingerprint of a turn's section as written, to detect a later edit. It names the format."""
    return _fingerprint(hashlib.sha256(encoded(section)))


def _fingerprint(read: hashlib._Hash) -> str:
    return f"{read.hexdigest()[:16]}-{SECTION_FORMAT}"
