"""The facts that `memkit compact` keeps in a memory file: one section, one line per fact.

    ## Facts <!-- compacted:2026-11-20 -->

    - Decided: The staging gateway listens on 7443. (2026-11-20) <!-- fact:1f0c… turns:8ad3df7f -->
    - Superseded: The staging gateway listened on 443. (2026-11-18) <!-- fact:77ab… chunks:20e3d2c8274c -->

`compacted` is the last day condensed here. A fact's ID is a hash of its line and its citations. A line that
no longer matches its ID was edited: it belongs to the user and stays. So does all other text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memkit import anchors
from memkit.anchors import UNVERIFIED
from memkit.journal.day_file import DayFile
from memkit.privacy.tombstones import Forgotten

MEMORY_FILE: Final = "MEMORY.md"
"""The file for lasting facts, in a project's memory directory."""

SUPERSEDED = "superseded"

LABELS = {"decision": "Decided", "preference": "Prefers", "fact": "Fact", SUPERSEDED: "Superseded"}
"""The kinds of facts, and the label that begins each line."""

ID_CHARACTERS = 8

_KINDS = {label: kind for kind, label in LABELS.items()}
_LINE = re.compile(
    rf"- (?P<label>{'|'.join(_KINDS)}): (?P<text>.+?)"
    rf"(?: \((?P<date>\d{{4}}-\d\d-\d\d)\))?(?P<mark> \({UNVERIFIED}\))?"
)
_HEADING_END = re.compile(r"#{1,2} ")
_NEW_HEADING = "## Facts"
_NO_DAY = "-"


@dataclass(frozen=True, slots=True)
class Citations:
    """The sources of a fact: bullets, turns, and chunks of other text, by the IDs users see."""

    grips: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.grips or self.turns or self.chunks)

    @property
    def is_full(self) -> bool:
        """Whether the anchor may have had no room for another ID."""
        room = anchors.VALUE_CHARACTERS - ID_CHARACTERS - 1
        return any(len(",".join(ids)) > room for ids in (self.grips, self.turns, self.chunks))

    @classmethod
    def joined(cls, parts: Iterable[Citations]) -> Citations:
        """Combine citations, each ID once, as many as fit into an anchor."""
        known = list(parts)
        return cls(
            _fitting(name for one in known for name in one.grips),
            _fitting(name for one in known for name in one.turns),
            _fitting(name for one in known for name in one.chunks),
        )


def _fitting(names: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for name in dict.fromkeys(names):
        if len(",".join([*kept, name])) > anchors.VALUE_CHARACTERS:
            break
        kept.append(name)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, on one line.

    Attributes:
        text: without label, date, and mark.
        kind: one of `LABELS`.
        citations: what it rests on.
        date: the newest date of these (ISO), or "".
        is_verified: whether every identifier, number, path, and quotation in it appears in them.
    """

    text: str
    kind: str
    citations: Citations
    date: str = ""
    is_verified: bool = True

    @property
    def id(self) -> str:
        """A hash of the line and its citations."""
        cited = self.citations
        return _id(self.shown, ",".join(cited.grips), ",".join(cited.turns), ",".join(cited.chunks))

    @property
    def shown(self) -> str:
        """The line without its anchor."""
        date = f" ({self.date})" if self.date else ""
        mark = "" if self.is_verified else f" ({UNVERIFIED})"
        return f"- {LABELS[self.kind]}: {self.text}{date}{mark}"

    @property
    def line(self) -> str:
        """The line as written to the file."""
        anchor = anchors.render(
            fact=self.id,
            grips=",".join(self.citations.grips),
            turns=",".join(self.citations.turns),
            chunks=",".join(self.citations.chunks),
            check="" if self.is_verified else UNVERIFIED,
        )
        return f"{self.shown} {anchor}"


def _id(*parts: str) -> str:
    key = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(key).hexdigest()[:ID_CHARACTERS]


@dataclass(frozen=True, slots=True)
class WrittenFact:
    """A fact read from a file, with the ID in its anchor. `is_own` means that the user has edited it."""

    fact: Fact
    id: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of the facts in a file: IDs to remove, facts to add, and the new `compacted` day."""

    removed: frozenset[str]
    added: tuple[Fact, ...]
    compacted: str = ""

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def apply(self, text: str, name: str) -> str:
        """Return the text of the file `name` after this change, or the same text if it was already made.

        Removes only lines that still read as memkit wrote them. Skips facts that are already there.
        Superseded facts come last. A missing section is created above the sessions of a day, or at the end
        of another file.
        """
        content = FactFile(text, name)
        present = {one.id for one in content.facts()}
        added = [fact for fact in self.added if fact.id not in present]
        content.remove(self.removed)
        content.add([fact for fact in added if fact.kind != SUPERSEDED], is_superseded=False)
        content.add([fact for fact in added if fact.kind == SUPERSEDED], is_superseded=True)
        content.note_day(self.compacted)
        return content.render() if content.lines != FactFile(text, name).lines else text


class FactFile:
    """A memory file as lines, with its section of facts."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines = text.rstrip("\n").split("\n") if text else []

    @property
    def compacted(self) -> str:
        """The last day (ISO) condensed here, or "" if unknown."""
        start, _ = self._bounds()
        day = anchors.parse(self.lines[start])["compacted"] if start >= 0 else _NO_DAY
        return "" if day == _NO_DAY else day

    def facts(self) -> list[WrittenFact]:
        """Return the facts of the section, in order."""
        return [found for number in self._numbers() if (found := self._read(number)) is not None]

    def everywhere(self) -> list[tuple[int, WrittenFact]]:
        """Return all facts of the file, with line numbers from 1. Includes facts that the user moved."""
        found = ((number, self._read(number)) for number in self._anchored(range(len(self.lines))))
        return [(number + 1, fact) for number, fact in found if fact is not None]

    def forget(self, ids: Collection[str]) -> bool:
        """Remove the facts with these IDs wherever they are, edited or not. Return whether there was one."""
        before = len(self.lines)
        for number in reversed(self._anchored(range(before))):
            if anchors.parse(self.lines[number])["fact"] in ids:
                start = number
                while start and self.lines[start][:1] in (" ", "\t"):
                    start -= 1
                del self.lines[start : self._end_of_item(number, len(self.lines))]
        return len(self.lines) < before

    def remove(self, ids: Iterable[str]) -> None:
        """Remove the facts with these IDs, except those the user has edited."""
        wanted = set(ids)
        for number in reversed(self._numbers()):
            found = self._read(number)
            if found is not None and found.id in wanted and not found.is_own:
                del self.lines[number]

    def add(self, facts: Sequence[Fact], *, is_superseded: bool) -> None:
        """Append facts. Facts that hold go above superseded ones."""
        if not facts:
            return
        start, end = self._bounds()
        if start < 0:
            self._make_section()
            start, end = self._bounds()
        place = 0
        for number in self._numbers():
            found = self._read(number)
            if found is not None and found.fact.kind == SUPERSEDED and not is_superseded:
                place = place or number
                break
            place = self._end_of_item(number, end)
        lines = [fact.line for fact in facts]
        if not place:
            place = end
            while place > start + 1 and not self.lines[place - 1].strip():
                place -= 1
            lines.insert(0, "")
            if place < len(self.lines) and self.lines[place].strip():
                lines.append("")
        self.lines[place:place] = lines

    def note_day(self, day: str) -> None:
        """Record in the section's heading up to which day (ISO) the memory is condensed."""
        start, _ = self._bounds()
        if start >= 0 and day:
            title = anchors.strip(self.lines[start]).rstrip()
            self.lines[start] = f"{title} {anchors.render(compacted=day)}"

    def render(self) -> str:
        """Return the whole file."""
        return "\n".join(self.lines) + "\n"

    def _bounds(self) -> tuple[int, int]:
        """Return the section's first line, including its heading, and its end, or (-1, -1) if there is
        none.
        """
        start = -1
        for number, line in enumerate(self.lines):
            if start >= 0 and _HEADING_END.match(line):
                return start, number
            if start < 0 and line.startswith("## ") and "compacted" in anchors.parse(line):
                start = number
        return start, len(self.lines) if start >= 0 else -1

    def _numbers(self) -> list[int]:
        """Return the numbers of the lines that hold a fact."""
        start, end = self._bounds()
        return self._anchored(range(start + 1, end))

    def _anchored(self, numbers: Iterable[int]) -> list[int]:
        lines = ((number, self.lines[number]) for number in numbers)
        return [number for number, line in lines if "<!--" in line and "fact" in anchors.parse(line)]

    def _read(self, number: int) -> WrittenFact | None:
        line = self.lines[number].rstrip()
        pairs = anchors.parse(line)
        shown = anchors.strip(line)
        cited = [pairs.get(name, "") for name in ("grips", "turns", "chunks")]
        citations = Citations(*(tuple(filter(None, names.split(","))) for names in cited))
        match = _LINE.fullmatch(shown)
        is_own = match is None or pairs["fact"] != _id(shown, *cited) or self._goes_on(number)
        if match is None:
            text = shown.strip().removeprefix("- ")
            if not text:
                return None
            fact = Fact(text, "fact", citations)
        else:
            fact = Fact(
                match["text"], _KINDS[match["label"]], citations, match["date"] or "", not match["mark"]
            )
        return WrittenFact(fact, pairs["fact"], is_own)

    def _goes_on(self, number: int) -> bool:
        """Return whether the line below belongs to the same item, because the user wrote it there."""
        following = self.lines[number + 1] if number + 1 < len(self.lines) else ""
        return bool(following.strip()) and not following.startswith(("- ", "#"))

    def _end_of_item(self, number: int, end: int) -> int:
        while number + 1 < end and self._goes_on(number):
            number += 1
        return number + 1

    def _make_section(self) -> None:
        heading = f"{_NEW_HEADING} {anchors.render(compacted=_NO_DAY)}"
        stem = self.name.removesuffix(".md").removesuffix(".local")
        is_memory = f"{stem}.md" == MEMORY_FILE
        if not self.lines:
            self.lines = ["# Memory" if is_memory else f"# {stem}"]
        sections = [] if is_memory else DayFile("\n".join(self.lines)).sections
        if sections:
            # Below a session it would become part of its last turn.
            place = sections[0].start
            self.lines[place:place] = [heading, ""]
        else:
            self.lines += ["", heading]


def remembered_text(text: str, name: str, forgotten: Forgotten) -> str:
    """Return the text of the file `name` without forgotten facts."""
    file = FactFile(text, name)
    gone = set()
    for _, one in file.everywhere():
        cited = one.fact.citations
        if forgotten.covers_fact(one.id, cited.turns, cited.grips):
            gone.add(one.id)
    return file.render() if file.forget(gone) else text


def taken_facts(own: str, other: str, name: str) -> tuple[FactChange, str]:
    """Return the change that adds the facts of `other` to the file `name`, which reads `own`, and the rest
    of `other`.

    A fact that the user edited is their text and stays in `other`. The earlier `compacted` day wins, so that
    nothing is left uncondensed. The rest is "" if it holds no text.
    """
    file, target = FactFile(other, name), FactFile(own, name)
    facts = [one.fact for one in file.facts() if not one.is_own]
    present = {one.id for _, one in target.everywhere()}
    days = [target.compacted, file.compacted]
    added = tuple(fact for fact in facts if fact.id not in present)
    file.remove(fact.id for fact in facts)
    if not file.facts():
        file.lines = [line for line in file.lines if "compacted" not in anchors.parse(line)]
    says_something = any(line.strip() and not line.startswith("# ") for line in file.lines)
    change = FactChange(frozenset(), added, min(days) if all(days) else "")
    return change, file.render() if says_something else ""


def holds_lines(own: str, rest: str) -> bool:
    """Return whether every non-blank line of `rest` is in `own`."""
    return {line.strip() for line in rest.split("\n")} <= {"", *map(str.strip, own.split("\n"))}
