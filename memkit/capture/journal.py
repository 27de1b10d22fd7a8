"""Writes the daily markdown. The one module that writes memory files.

A day file holds a section for each session and in it a section for each turn:

    # 2026-11-20

    ## 14:02 Staging gateway port <!-- session:fd0aee29-… branch:feature/gw -->

    ### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f -->
    **Asked** …

Every write is locked against other memkit processes, replaces the file atomically, and is keyed by the
turn's anchor: writing a turn twice changes nothing. What a person edited is left as it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from memkit import anchors
from memkit.capture.digest import Digest
from memkit.errors import JournalError
from memkit.paths import PRIVATE_FILE, make_private_directory, write_durably
from memkit.project import Project

LOCK_SECONDS = 30.0
"""How long to wait for another process that writes to the same journal."""

_PRIVATE_IGNORE = "*\n"
_SHARED_IGNORE = "*\n!.gitignore\n!memory/\n!memory/**\n"
_TIME = re.compile(r"^#{2,3} (\d\d:\d\d) ")


@dataclass(frozen=True, slots=True)
class _Section:
    """The lines from one anchored heading up to the next: `start` inclusive, `end` exclusive."""

    start: int
    end: int
    heading: str
    pairs: dict[str, str]

    @property
    def minute(self) -> str:
        match = _TIME.match(self.heading)
        return match[1] if match else ""


class _Day:
    """A day file as lines, of which only those that change are touched.

    Only headings with an anchor bound sections: a person's own headings, and those inside code,
    belong to the section they stand in.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.rstrip("\n").split("\n")

    @cached_property
    def sections(self) -> list[_Section]:
        found = []
        for number, line in enumerate(self.lines):
            if line.startswith(("## ", "### ")):
                pairs = anchors.parse(line)
                if ("session" if line.startswith("## ") else "turn") in pairs:
                    found.append((number, line, pairs))
        ends = [*(number for number, _, _ in found), len(self.lines)][1:]
        return [
            _Section(number, end, line, pairs)
            for (number, line, pairs), end in zip(found, ends, strict=True)
        ]

    def find_turn(self, turn: str) -> _Section | None:
        return next((s for s in self.sections if s.pairs.get("turn") == turn), None)

    def written_lines(self, section: _Section, hashes: Iterable[str]) -> int:
        """How many lines of the section read as they were written, a person's note below them not
        counted; 0 if they were edited.
        """
        read = hashlib.sha256()
        count = 0
        for number, line in enumerate(self.lines[section.start : section.end], start=1):
            read.update(_encoded(line if number == 1 else f"\n{line}"))
            if _shown(read) in hashes:
                count = number
        return count

    def replace(self, section: _Section, count: int, text: str) -> None:
        """Put `text` in the place of the section's first `count` lines."""
        self.lines[section.start : section.start + count] = text.split("\n")
        del self.sections

    def insert(self, digest: Digest) -> None:
        """Put the turn into its session's section, in order of time; make that section if it is missing."""
        sections = self.sections
        number = next(
            (n for n, s in enumerate(sections) if s.pairs.get("session") == digest.session), None
        )
        text = digest.section
        if number is None:
            anchor = anchors.render(session=digest.session, branch=digest.branch)
            text = f"## {digest.minute} {digest.title} {anchor}\n\n{text}"
            later = (s for s in sections if "session" in s.pairs and s.minute > digest.minute)
        else:
            # The session's own turns end where the next session begins.
            rest = sections[number + 1 :]
            later = (s for s in rest if "session" in s.pairs or s.minute > digest.minute)
        self._insert_before(next(later, None), text)

    def _insert_before(self, section: _Section | None, text: str) -> None:
        position = section.start if section else len(self.lines)
        block = text.split("\n")
        if position and self.lines[position - 1].strip():
            block.insert(0, "")
        if section:
            block.append("")
        self.lines[position:position] = block
        del self.sections

    def render(self) -> str:
        return "\n".join(self.lines) + "\n"


def section_hash(section: str) -> str:
    """A fingerprint of a turn's section as written, to tell later whether a person edited it."""
    return _shown(hashlib.sha256(_encoded(section)))


def _shown(read: hashlib._Hash) -> str:
    return read.hexdigest()[:16]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


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
        from filelock import FileLock, Timeout  # 0.05 s, only where memory is written

        try:
            self.prepare()
            with FileLock(self.directory.parent / "journal.lock", LOCK_SECONDS, mode=PRIVATE_FILE):
                return [
                    digest
                    for day, group in sorted(by_day.items())
                    for digest in self._write_day(day, group, growing or {})
                ]
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
        ignore = self.directory.parent / ".gitignore"
        wanted = _SHARED_IGNORE if self.shared else _PRIVATE_IGNORE
        present = _read(ignore)
        # Any other text is the user's own and stays.
        if present != wanted and present in ("", _PRIVATE_IGNORE, _SHARED_IGNORE):
            write_durably(str(ignore), wanted.encode())

    def _write_day(
        self, day: str, group: list[Digest], growing: Mapping[str, Growing]
    ) -> list[Digest]:
        path = self._path(day)
        content = _Day(_read(path) or f"# {day}")
        changed = []
        for digest in group:
            if self._apply(content, digest, growing.get(digest.turn)):
                changed.append(digest)
        if changed:
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE_FILE
            write_durably(os.path.realpath(path), _encoded(content.render()), mode)
        return changed

    def _apply(self, content: _Day, digest: Digest, known: Growing | None) -> bool:
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
            text = _read(self._path((day + timedelta(days)).isoformat()))
            if f"turn:{digest.turn} " in text and _Day(text).find_turn(digest.turn) is not None:
                return True
        return False

    def _path(self, day: str) -> Path:
        return self.directory / f"{day}.md"


def _read(path: Path) -> str:
    """The file as it is, its line ends and even invalid bytes kept; empty if there is none."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
