"""The facts that `memkit compact` keeps in a memory file: one section, one line per fact.

    ## Facts <!-- compacted:2026-11-20 -->

    - Decided: The staging gateway listens on 7443. (2026-11-20) <!-- fact:1f0c… turns:8ad3df7f -->
    - Pattern: Ports are set in `deploy/gateway.yaml`. (2026-11-18) <!-- fact:77ab… chunks:20e3d2c8274c -->

`compacted` is the last day condensed here. The rollup of a week, month, or year is a file of facts, too: its
section has `rollup`, a hash of what it was condensed from, and its first line a title.

A fact's ID is a hash of its line and its citations. A line that no longer matches its ID was edited: it
belongs to the user and stays. So does all other text. `supersedes` names those citations of a fact that said
what no longer holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from memkit import anchors
from memkit.anchors import UNVERIFIED
from memkit.journal.day_file import DayFile
from memkit.journal.markup import ID_CHARACTERS, short_id
from memkit.privacy.tombstones import Forgotten

MEMORY_FILE: Final = "MEMORY.md"
"""The file for lasting facts, in a project's memory directory."""

SUPERSEDED = "superseded"

_ROLLUP_FILE = re.compile(r"[0-9]{4}(?:-(?:W?[0-9]{2}))?(?:\.local)?\.md")


def is_fact_file(name: str) -> bool:
    """Return whether facts belong into the file of that name: `MEMORY.md`, or the rollup `2026-W47.md`."""
    return name == MEMORY_FILE or _ROLLUP_FILE.fullmatch(name) is not None


LABELS = {
    "decision": "Decided",
    "preference": "Prefers",
    "pattern": "Pattern",
    "fact": "Fact",
    SUPERSEDED: "Superseded",
}
"""The kinds of facts, and the label that begins each line."""

_KINDS = {label: kind for kind, label in LABELS.items()}
_LINE = re.compile(
    rf"- (?P<label>{'|'.join(_KINDS)}): (?P<text>.+?)"
    rf"(?: \((?P<date>\d{{4}}-\d\d-\d\d)\))?(?P<mark> \({UNVERIFIED}\))?"
)
_HEADING_END = re.compile(r"#{1,2} ")
_NEW_HEADING = "## Facts"
NO_DAY = "-"
"""The `compacted` day of a section before the first compaction of all memory."""

NO_BASIS = "-"
"""The `rollup` of a section that lost a fact: it is to be made again."""


@dataclass(frozen=True, slots=True)
class Citations:
    """The sources of a fact: bullets, turns, and chunks of other text, by the IDs users see."""

    grips: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.grips or self.turns or self.chunks)

    @property
    def values(self) -> dict[str, str]:
        """The IDs as values of an anchor, by key."""
        lists = {"grips": self.grips, "turns": self.turns, "chunks": self.chunks}
        return {key: ",".join(ids) for key, ids in lists.items()}

    @property
    def is_full(self) -> bool:
        """Whether the anchor is full, so that citations may be missing from it."""
        room = anchors.VALUE_CHARACTERS - ID_CHARACTERS - 1
        return any(len(value) > room for value in self.values.values())

    @classmethod
    def joined(cls, parts: Iterable[Citations]) -> Citations:
        """Combine citations, each ID once, as many as fit into an anchor."""
        known = list(parts)
        return cls(
            fitting(one.grips for one in known),
            fitting(one.turns for one in known),
            fitting(one.chunks for one in known),
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """All IDs, of whatever kind."""
        return (*self.grips, *self.turns, *self.chunks)


def fitting(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the IDs of all groups without duplicates, as many as fit into one anchor."""
    names = list(dict.fromkeys(chain.from_iterable(groups)))
    while len(",".join(names)) > anchors.VALUE_CHARACTERS:
        names.pop()
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. Its `text` is without label, date, and mark; its `kind` is one of `LABELS`.

    `date` is the newest date (ISO) of its citations, or "". A fact is verified if every identifier, number,
    path, and quotation in it appears in them. `supersedes` are the IDs of those citations that said what no
    longer holds because of this fact.
    """

    text: str
    kind: str
    citations: Citations
    date: str = ""
    is_verified: bool = True
    supersedes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """A hash of the line and its citations."""
        superseded = [",".join(self.supersedes)] if self.supersedes else []
        return short_id(self.shown, *self.citations.values.values(), *superseded)

    @property
    def shown(self) -> str:
        """The line without its anchor."""
        date = f" ({self.date})" if self.date else ""
        mark = "" if self.is_verified else f" ({UNVERIFIED})"
        return f"- {LABELS[self.kind]}: {self.text}{date}{mark}"

    @property
    def line(self) -> str:
        """The line as written to the file."""
        check = "" if self.is_verified else UNVERIFIED
        values = {**self.citations.values, "supersedes": ",".join(self.supersedes)}
        return f"{self.shown} {anchors.render(fact=self.id, **values, check=check)}"


class WrittenFact(NamedTuple):
    """A fact read from a file, with the ID in its anchor. `is_own` means that the user has edited it."""

    fact: Fact
    id: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of the facts in a file: IDs to remove, facts to add, and the new `compacted` day.

    `basis` and `title` are those of a rollup.
    """

    removed: frozenset[str]
    added: tuple[Fact, ...]
    compacted: str = ""
    basis: str = ""
    title: str = ""

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def apply(self, text: str, name: str) -> str:
        """Return the text of the file `name` after this change, or the same text if it was already made.

        Removes only lines that still read as memkit wrote them. Skips facts that are already there.
        Superseded facts come last. A missing section is created above the sessions of a day, or at the end
        of another file.
        """
        content = FactFile(text, name)
        before = list(content.lines)
        present = {one.id for one in content.facts()}
        added = [fact for fact in self.added if fact.id not in present]
        content.remove(self.removed)
        content.add([fact for fact in added if fact.kind != SUPERSEDED], is_superseded=False)
        content.add([fact for fact in added if fact.kind == SUPERSEDED], is_superseded=True)
        content.note(self.compacted, self.basis)
        content.set_title(self.title)
        return content.render() if content.lines != before else text


class FactFile:
    """A memory file as lines, with its section of facts."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines = text.rstrip("\n").split("\n") if text else []

    @property
    def compacted(self) -> str:
        """The last day (ISO) condensed here, or "" if unknown."""
        section = self._section()
        day = anchors.parse(self.lines[section.start])["compacted"] if section else NO_DAY
        return "" if day == NO_DAY else day

    @property
    def basis(self) -> str:
        """A hash of what a rollup was condensed from, or ""."""
        section = self._section()
        return anchors.parse(self.lines[section.start]).get("rollup", "") if section else ""

    @property
    def title(self) -> str:
        """The first line, without the name of the file."""
        plain = anchors.strip(self.lines[0]).rstrip() if self.lines else ""
        return plain.removeprefix("# ").removeprefix(self._stem).strip() if plain.startswith("# ") else ""

    def facts(self) -> list[WrittenFact]:
        """Return the facts of the section, in order."""
        return [found for _, found in self._read(self._section())]

    def everywhere(self) -> list[tuple[int, WrittenFact]]:
        """Return all facts of the file, with line numbers from 1. Includes facts that the user moved."""
        return [(number + 1, found) for number, found in self._read(range(len(self.lines)))]

    def forget(self, ids: Collection[str]) -> bool:
        """Remove the facts with these IDs wherever they are, edited or not. Return whether there was one."""
        before = len(self.lines)
        anchored = [n for n, line in enumerate(self.lines) if anchors.parse(line).get("fact") in ids]
        for number in reversed(anchored):
            if number < len(self.lines):  # else it went with the item below it
                start = number
                while start and self.lines[start][:1] in (" ", "\t"):
                    start -= 1
                del self.lines[start : self._end_of_item(number)]
        is_changed = len(self.lines) < before
        if is_changed and self.basis:  # have the rollup made again from the rest
            self.note(NO_DAY, NO_BASIS)
            self.drop_title()
        return is_changed

    def drop_title(self) -> bool:
        """Remove the title of a rollup, unless the user changed it, and have the rollup made again.

        The sources of a title are not recorded. Return whether there was one.
        """
        plain = anchors.strip(self.lines[0]).rstrip() if self.lines else ""
        if not plain or anchors.parse(self.lines[0]).get("rollup") != short_id(plain):
            return False
        self.lines[0] = f"# {self._stem}"
        self.note(NO_DAY, NO_BASIS)
        return True

    def remove(self, ids: Collection[str]) -> None:
        """Remove the facts with these IDs from the section, except those the user has edited."""
        for number, found in reversed(self._read(self._section())):
            if found.id in ids and not found.is_own:
                del self.lines[number]

    def add(self, facts: Sequence[Fact], *, is_superseded: bool) -> None:
        """Append facts. Facts that hold go above superseded ones."""
        if not facts:
            return
        section = self._section() or self._make_section()
        place = 0
        for number, found in self._read(section):
            if found.fact.kind == SUPERSEDED and not is_superseded:
                place = place or number
                break
            place = min(self._end_of_item(number), section.stop)
        lines = [fact.line for fact in facts]
        if not place:
            place = section.stop
            while place > section.start + 1 and not self.lines[place - 1].strip():
                place -= 1
            lines.insert(0, "")
            if place < len(self.lines) and self.lines[place].strip():
                lines.append("")
        self.lines[place:place] = lines

    def note(self, day: str, basis: str) -> None:
        """Record in the section's heading up to which day (ISO) the memory is condensed, or from what."""
        section = self._section()
        if section and (day or basis):
            heading = self.lines[section.start]
            pairs = anchors.parse(heading)
            pairs |= {key: value for key, value in (("compacted", day), ("rollup", basis)) if value}
            self.lines[section.start] = f"{anchors.strip(heading).rstrip()} {anchors.render(**pairs)}"

    def set_title(self, title: str) -> None:
        """Put `title` behind the name of the file in its first line, unless the user has changed the line."""
        if not title or not self.lines:
            return
        plain = anchors.strip(self.lines[0]).rstrip()
        name = f"# {self._stem}"
        if plain == name or anchors.parse(self.lines[0]).get("rollup") == short_id(plain):
            named = f"{name} {title}"
            self.lines[0] = f"{named} {anchors.render(rollup=short_id(named))}"

    def render(self) -> str:
        """Return the whole file."""
        return "\n".join(self.lines) + "\n"

    @property
    def _stem(self) -> str:
        return self.name.removesuffix(".md").removesuffix(".local")

    def _section(self) -> range:
        start = -1
        for number, line in enumerate(self.lines):
            if start >= 0 and _HEADING_END.match(line):
                return range(start, number)
            if start < 0 and line.startswith("## ") and "compacted" in anchors.parse(line):
                start = number
        return range(start, len(self.lines)) if start >= 0 else range(0)

    def _read(self, numbers: range) -> list[tuple[int, WrittenFact]]:
        found = []
        for number in numbers:
            line = self.lines[number].rstrip()
            pairs = anchors.parse(line) if "<!--" in line else {}
            text = anchors.strip(line)
            if "fact" in pairs and text.strip().removeprefix("- "):
                fact = _parse(text, pairs)
                is_own = fact.shown != text or fact.id != pairs["fact"] or self._goes_on(number)
                found.append((number, WrittenFact(fact, pairs["fact"], is_own)))
        return found

    def _goes_on(self, number: int) -> bool:
        """Return whether the next line continues the same list item, as when the user wrapped it."""
        following = self.lines[number + 1] if number + 1 < len(self.lines) else ""
        return bool(following.strip()) and not following.startswith(("- ", "#"))

    def _end_of_item(self, number: int) -> int:
        while self._goes_on(number):
            number += 1
        return number + 1

    def _make_section(self) -> range:
        heading = f"{_NEW_HEADING} {anchors.render(compacted=NO_DAY)}"
        is_memory = f"{self._stem}.md" == MEMORY_FILE
        if not self.lines:
            self.lines = ["# Memory" if is_memory else f"# {self._stem}"]
        sections = [] if is_memory else DayFile("\n".join(self.lines)).sections
        if sections:
            # Below a session it would become part of its last turn.
            self.lines[sections[0].start : sections[0].start] = [heading, ""]
        else:
            self.lines += ["", heading]
        return self._section()


def _parse(shown: str, pairs: Mapping[str, str]) -> Fact:
    keys = ("grips", "turns", "chunks", "supersedes")
    *cited, superseded = (tuple(filter(None, pairs.get(key, "").split(","))) for key in keys)
    citations = Citations(*cited)
    match = _LINE.fullmatch(shown)
    if match is None:
        return Fact(shown.strip().removeprefix("- "), "fact", citations, supersedes=superseded)
    kind = _KINDS[match["label"]]
    return Fact(match["text"], kind, citations, match["date"] or "", not match["mark"], superseded)


def superseding_facts(text: str, name: str) -> dict[str, Fact]:
    """Return the facts of the file `name` that supersede something, by the ID of each superseded entry.

    An entry is a turn, a bullet, or a chunk of other text. If several facts supersede it, the newest one
    that holds counts.
    """
    facts = [found.fact for _, found in FactFile(text, name).everywhere()]
    facts.sort(key=lambda fact: (fact.kind != SUPERSEDED, fact.date))
    return {entry: fact for fact in facts if fact.is_verified for entry in fact.supersedes}


def remembered_text(text: str, name: str, forgotten: Forgotten) -> str:
    """Return the text of the file `name` without forgotten facts."""
    file = FactFile(text, name)
    gone = {
        one.id
        for _, one in file.everywhere()
        if forgotten.covers_fact(one.id, one.fact.citations.turns, one.fact.citations.grips)
    }
    return file.render() if file.forget(gone) else text


def taken_facts(own: str, other: str, name: str) -> tuple[FactChange, str]:
    """Return the change that adds the facts of `other` to the file `name`, and the remaining text of `other`.

    `own` is the present text of the file. A fact that the user edited is their text and stays in `other`. The
    earlier `compacted` day wins, so that nothing is left uncondensed. The rest is "" if it holds no text.
    """
    file, target = FactFile(other, name), FactFile(own, name)
    facts = [one.fact for one in file.facts() if not one.is_own]
    present = {one.id for _, one in target.everywhere()}
    days = [target.compacted, file.compacted]
    added = tuple(fact for fact in facts if fact.id not in present)
    file.remove({fact.id for fact in facts})
    if not file.facts():
        file.lines = [line for line in file.lines if "compacted" not in anchors.parse(line)]
    says_something = any(line.strip() and not line.startswith("# ") for line in file.lines)
    change = FactChange(frozenset(), added, min(days) if all(days) else "")
    return change, file.render() if says_something else ""


def holds_lines(own: str, rest: str) -> bool:
    """Return whether every non-blank line of `rest` is in `own`."""
    return {line.strip() for line in rest.split("\n")} <= {"", *map(str.strip, own.split("\n"))}
