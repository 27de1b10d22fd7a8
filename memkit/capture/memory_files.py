"""The files of a memory: where they are, and how one is read, replaced and removed.

The base of the journal, which knows what stands in them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memkit.capture.brief import days as days_of
from memkit.capture.day_file import DayFile, encoded
from memkit.capture.day_removal import is_empty
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


class MemoryFiles:
    """The memory directory of one project.

    `shared` says whether `.memkit/.gitignore` lets the memory be committed.
    """

    def __init__(self, project: Project, *, shared: bool = False) -> None:
        self.project = project
        self.directory = Path(project.memory)
        self.shared = shared

    def days(self) -> list[str]:
        """The days there are (ISO), oldest first."""
        return days_of(self.project)

    def path(self, day: str) -> Path:
        """The file of a day, an ISO date."""
        return self.directory / f"{day}.md"

    def day(self, day: str) -> DayFile:
        """One day as it is in its file. Raises `JournalError`."""
        try:
            return DayFile(read_file(self.path(day)) or f"# {day}")
        except OSError as error:
            raise JournalError(f"cannot read {self.path(day)}: {error.strerror}") from error

    def text(self, name: str) -> str:
        """A memory file of this directory as it is; "" if there is none. Raises `JournalError`."""
        try:
            return read_file(self.directory / name)
        except OSError as error:
            raise JournalError(
                f"cannot read {self.directory / name}: {error.strerror}"
            ) from error

    def read(self, day: str) -> bytes:
        """The file of a day as it is; empty if there is none. Raises `JournalError`."""
        try:
            return encoded(read_file(self.path(day)))
        except OSError as error:
            raise JournalError(f"cannot read {self.path(day)}: {error.strerror}") from error

    def prepare(self) -> None:
        """Make the memory directory, and the ignore file that keeps it out of git unless shared."""
        make_private_directory(str(self.directory))
        if self.directory != Path(self.project.root, MEMORY_DIRECTORY):
            return  # the user's own memory lies in the memory home, which is no project
        ignore = self.directory.parent / ".gitignore"
        wanted = _SHARED_IGNORE if self.shared else _PRIVATE_IGNORE
        present = read_file(ignore)
        # Any other text is the user's own and stays.
        if present != wanted and present in ("", _PRIVATE_IGNORE, _SHARED_IGNORE):
            write_durably(str(ignore), wanted.encode())

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

    def _save(self, day: str, content: DayFile) -> None:
        self._replace(self.path(day), content.render())

    def _replace(self, path: Path, text: str) -> None:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE_FILE
        write_durably(os.path.realpath(path), encoded(text), mode)

    def _keep_rest(self, path: Path, content: DayFile) -> None:
        if is_empty(content):
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))
        else:
            self._replace(path, content.render())

def read_file(path: Path) -> str:
    """The file as it is, its line ends and even invalid bytes kept; empty if there is none."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
