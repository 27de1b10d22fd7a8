"""The facts that `memkit compact` keeps in a memory file: a section of its own, a line for each fact.

    ## Facts <!-- compacted:2026-11-20 -->

    - Decided: The staging gateway listens on 7443. (2026-11-20) <!-- fact:1f0c… turns:8ad3df7f -->
    - Superseded: The staging gateway listened on 443. (2026-11-18) <!-- fact:77ab… chunks:20e3d2c8274c -->

`compacted` is the last day that is condensed here. A fact's id is a hash of its line and of what it cites,
so a line that no longer has its id was changed by a person: it is theirs, and stays. So does whatever
else stands in the section.
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

MEMORY_FILE: Final = "MEMORY.md"
"""The file for durable facts, in the memory directory of a project."""

SUPERSEDED = "superseded"

LABELS = {"decision": "Decided", "preference": "Prefers", "fact": "Fact", SUPERSEDED: "Superseded"}
"""The kinds of facts, and how each begins its line."""

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
    """What a fact rests on: grips of bullets, turns, and chunks of other text (the ids people see)."""

    grips: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.grips or self.turns or self.chunks)

    @property
    def is_full(self) -> bool:
        """Whether an id may have been left out because the anchor had no room for it."""
        room = anchors.VALUE_CHARACTERS - ID_CHARACTERS - 1
        return any(len(",".join(ids)) > room for ids in (self.grips, self.turns, self.chunks))

    @classmethod
    def joined(cls, parts: Iterable[Citations]) -> Citations:
        """All of `parts`, each id once, the first ones as far as an anchor has room."""
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
        text: without label, date and mark.
        kind: one of `LABELS`.
        citations: what it rests on.
        date: of the newest of these (ISO), "" if none has one.
        is_verified: whether every identifier, number, path and quotation in it stands in them.
    """

    text: str
    kind: str
    citations: Citations
    date: str = ""
    is_verified: bool = True

    @property
    def id(self) -> str:
        """Of the line, and of what it cites."""
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
        """As it stands in the file."""
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
    """A fact that stands in a file: `id` as its anchor says. One that `is_own` is a person's by now."""

    fact: Fact
    id: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of the facts in a file: those that go, by id, those that come, and the day `compacted`."""

    removed: frozenset[str]
    added: tuple[Fact, ...]
    compacted: str = ""

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def apply(self, text: str, name: str) -> str:
        """The text of the file `name` with this change; the same text if it has been made before.

        Lines go that still read as memkit wrote them. Facts that are there already are not added again;
        superseded ones come last. A section that is missing is made: in a day file above the sessions, in
        another at the end.
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
        """The last day (ISO) that is condensed here; "" if that is not known."""
        start, _ = self._bounds()
        day = anchors.parse(self.lines[start])["compacted"] if start >= 0 else _NO_DAY
        return "" if day == _NO_DAY else day

    def facts(self) -> list[WrittenFact]:
        """The facts of the section, in order."""
        return [found for number in self._numbers() if (found := self._read(number)) is not None]

    def everywhere(self) -> list[tuple[int, WrittenFact]]:
        """All facts of the file with the numbers of their lines, from 1; also those that a person moved."""
        found = ((number, self._read(number)) for number in self._anchored(range(len(self.lines))))
        return [(number + 1, fact) for number, fact in found if fact is not None]

    def forget(self, ids: Collection[str]) -> bool:
        """Take out the facts of these ids wherever they stand, also what a person made of them.

        Returns whether there was one.
        """
        before = len(self.lines)
        for number in reversed(self._anchored(range(before))):
            if anchors.parse(self.lines[number])["fact"] in ids:
                start = number
                while start and self.lines[start][:1] in (" ", "\t"):
                    start -= 1
                del self.lines[start : self._end_of_item(number, len(self.lines))]
        return len(self.lines) < before

    def remove(self, ids: Iterable[str]) -> None:
        """Take out the facts of these ids, but none that is a person's."""
        wanted = set(ids)
        for number in reversed(self._numbers()):
            found = self._read(number)
            if found is not None and found.id in wanted and not found.is_own:
                del self.lines[number]

    def add(self, facts: Sequence[Fact], *, is_superseded: bool) -> None:
        """Put lines below those there are; facts that are not superseded above those that are."""
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
        """Say in the section's heading up to which day (ISO) the memory is condensed; "" says nothing."""
        start, _ = self._bounds()
        if start >= 0 and day:
            title = anchors.strip(self.lines[start]).rstrip()
            self.lines[start] = f"{title} {anchors.render(compacted=day)}"

    def render(self) -> str:
        """The whole file."""
        return "\n".join(self.lines) + "\n"

    def _bounds(self) -> tuple[int, int]:
        """Where the section begins, its heading included, and ends; (-1, -1) if there is none."""
        start = -1
        for number, line in enumerate(self.lines):
            if start >= 0 and _HEADING_END.match(line):
                return start, number
            if start < 0 and line.startswith("## ") and "compacted" in anchors.parse(line):
                start = number
        return start, len(self.lines) if start >= 0 else -1

    def _numbers(self) -> list[int]:
        """The numbers of the lines that hold a fact."""
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
        """Whether the line below belongs to the same item: a person wrote it there."""
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
            # Below a session it would be a part of its last turn.
            place = sections[0].start
            self.lines[place:place] = [heading, ""]
        else:
            self.lines += ["", heading]
