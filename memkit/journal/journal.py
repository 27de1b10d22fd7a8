"""Write the daily Markdown. The only module that writes memory files.

A day file has a section for each session, and inside it a section for each turn:

    # 2026-11-20

    ## 14:02 Staging gateway port <!-- session:fd0aee29-… branch:feature/gw -->

    ### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->
    **Asked** …

Every write holds a lock against other memkit processes, replaces the file atomically, and is keyed by the
turn's anchor: writing a turn twice changes nothing. What the user edited stays as it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from memkit.errors import JournalError
from memkit.hook.entries import note_own, note_redacted
from memkit.journal.day_edits import Removal, is_empty, merge, remove, remove_lines
from memkit.journal.day_file import DayFile
from memkit.journal.digest import Digest
from memkit.journal.facts import FactChange, FactFile
from memkit.journal.files import MemoryFiles
from memkit.journal.note import Note

logger = logging.getLogger(__name__)

_TURN = re.compile(r"turn:(\S+) ")


class Growing(NamedTuple):
    """A turn that may have been written before it was complete.

    `hashes` are the hashes its section may have. `is_written` is set once it certainly was written.
    """

    hashes: tuple[str, ...]
    is_written: bool


class Journal(MemoryFiles):
    """The memory files of one project: turns, bullets, facts, and notes."""

    def write(
        self, digests: Iterable[Digest], growing: Mapping[str, Growing] | None = None
    ) -> list[Digest]:
        """Write the turns that are missing. Return those that changed a file.

        Replaces the section of a `growing` turn (by ID) if it still reads as it was written. Durable on
        return. Raise `JournalError`.
        """
        by_day: dict[str, list[Digest]] = {}
        for digest in digests:
            by_day.setdefault(self.day_for(digest.day), []).append(digest)
        if not by_day:
            return []
        with self._locked():
            renamed = self._renamed_turns()
            return [
                digest
                for day, group in sorted(by_day.items())
                for digest in self._write_day(day, group, growing or {}, renamed)
            ]

    def change(
        self, day: str, change: Callable[[DayFile], int], own: Container[str] = ()
    ) -> int:
        """Apply `change` to a day and return its result. Durable on return. Raise `JournalError`.

        Its additions count as written by this home if `own` contains it (see `OwnEntries`).
        """
        results: list[int] = []

        def record(before: str, after: str) -> None:
            if self.home is not None:
                note_own(self.home, self.project.root, before, after, own)

        path = self.path(self.day_for(day))
        with self._locked():
            self._change_day(path, lambda content: results.append(change(content)), record=record)
            return results[-1]

    def look_at(self, day: str, redact: Callable[[int, str], str]) -> None:
        """Pass the text of a day through `redact`, as the method `redact` does, without changing it.

        Raise `JournalError`.
        """
        self.day(day).redact(redact, {})

    def redact(
        self,
        day: str,
        redact: Callable[[int, str], str],
        growing: Mapping[str, Growing],
        will_write: Callable[[str, str], None],
    ) -> bool:
        """Pass the text of a day through `redact`, piece by piece. Return whether the file changed.

        Keeps anchors and everything that `redact` returns unchanged. An unedited `growing` section
        stays one: `will_write` gets its turn and its new hash before the write. Durable on return. Raise
        `JournalError`.
        """
        known = {turn: one.hashes for turn, one in growing.items()}

        def change(content: DayFile) -> None:
            before = list(content.lines)
            hashes = content.redact(redact, known)
            if content.lines != before:
                for turn, section in hashes.items():
                    will_write(turn, section)

        def record(before: str, after: str) -> None:
            if self.home is not None:
                note_redacted(self.home, self.project.root, before, after)

        with self._locked():
            return self._change_day(self.path(day), change, record=record)

    def summarize(self, day: str, turns: Sequence[str], bullets: Sequence[str]) -> bool:
        """Insert the bullets of a segment above its turns; see `DayFile.summarize`.

        Durable on return. Raise `JournalError`, also if git tracks the day while the memory is not shared:
        bullets belong above their turns and cannot go elsewhere.
        """
        if self.is_public(day):
            raise JournalError(f"git tracks {self.path(day)}, and memory.shared is off: it gets no bullets")
        with self._locked():
            return self._change_day(
                self.path(day),
                lambda content: content.summarize(turns, bullets),
                record=self._note_own,
            )

    def change_facts(self, name: str, change: FactChange, keep: Callable[[str], object]) -> bool:
        """Change the facts in the file `name`; see `FactChange.apply`. Return whether that changed the
        file.

        `keep` gets the text about to be replaced. If it raises, nothing is written. Durable on return. Raise
        `JournalError`.
        """

        def apply(before: str) -> str:
            after = change.apply(before, name)
            if after != before:
                keep(before)
            return after

        self._refuse_tracked(self.directory / name)
        with self._locked():
            return self._rewrite(self.directory / name, apply, record=self._note_own)

    def add_note(self, note: Note) -> bool:
        """Write a note. Return False if it is already there. Durable on return. Raise `JournalError`."""
        with self._locked():
            return self._change_day(
                self.path(self.day_for(note.day)),
                lambda content: content.insert_note(note),
                record=self._note_own,
            )

    def edit(self, day: str, before: bytes, edited: bytes) -> None:
        """Store a user's edit of a day that read `before`; see `merge` for changes made meanwhile.

        Durable on return. Raise `JournalError`.
        """
        old, new = (data.decode("utf-8", "surrogateescape") for data in (before, edited))
        with self._locked():
            self._rewrite(
                self.path(day), lambda text: merge(old, new, text), record=self._note_own
            )

    def remove(self, day: str, removal: Removal) -> bool:
        """Remove what `removal` names from a day, and the file itself if nothing else is in it.

        Return whether anything was there. Durable on return. Raise `JournalError`.
        """
        with self._locked():
            return self._change_day(
                self.path(day), lambda content: remove(content, removal), may_vanish=True
            )

    def remove_facts(self, path: Path, ids: Collection[str]) -> bool:
        """Remove the facts with these IDs, edited or not, from a Markdown file of the memory.

        Return whether one was there. Durable on return. Raise `JournalError`.
        """

        def apply(text: str) -> str:
            content = FactFile(text, path.name)
            return content.render() if content.forget(ids) else text

        with self._locked():
            return self._rewrite(path, apply)

    def remove_lines(self, path: Path, start: int, end: int) -> bool:
        """Remove the lines `start` to `end` (from 1, inclusive) from a Markdown file of the memory.

        Headings of sections and bullets stay. Raise `JournalError`.
        """

        def apply(text: str) -> str | None:
            content = DayFile(text)
            if not remove_lines(content, start, end):
                return text
            return None if is_empty(content) else content.render()

        with self._locked():
            return self._rewrite(path, apply)

    def _write_day(
        self,
        day: str,
        group: list[Digest],
        growing: Mapping[str, Growing],
        renamed: Collection[str],
    ) -> list[Digest]:
        nearby = _NearbyFiles(self, day)
        changed: list[Digest] = []

        def change(content: DayFile) -> None:
            changed[:] = [
                digest
                for digest in group
                if (digest.turn not in renamed or content.find_turn(digest.turn) is not None)
                and self._apply(content, digest, growing.get(digest.turn), nearby)
            ]

        self._change_day(self.path(day), change, record=self._note_own)
        return changed

    def _apply(
        self, content: DayFile, digest: Digest, known: Growing | None, nearby: _NearbyFiles
    ) -> bool:
        present = content.find_turn(digest.turn)
        if present is None:
            if known is not None and known.is_written:
                # Gone from the file: the user removed it, so it stays out. But if git began to track the file
                # while the turn grew, the turn moves to the other file.
                if not nearby.holds_less(digest):
                    return False
            elif nearby.hold(digest.turn):
                return False
            content.insert(digest)
            return True
        count = content.written_lines(present, known.hashes) if known else 0
        section = digest.section.split("\n")
        if not count or content.lines[present.start : present.start + count] == section:
            return False
        content.replace(present, count, digest.section)
        return True

    def renamed_days(self, *, skips_unreadable: bool = False) -> list[str]:
        """Return the files that are not named like days but hold turns, notes, or bullets, without suffix,
        sorted.

        The user may rename a day or move it to a folder. All methods accept such a name as a day. Raise
        `JournalError` for a file that cannot be read, unless those are skipped.
        """
        found = []
        days = {self.path(day) for day in self.days()}
        for path in self.markdown():
            name = path.relative_to(self.directory).as_posix()
            if path not in days:
                try:
                    text = self.text_if_used(name)
                except JournalError as error:
                    if not skips_unreadable:
                        raise
                    logger.warning("%s", error)
                    continue
                if any(mark in text for mark in ("turn:", "note:", "grip:")):
                    found.append(name.removesuffix(".md"))
        return found

    def _renamed_turns(self) -> set[str]:
        """Return the turns in files that are not named like days."""
        # A file that cannot be read must not stop the capture of another one.
        contents = map(self.day, self.renamed_days(skips_unreadable=True))
        sections = (section for content in contents for section in content.sections)
        return {section.pairs["turn"] for section in sections if "turn" in section.pairs}


class _NearbyFiles:
    """Other files that may already hold a turn of a day. Read once, when first needed.

    The machine's time zone may have changed since the turn was written (zones are up to 26 hours apart), or
    git may track the day's file now.
    """

    def __init__(self, journal: Journal, day: str) -> None:
        self._journal = journal
        self._day = day
        self._texts: list[tuple[frozenset[str], str]] | None = None

    def hold(self, turn: str) -> bool:
        """Return whether one of them has a section of the turn."""
        if self._texts is None:
            texts = [self._journal.text_if_used(f"{day}.md") for day in self._days()]
            self._texts = [(frozenset(_TURN.findall(text)), text) for text in texts]
        return any(
            turn in named and DayFile(text).find_turn(turn) is not None
            for named, text in self._texts
        )

    def holds_less(self, digest: Digest) -> bool:
        """Return whether the other file of the same day has a different text of the turn."""
        twin = digest.day if self._day != digest.day else f"{digest.day}.local"
        content = DayFile(self._journal.text_if_used(f"{twin}.md"))
        section = content.find_turn(digest.turn)
        return section is not None and content.text(section).strip() != digest.section.strip()

    def _days(self) -> list[str]:
        day = date.fromisoformat(self._day[:10])
        near = [f"{day + timedelta(n)}{kind}" for n in range(-2, 3) for kind in ("", ".local")]
        return [one for one in near if one != self._day]
