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

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from memkit.capture.brief import days as days_of
from memkit.capture.day_file import DayFile, encoded
from memkit.capture.day_merge import merge
from memkit.capture.day_removal import Removal, is_empty, remove, remove_lines
from memkit.capture.digest import Digest
from memkit.capture.facts import FactChange, FactFile
from memkit.capture.note import Note
from memkit.errors import JournalError
from memkit.paths import (
    MEMORY_DIRECTORY,
    PRIVATE_FILE,
    make_private_directory,
    sync_directory,
    write_durably,
)
from memkit.project import Project

LOCK_SECONDS = 30.0
"""How long to wait for another process that writes to the same journal."""

_PRIVATE_IGNORE = "*\n"
_SHARED_IGNORE = "*\n!.gitignore\n!memory/\n!memory/**\n"


class Growing(NamedTuple):
    """A turn that may have been written before it was complete: what its section may hash to, and
    whether it is certain that it was written.
    """

    hashes: tuple[str, ...]
    is_written: bool


class Journal:
    """The memory files of one project.

    `shared` says whether `.memkit/.gitignore` lets the memory be committed.
    """

    def __init__(self, project: Project, *, shared: bool = False) -> None:
        self.project = project
        self.directory = Path(project.memory)
        self.shared = shared

    def days(self) -> list[str]:
        """The days there are (ISO), oldest first."""
        return days_of(self.project)

    def day(self, day: str) -> DayFile:
        """One day as it is in its file. Raises `JournalError`."""
        try:
            return DayFile(_read(self.path(day)) or f"# {day}")
        except OSError as error:
            raise JournalError(f"cannot read {self.path(day)}: {error.strerror}") from error

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

    def add_file(self, name: Path, data: bytes) -> bool:
        """Put a file that is no day's into the memory; False if it is there.

        Where another one has its name, a number is added to that. Durable when it returns. Raises
        `JournalError`.
        """
        with self._locked():
            path = self._place_for(name, data)
            if path.exists():
                return False
            make_private_directory(str(path.parent))
            write_durably(str(path), data)
            return True

    def holds_file(self, name: Path, data: bytes) -> bool:
        """Whether `add_file` would find the file there."""
        return self._place_for(name, data).exists()

    def _place_for(self, name: Path, data: bytes) -> Path:
        """The path of the file with that content, or the first one that is free for it."""
        path = self.directory / name
        number = 1
        while path.exists() and path.read_bytes() != data:
            number += 1
            path = self.directory / name.with_name(f"{name.stem}-{number}{name.suffix}")
        return path

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

    def take_over(self, name: str, data: bytes) -> None:
        """Put a whole file, as from a backup, in the place of what stands at `name`, if anything does.

        `name` is relative to the memory directory, with slashes. Durable when it returns. Raises
        `JournalError`, also for a name that leads outside of the memory.
        """
        with self._locked():
            path = self.directory.joinpath(*name.split("/"))
            real, boundary = os.path.realpath(path), os.path.realpath(self.directory)
            if os.path.commonpath([real, boundary]) != boundary or real == boundary:
                raise JournalError(f"{path} is not inside the memory {self.directory}")
            make_private_directory(os.path.dirname(real))
            mode = stat.S_IMODE(os.stat(real).st_mode) if os.path.exists(real) else PRIVATE_FILE
            write_durably(real, data, mode)

    def remove_older(self, day: str) -> list[str]:
        """Delete the files of the days before `day` (ISO); returns which those were.

        Raises `JournalError`.
        """
        older = [known for known in self.days() if known < day]
        if older:
            with self._locked():
                for known in older:
                    self.path(known).unlink(missing_ok=True)
                sync_directory(str(self.directory))
        return older

    def text(self, name: str) -> str:
        """A memory file of this directory as it is; "" if there is none. Raises `JournalError`."""
        try:
            return _read(self.directory / name)
        except OSError as error:
            raise JournalError(
                f"cannot read {self.directory / name}: {error.strerror}"
            ) from error

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

    def read(self, day: str) -> bytes:
        """The file of a day as it is; empty if there is none. Raises `JournalError`."""
        try:
            return encoded(_read(self.path(day)))
        except OSError as error:
            raise JournalError(f"cannot read {self.path(day)}: {error.strerror}") from error

    def edit(self, day: str, before: bytes, edited: bytes) -> None:
        """Take over what a person made of a day that read `before`; see `merge` for what came meanwhile.

        Durable when it returns. Raises `JournalError`.
        """
        with self._locked():
            old, new = (data.decode("utf-8", "surrogateescape") for data in (before, edited))
            text = merge(old, new, _read(self.path(day)))
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
            content = FactFile(_read(path), path.name)
            if not content.forget(ids):
                return False
            self._replace(path, content.render())
            return True

    def remove_lines(self, path: Path, start: int, end: int) -> bool:
        """Take the lines `start` to `end` (from 1, inclusive) out of a markdown file of the memory directory.

        What bounds the sections of turns, and bullets, stays. Raises `JournalError`.
        """
        with self._locked():
            content = DayFile(_read(path))
            if not remove_lines(content, start, end):
                return False
            self._keep_rest(path, content)
            return True

    def remove_file(self, path: Path) -> None:
        """Remove a file of the memory directory. Raises `JournalError`."""
        with self._locked():
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))

    def remove_left_behind(self) -> None:
        """Remove what writers that were killed left half-written. Raises `JournalError`."""
        with self._locked():
            for path in self.directory.glob(".*.tmp"):
                path.unlink(missing_ok=True)

    def _keep_rest(self, path: Path, content: DayFile) -> None:
        if is_empty(content):
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))
        else:
            self._replace(path, content.render())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among memkit's processes. Raises `JournalError`, for what fails inside too."""
        from filelock import FileLock, Timeout  # 0.05 s, only where memory is written

        try:
            self.prepare()
            with FileLock(self.directory.parent / "journal.lock", LOCK_SECONDS, mode=PRIVATE_FILE):
                yield
        except Timeout as error:
            raise JournalError(
                f"the journal in {self.directory} was busy for {LOCK_SECONDS:.0f} s; try again"
            ) from error
        except OSError as error:
            raise JournalError(
                f"cannot write memory in {self.directory}: {error.strerror or error}"
            ) from error

    def prepare(self) -> None:
        """Make the memory directory, and the ignore file that keeps it out of git unless shared."""
        make_private_directory(str(self.directory))
        if self.directory != Path(self.project.root, MEMORY_DIRECTORY):
            return  # the user's own memory lies in the memory home, which is no project
        ignore = self.directory.parent / ".gitignore"
        wanted = _SHARED_IGNORE if self.shared else _PRIVATE_IGNORE
        present = _read(ignore)
        # Any other text is the user's own and stays.
        if present != wanted and present in ("", _PRIVATE_IGNORE, _SHARED_IGNORE):
            write_durably(str(ignore), wanted.encode())

    def _write_day(
        self, day: str, group: list[Digest], growing: Mapping[str, Growing]
    ) -> list[Digest]:
        content = self.day(day)
        changed = []
        for digest in group:
            if self._apply(content, digest, growing.get(digest.turn)):
                changed.append(digest)
        if changed:
            self._save(day, content)
        return changed

    def _save(self, day: str, content: DayFile) -> None:
        self._replace(self.path(day), content.render())

    def _replace(self, path: Path, text: str) -> None:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE_FILE
        write_durably(os.path.realpath(path), encoded(text), mode)

    def _apply(self, content: DayFile, digest: Digest, known: Growing | None) -> bool:
        present = content.find_turn(digest.turn)
        if present is None:
            # Written before, but gone from the file: a person took it out, so it stays out.
            if (known is not None and known.is_written) or self._is_elsewhere(digest):
                return False
            content.insert(digest)
            return True
        count = content.written_lines(present, known.hashes) if known else 0
        section = digest.section.split("\n")
        if not count or content.lines[present.start : present.start + count] == section:
            return False
        content.replace(present, count, digest.section)
        return True

    def _is_elsewhere(self, digest: Digest) -> bool:
        """Whether a day beside it holds the turn: the machine's time zone has changed since.

        Zones lie up to 26 hours apart.
        """
        day = date.fromisoformat(digest.day)
        for days in (-1, 1, -2, 2):
            text = _read(self.path((day + timedelta(days)).isoformat()))
            if f"turn:{digest.turn} " in text and DayFile(text).find_turn(digest.turn) is not None:
                return True
        return False

    def path(self, day: str) -> Path:
        """The file of a day, an ISO date."""
        return self.directory / f"{day}.md"


def _read(path: Path) -> str:
    """The file as it is, its line ends and even invalid bytes kept; empty if there is none."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
