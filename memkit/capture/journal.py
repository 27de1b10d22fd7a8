"""Writes the daily markdown. The one module that writes memory files.

A day file holds a section for each session and in it a section for each turn:

    # 2026-11-20

    ## 14:02 Staging gateway port <!-- session:fd0aee29-… branch:feature/gw -->

    ### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->
    **Asked** …

Every write is locked against other memkit processes, replaces the file atomically, and is keyed by the
turn's anchor: writing a turn twice changes nothing. What a person edited is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from memkit.capture.day_file import DayFile
from memkit.capture.day_merge import merge
from memkit.capture.day_removal import Removal, remove, remove_lines
from memkit.capture.digest import Digest
from memkit.capture.facts import FactChange, FactFile
from memkit.capture.memory_files import MemoryFiles, read_file
from memkit.capture.note import Note
from memkit.capture.sessions import Growing

_TURN = re.compile(r"turn:(\S+) ")


class Journal(MemoryFiles):
    """What stands in the memory files of one project: turns, bullets, facts and notes."""

    def write(
        self, digests: Iterable[Digest], growing: Mapping[str, Growing] | None = None
    ) -> list[Digest]:
        """Write the turns that are not there yet; return those that changed a file.

        The section of a `growing` turn (by id) is replaced if it still reads as it was written.
        Durable when it returns. Raises `JournalError`.
        """
        by_day: dict[str, list[Digest]] = {}
        for digest in digests:
            by_day.setdefault(digest.day, []).append(digest)
        if not by_day:
            return []
        with self._locked():
            return [
                digest
                for day, group in sorted(by_day.items())
                for digest in self._write_day(day, group, growing or {})
            ]

    def change(self, day: str, change: Callable[[DayFile], int]) -> int:
        """Have `change` work on a day, and return what it returns; durable then. Raises `JournalError`."""
        with self._locked():
            content = self.day(day)
            before = list(content.lines)
            result = change(content)
            if content.lines != before:
                self._save(day, content)
            return result

    def look_at(self, day: str, redact: Callable[[int, str], str]) -> None:
        """Pass the text of a day through `redact`, as `redact` does, and change nothing.

        Raises `JournalError`.
        """
        self.day(day).redact(redact, {})

    def redact(
        self,
        day: str,
        redact: Callable[[int, str], str],
        growing: Mapping[str, Growing],
        will_write: Callable[[str, str], None],
    ) -> bool:
        """Pass the text of a day through `redact`, piece by piece; return whether that changed the file.

        Anchors stay, and so does all that `redact` gives back as it was, by whomever it is. A `growing`
        section that nobody edited stays one: `will_write` is told its turn and the hash that it is about
        to have. Durable when it returns. Raises `JournalError`.
        """
        with self._locked():
            content = self.day(day)
            before = list(content.lines)
            known = {turn: one.hashes for turn, one in growing.items()}
            hashes = content.redact(redact, known)
            if content.lines == before:
                return False
            for turn, section in hashes.items():
                will_write(turn, section)
            self._save(day, content)
            return True

    def summarize(self, day: str, turns: Sequence[str], bullets: Sequence[str]) -> bool:
        """Put the bullets of a segment, a line each, above its turns; see `DayFile.summarize`.

        Durable when it returns. Raises `JournalError`.
        """
        with self._locked():
            content = self.day(day)
            if not content.summarize(turns, bullets):
                return False
            self._save(day, content)
            return True

    def change_facts(self, name: str, change: FactChange, keep: Callable[[str], object]) -> bool:
        """Change the facts in the file `name`; see `FactChange.apply`. False if that changes nothing.

        `keep` is given the text that is about to be replaced; if it raises, nothing is written. Durable
        when it returns. Raises `JournalError`.
        """
        with self._locked():
            before = self.text(name)
            after = change.apply(before, name)
            if after == before:
                return False
            keep(before)
            self._replace(self.directory / name, after)
            return True

    def add_note(self, note: Note) -> bool:
        """Write a note; False if it stands there already. Durable when it returns. Raises `JournalError`."""
        with self._locked():
            content = self.day(note.day)
            if not content.insert_note(note):
                return False
            self._save(note.day, content)
            return True

    def edit(self, day: str, before: bytes, edited: bytes) -> None:
        """Take over what a person made of a day that read `before`; see `merge` for what came meanwhile.

        Durable when it returns. Raises `JournalError`.
        """
        with self._locked():
            old, new = (data.decode("utf-8", "surrogateescape") for data in (before, edited))
            text = merge(old, new, read_file(self.path(day)))
            self._replace(self.path(day), text)

    def remove(self, day: str, removal: Removal) -> bool:
        """Take what `removal` names out of a day, and the file itself if nothing else is in it.

        Returns whether anything was there. Durable when it returns. Raises `JournalError`.
        """
        with self._locked():
            content = self.day(day)
            if not remove(content, removal):
                return False
            self._keep_rest(self.path(day), content)
            return True

    def remove_facts(self, path: Path, ids: Collection[str]) -> bool:
        """Take the facts of these ids, edited or not, out of a markdown file of the memory directory.

        Returns whether one was there. Durable when it returns. Raises `JournalError`.
        """
        with self._locked():
            content = FactFile(read_file(path), path.name)
            if not content.forget(ids):
                return False
            self._replace(path, content.render())
            return True

    def remove_lines(self, path: Path, start: int, end: int) -> bool:
        """Take the lines `start` to `end` (from 1, inclusive) out of a markdown file of the memory directory.

        What bounds the sections of turns, and bullets, stays. Raises `JournalError`.
        """
        with self._locked():
            content = DayFile(read_file(path))
            if not remove_lines(content, start, end):
                return False
            self._keep_rest(path, content)
            return True

    def _write_day(
        self, day: str, group: list[Digest], growing: Mapping[str, Growing]
    ) -> list[Digest]:
        content = self.day(day)
        beside = _DaysBeside(self, day)
        changed = []
        renamed = self._renamed_turns()
        for digest in group:
            if digest.turn in renamed and content.find_turn(digest.turn) is None:
                continue
            if self._apply(content, digest, growing.get(digest.turn), beside):
                changed.append(digest)
        if changed:
            self._save(day, content)
        return changed

    def _apply(
        self, content: DayFile, digest: Digest, known: Growing | None, beside: _DaysBeside
    ) -> bool:
        present = content.find_turn(digest.turn)
        if present is None:
            # Written before, but gone from the file: a person took it out, so it stays out.
            if (known is not None and known.is_written) or beside.hold(digest.turn):
                return False
            content.insert(digest)
            return True
        count = content.written_lines(present, known.hashes) if known else 0
        section = digest.section.split("\n")
        if not count or content.lines[present.start : present.start + count] == section:
            return False
        content.replace(present, count, digest.section)
        return True

    def _renamed_turns(self) -> set[str]:
        """The turns in files that are no days: a person may have renamed a day, or moved it to a folder."""
        found: set[str] = set()
        days = {self.path(day) for day in self.days()}
        for path in sorted(self.directory.rglob("*.md")):
            if path not in days and path.is_file() and not path.is_symlink():
                text = read_file(path)
                if "turn:" in text:
                    pairs = (section.pairs for section in DayFile(text).sections)
                    found.update(one["turn"] for one in pairs if "turn" in one)
        return found


class _DaysBeside:
    """The days beside one, read once, when first asked for.

    One of them holds a turn of this day if the machine's time zone has changed since. Zones lie up to 26
    hours apart.
    """

    def __init__(self, files: MemoryFiles, day: str) -> None:
        self._files = files
        self._day = date.fromisoformat(day)
        self._texts: list[tuple[frozenset[str], str]] | None = None

    def hold(self, turn: str) -> bool:
        """Whether one of them has a section of the turn."""
        if self._texts is None:
            days = ((self._day + timedelta(days)).isoformat() for days in (-1, 1, -2, 2))
            texts = [read_file(self._files.path(day)) for day in days]
            self._texts = [(frozenset(_TURN.findall(text)), text) for text in texts]
        return any(
            turn in named and DayFile(text).find_turn(turn) is not None
            for named, text in self._texts
        )
