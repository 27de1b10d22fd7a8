"""The files that a user shares: `.memkit/team/AUTHOR/YYYY-MM-DD.md`, one for each day of sharing.

    # 2026-11-20

    ## 2026-11-19 14:02 Which port does the staging gateway use? <!-- shared:5f0c0e0a origin:8b52f4fb -->

    **Answered** 7443.

Entries are only ever added at the end, so two people never change the same lines. `shared` is a hash of the
entry, which is written once. `origin` is the ID of the turn, note, bullet, or fact that it copies. Only these
files of the own author are written. Others' are read by the index alone, see `memkit.projects.team_files`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from memkit import anchors
from memkit.errors import JournalError
from memkit.files import RefusedFileError, make_private_directory, read_regular, sync_directory, write_durably
from memkit.journal.day_file import encoded
from memkit.journal.files import MemoryDirectory
from memkit.journal.markup import one_line, safe_block, short_id
from memkit.paths import TEAM_DIRECTORY, Home
from memkit.projects import team_files
from memkit.projects.project import Project

HEADING_CHARACTERS = 200

_ENTRY = re.compile(r"^## [^\n]*<!--[^\n]*\bshared:[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SharedEntry:
    """An entry to share: its heading and Markdown, made safe, and the ID of what it copies, or ""."""

    heading: str
    body: str
    origin: str = ""

    @classmethod
    def of(cls, heading: str, body: str, origin: str = "") -> SharedEntry:
        """Return the entry that says this. Text cannot forge the heading of another one."""
        heading = one_line(heading, HEADING_CHARACTERS)
        return cls(heading, safe_block(anchors.strip(body)), origin)

    @property
    def key(self) -> str:
        """A hash of what it says."""
        return short_id("shared", self.heading, self.body)

    @property
    def text(self) -> str:
        """The entry as it is in the file."""
        anchor = anchors.render(shared=self.key, origin=self.origin)
        return f"## {self.heading} {anchor}\n\n{self.body}\n"


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """An entry in a file: its path, its lines (from 1, inclusive), and its anchor."""

    path: str
    start: int
    end: int
    key: str
    origin: str
    heading: str


class TeamFolder:
    """The files that one author shares in a project."""

    def __init__(self, project: Project, author: str, *, shared: bool) -> None:
        """`shared` is as for `Journal`."""
        self._root = project.root
        self._files = MemoryDirectory(project, shared=shared)
        self.path = Path(project.root, TEAM_DIRECTORY, author)

    def file(self, day: str) -> Path:
        """Return the file of a day (ISO)."""
        return self.path / f"{day}.md"

    def entries(self) -> list[WrittenEntry]:
        """Return what the author shares, oldest first. Raise `JournalError`."""
        return [one for path in self._paths(self._root) for one in _entries_of(path, self._read(path))]

    def add(self, day: str, entries: Sequence[SharedEntry]) -> None:
        """Add entries to the end of a day's file. Those that are there already stay as they are."""
        with self._files.locked():
            known = {one.key for one in self.entries()}
            new = [one for one in entries if one.key not in known]
            if not new:
                return
            path = self.file(day)
            before = self._read(path)
            self._write(path, appended(before, day, new))

    def remove(self, keys: Collection[str], home: Home) -> None:
        """Remove the entries with these keys, also from the copy in `home`, and files that hold no other."""
        with self._files.locked():
            for path in [*self._paths(self._root), *self._paths(team_files.copy_of(home, self._root))]:
                text = self._read(path)
                lines = text.split("\n")
                for one in reversed(_entries_of(path, text)):
                    if one.key in keys:
                        del lines[one.start - 1 : one.end]
                left = "\n".join(lines).rstrip("\n") + "\n"
                if len(lines) == len(text.split("\n")):
                    continue
                if left.strip() in ("", f"# {path.stem}"):
                    path.unlink()
                    sync_directory(str(path.parent))
                else:
                    self._write(path, left)

    def _paths(self, root: str) -> list[Path]:
        own = f"{team_files.TEAM}/{self.path.name}/"
        return [Path(root, source) for source in team_files.team_files(root) if source.startswith(own)]

    def _read(self, path: Path) -> str:
        try:
            return read_regular(str(path), team_files.MOST_BYTES).decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise JournalError(f"cannot read {path}: {error.strerror or error}") from error

    def _write(self, path: Path, text: str) -> None:
        expected = os.path.join(os.path.realpath(path.parents[3]), TEAM_DIRECTORY, self.path.name)
        if os.path.realpath(path.parent) != expected:
            raise RefusedFileError(str(path.parent), "it is a link, or behind one")
        make_private_directory(str(path.parent))
        write_durably(str(path), encoded(text))


def appended(before: str, day: str, entries: Sequence[SharedEntry]) -> str:
    """Return the text of a day's file with entries added at its end."""
    text = before.rstrip("\n") or f"# {day}"
    return "\n\n".join([text, *(one.text.rstrip("\n") for one in entries)]) + "\n"


def _entries_of(path: Path, text: str) -> list[WrittenEntry]:
    matches = list(_ENTRY.finditer(text))
    starts = [text.count("\n", 0, match.start()) + 1 for match in matches]
    ends = [*(start - 1 for start in starts[1:]), text.count("\n") + 1]
    found = []
    for match, start, end in zip(matches, starts, ends, strict=False):
        pairs = anchors.parse(match[0])
        if "shared" in pairs:
            heading = anchors.strip(match[0]).lstrip("# ")
            entry = WrittenEntry(str(path), start, end, pairs["shared"], pairs.get("origin", ""), heading)
            found.append(entry)
    return found
