"""The files of a memory: find, read, replace, and remove them."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from memkit.errors import JournalError
from memkit.files import (
    PRIVATE_FILE,
    RefusedFileError,
    inside,
    make_private_directory,
    read_regular,
    stale_temporary_files,
    sync_directory,
    write_durably,
)
from memkit.hook.entries import DAY_FILE, note_own
from memkit.hook.entries import days as days_of
from memkit.hook.project import Project
from memkit.journal.day_edits import is_empty
from memkit.journal.day_file import DayFile, encoded
from memkit.paths import MEMORY_DIRECTORY, Home
from memkit.projects.git import is_ignored, is_tracked, keep_out_of_git

logger = logging.getLogger(__name__)

MOST_TRIES = 10
"""Attempts to apply a change to a file that others keep changing."""

LEFTOVER_SECONDS = 60.0
"""Age at which a temporary file can no longer belong to a live writer, under the lock."""

LOCK_SECONDS = 30.0
"""Seconds to wait for another process that writes to the same journal."""

_PRIVATE_IGNORE = "*\n"
_SHARED_IGNORE = "*\n!.gitignore\n!memory/\n!memory/**\n"


Record = Callable[[str, str], None]
"""Gets the text of a file before and after a change."""


class _Stamp(NamedTuple):
    """Changes when someone edits or replaces a file."""

    inode: int
    size: int
    modified: int


class _ChangedMeanwhile(Exception):
    """The file changed since it was read."""


class MemoryFiles:
    """The memory directory of one project.

    With `shared`, `.memkit/.gitignore` lets git have the memory. A caller that adds text passes the memory
    `home` that writes it: text without a record there is never quoted unasked (see `OwnEntries`).
    """

    def __init__(
        self, project: Project, *, shared: bool = False, home: Home | None = None
    ) -> None:
        self.project = project
        self.home = home
        self.directory = Path(project.memory)
        self.shared = shared

    def days(self) -> list[str]:
        """Return the days (ISO), oldest first."""
        return days_of(self.project)

    def markdown(self) -> list[Path]:
        """Return all Markdown files of this memory, sorted. Symlinks are left out."""
        try:
            inside(str(self.directory), self.project.root)
        except OSError as error:
            logger.warning("%s is not read: %s", self.directory, error.strerror)
            return []
        found = self.directory.rglob("*.md")
        return sorted(path for path in found if path.is_file() and not path.is_symlink())

    def path(self, day: str) -> Path:
        """Return the file of a day."""
        return self.directory / f"{day}.md"

    def day_for(self, date: str) -> str:
        """Return the day file to which entries of an ISO date go: `DATE.local` if git tracks the usual one.

        Git would commit private turns. `MEMORY`, without suffix, works like a day. Raise `JournalError` if
        git tracks both.
        """
        if not self.is_public(date):
            return date
        self._refuse_tracked(self.path(f"{date}.local"))
        return f"{date}.local"

    def is_public(self, day: str) -> bool:
        """Return whether git tracks the file of a day although the memory is not shared."""
        return self._is_tracked(self.path(day))

    def _is_tracked(self, path: Path) -> bool:
        """Return whether git would commit private text in the file, directly or through a symlinked
        directory.
        """
        if self.shared:
            return False
        root = self.project.root
        places = {str(path), os.path.realpath(path)}
        return any(is_tracked(root, place) for place in places)

    def _refuse_tracked(self, path: Path) -> None:
        if self._is_tracked(path):
            raise JournalError(
                f"nothing private is written to {path}, because git tracks it; run `git rm --cached` on it"
            )

    def day(self, day: str) -> DayFile:
        """Read one day. Raise `JournalError`."""
        return DayFile(self.text_at(self.path(day)) or f"# {day[:10]}")

    def text(self, name: str) -> str:
        """Read a memory file by name, "" if there is none. Raise `JournalError`."""
        return self.text_at(self.directory / name)

    def read(self, day: str) -> bytes:
        """Read the bytes of a day, empty if there is none. Raise `JournalError`."""
        return encoded(self.text_at(self.path(day)))

    def text_at(self, path: Path) -> str:
        """Read a file of the memory directory, "" if there is none. Raise `JournalError`."""
        try:
            return read_file(self._real(path))
        except OSError as error:
            raise JournalError(f"cannot read {path}: {error.strerror or error}") from error

    def text_if_used(self, name: str) -> str:
        """Read as `text` does, but return "" for a file that memkit refuses to use."""
        try:
            return self.text(name)
        except JournalError as error:
            if isinstance(error.__cause__, RefusedFileError):
                return ""
            raise

    def bytes_at(self, path: Path) -> bytes:
        """Read the bytes of a file of the memory directory. Raise `JournalError`."""
        return encoded(self.text_at(path))

    def _real(self, path: Path) -> Path:
        """Return the real path of a memory file. Raise `RefusedFileError` if it lies outside the memory."""
        memory = inside(str(self.directory), self.project.root)
        return Path(inside(str(path), memory))

    def prepare(self) -> None:
        """Create the memory directory, and the ignore file that keeps it out of git unless shared."""
        # Check first, so that no directory is created behind a symlink.
        inside(str(self.directory), self.project.root)
        make_private_directory(str(self.directory))
        if self.directory != Path(self.project.root, MEMORY_DIRECTORY):
            return  # the user's own memory is in the memory home, which is no project
        try:
            keep_out_of_git(self.project.root, is_wanted=not self.shared)
        except OSError as error:  # one of several safeguards; the doctor reports whether git sees the memory
            logger.warning("cannot change what git excludes in %s: %s", self.project.root, error)
        deeper = self._real(self.directory / ".gitignore")
        patterns = read_file(deeper)
        if self.shared and patterns.endswith(_PRIVATE_IGNORE):
            kept = patterns[: -len(_PRIVATE_IGNORE)]
            if kept:
                write_durably(str(deeper), encoded(kept))
            else:
                deeper.unlink()
        ignore = Path(inside(str(self.directory.parent / ".gitignore"), self.project.root))
        wanted = _SHARED_IGNORE if self.shared else _PRIVATE_IGNORE
        present = read_file(ignore)
        # Any other text belongs to the user and stays.
        if present != wanted and present in ("", _PRIVATE_IGNORE, _SHARED_IGNORE):
            write_durably(str(ignore), wanted.encode())
        elif present != wanted and read_file(deeper) != _PRIVATE_IGNORE:
            # A pull may have replaced the file that memkit wrote after days were created.
            self._hide_from_git(self.directory / "0000-00-00.md")

    def take_over(self, name: str, data: bytes) -> None:
        """Write a whole file, as from a backup, in place of any that is at `name`.

        `name` is relative to the memory directory, with slashes. Durable on return. Raise `JournalError`,
        also for a name that leads out of the memory.
        """
        path = self.directory.joinpath(*name.split("/"))
        if DAY_FILE.match(name):
            path = self.path(self.day_for(path.stem))
        with self._locked():
            try:
                real = self._real(path)
            except RefusedFileError as error:
                raise JournalError(f"{path} is not inside the memory {self.directory}") from error
            if real == Path(os.path.realpath(self.directory)):
                raise JournalError(f"{path} is not inside the memory {self.directory}")
            make_private_directory(str(real.parent))
            text = data.decode("utf-8", "surrogateescape")
            self._rewrite(path, lambda before: text, create=True, record=self._note_own)

    def add_file(self, name: Path, data: bytes) -> bool:
        """Add a file that is not a day to the memory. Return False if it is already there.

        If another file has its name, the name gets a number. Durable on return. Raise `JournalError`.
        """
        with self._locked():
            path = self._place_for(name, data)
            if path.exists():
                return False
            make_private_directory(str(self._real(path).parent))
            text = data.decode("utf-8", "surrogateescape")
            return self._rewrite(path, lambda before: text, create=True)

    def holds_file(self, name: Path, data: bytes) -> bool:
        """Return whether `add_file` would find the file already there."""
        return self._place_for(name, data).exists()

    def _place_for(self, name: Path, data: bytes) -> Path:
        """Return the path of the file with this content, or the first free one."""
        path = self.directory / name
        number = 1
        while path.exists() and self.bytes_at(path) != data:
            number += 1
            path = self.directory / name.with_name(f"{name.stem}-{number}{name.suffix}")
        return path

    def remove_older(self, day: str) -> list[str]:
        """Delete the days before `day` (ISO) and return them. Raise `JournalError`."""
        older = [known for known in self.days() if known < day]
        if older:
            with self._locked():
                for known in older:
                    self._real(self.path(known))
                    self.path(known).unlink(missing_ok=True)
                sync_directory(str(self.directory))
        return older

    def remove_file(self, path: Path) -> None:
        """Remove a file of the memory directory. Raise `JournalError`."""
        with self._locked():
            self._real(path)
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))

    def remove_left_behind(self) -> None:
        """Remove temporary files of killed writers. Raise `JournalError`."""
        with self._locked():
            for path in self._real(self.directory).glob(".*.tmp"):
                path.unlink(missing_ok=True)

    def _remove_temporary(self, before: float) -> None:
        """Remove temporary files last changed before `before`. The caller holds the lock."""
        for path in stale_temporary_files(str(self.directory), before):
            Path(path).unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the journal lock. Raise `JournalError` for every OS error, also inside the block."""
        from filelock import FileLock, Timeout  # 0.05 s; only writers need it

        try:
            self.prepare()
            lock = self.directory.parent / "journal.lock"
            if os.path.lexists(lock) and not stat.S_ISREG(lock.lstat().st_mode):
                raise RefusedFileError(str(lock), "journal.lock is no regular file")
            with FileLock(lock, LOCK_SECONDS, mode=PRIVATE_FILE):
                self._remove_temporary(time.time() - LEFTOVER_SECONDS)
                yield
        except Timeout as error:
            raise JournalError(
                f"the journal in {self.directory} was busy for {LOCK_SECONDS:.0f} s; try again"
            ) from error
        except RefusedFileError as error:
            raise JournalError(f"cannot use {error.filename}: {error.strerror}") from error
        except OSError as error:
            raise JournalError(
                f"cannot write memory in {self.directory}: {error.strerror or error}"
            ) from error

    def _note_own(self, before: str, after: str) -> None:
        """Record that this home wrote what `after` adds to `before`."""
        if self.home is not None:
            note_own(self.home, self.project.root, before, after)

    def _change_day(
        self,
        path: Path,
        change: Callable[[DayFile], object],
        *,
        may_vanish: bool = False,
        record: Record | None = None,
    ) -> bool:
        """Apply `change` to a day file. Return whether that changed it.

        Calls `change` again if someone else changed the file meanwhile. With `may_vanish`, an empty day is
        removed. The caller holds the lock.
        """

        def apply(text: str) -> str | None:
            content = DayFile(text or f"# {path.stem[:10]}")
            before = list(content.lines)
            change(content)
            if content.lines == before:
                return text
            return None if may_vanish and is_empty(content) else content.render()

        return self._rewrite(path, apply, record=record)

    def _rewrite(
        self,
        path: Path,
        change: Callable[[str], str | None],
        *,
        create: bool = False,
        record: Record | None = None,
    ) -> bool:
        """Replace the text of a file with the result of `change`; None removes the file. Return whether it
        changed.

        With `create`, a missing file is created even if it stays empty. `record` gets the old and the new
        text before the write. Calls `change` again if someone else changed the file meanwhile: the lock,
        which the caller holds, stops memkit's processes but not editors.
        """
        real = self._real(path)
        for _ in range(MOST_TRIES):
            stamp = _stamp(real)
            before = read_file(real)
            if _stamp(real) != stamp:
                continue
            after = change(before)
            if after == before and not (create and stamp is None):
                return False
            if record is not None and after is not None:
                record(before, after)
            if stamp is None:
                self._hide_from_git(path)
            try:
                self._put(real, after, stamp)
                return True
            except _ChangedMeanwhile:
                logger.info("%s was changed meanwhile; the change is applied again", path)
        raise JournalError(f"{path} changes all the time; nothing was written, try again later")

    def _hide_from_git(self, path: Path) -> None:
        """Before a file is created, make sure that git ignores it, unless the memory is shared.

        A repository's own patterns override git's list of excluded files, so only a deeper ignore file
        helps.
        """
        if self.shared or self.directory != Path(self.project.root, MEMORY_DIRECTORY):
            return
        root, real = self.project.root, self._real(path)
        if is_ignored(root, str(real)):  # git has no answer for a path through a symlink
            return
        if not str(real).startswith(os.path.join(os.path.realpath(root), MEMORY_DIRECTORY, "")):
            raise RefusedFileError(
                str(self.directory), "it is a link to files that git takes, and memory.shared is off"
            )
        ignore = self._real(self.directory / ".gitignore")
        present = read_file(ignore)  # the user's patterns stay; the last match decides
        if not present.endswith(_PRIVATE_IGNORE):
            text = present + "\n" * (not present.endswith("\n") and bool(present)) + _PRIVATE_IGNORE
            write_durably(str(ignore), encoded(text))

    def _put(self, real: Path, text: str | None, stamp: _Stamp | None) -> None:
        """Replace or remove the file if it still has this stamp. Raise `_ChangedMeanwhile` if it does not.

        No file system can replace a file only if unchanged. A save between the last check and the rename,
        some ten microseconds later, is lost, as is a write through a descriptor that another program still
        holds.
        """

        def check() -> None:
            if _stamp(real) != stamp:
                raise _ChangedMeanwhile

        if text is None:
            check()
            real.unlink(missing_ok=True)
            sync_directory(str(real.parent))
            return
        mode = PRIVATE_FILE
        if stamp is not None:
            mode = stat.S_IMODE(real.stat().st_mode)
            mode = mode if self.shared else mode & PRIVATE_FILE
        write_durably(str(real), encoded(text), mode, check)


def read_file(path: Path) -> str:
    """Read a file, keeping line ends and invalid bytes; "" if there is none.

    Raise `RefusedFileError` for anything but a regular file of bounded size, `OSError` for the rest.
    """
    try:
        return read_regular(str(path)).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return _Stamp(status.st_ino, status.st_size, status.st_mtime_ns)
