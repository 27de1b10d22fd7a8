"""The files of a memory: where they are, and how one is read, replaced and removed.

The base of the journal, which knows what stands in them.
"""

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
from memkit.hook.own_entries import note_own
from memkit.hook.project import Project
from memkit.hook.session_facts import DAY_FILE
from memkit.hook.session_facts import days as days_of
from memkit.journal.day_file import DayFile, encoded
from memkit.journal.day_removal import is_empty
from memkit.paths import MEMORY_DIRECTORY, Home
from memkit.projects.git import is_ignored, is_tracked, keep_out_of_git

logger = logging.getLogger(__name__)

MOST_TRIES = 10
"""How often a change is applied again because somebody else changed the file meanwhile."""

LEFTOVER_SECONDS = 60.0
"""Age of a temporary file that no writer can still be at, under the lock."""

LOCK_SECONDS = 30.0
"""How long to wait for another process that writes to the same journal."""

_PRIVATE_IGNORE = "*\n"
_SHARED_IGNORE = "*\n!.gitignore\n!memory/\n!memory/**\n"


Record = Callable[[str, str], None]
"""Called with the text of a file before and after a change."""


class _Stamp(NamedTuple):
    """What tells whether somebody changed or replaced a file."""

    inode: int
    size: int
    modified: int


class _ChangedMeanwhile(Exception):
    """The file is not the one that was read any more."""


class MemoryFiles:
    """The memory directory of one project.

    `shared` says whether `.memkit/.gitignore` lets the memory be committed. Whoever adds text gives the
    memory home that writes it: what has none there is never quoted unasked (see `own_entries`).
    """

    def __init__(
        self, project: Project, *, shared: bool = False, home: Home | None = None
    ) -> None:
        self.project = project
        self.home = home
        self.directory = Path(project.memory)
        self.shared = shared

    def days(self) -> list[str]:
        """The days there are (ISO), oldest first."""
        return days_of(self.project)

    def markdown(self) -> list[Path]:
        """Return all markdown files of this memory that lie in it, sorted. Links are left out."""
        try:
            inside(str(self.directory), self.project.root)
        except OSError as error:
            logger.warning("%s is not read: %s", self.directory, error.strerror)
            return []
        found = self.directory.rglob("*.md")
        return sorted(path for path in found if path.is_file() and not path.is_symlink())

    def path(self, day: str) -> Path:
        """The file of a day, see `days`."""
        return self.directory / f"{day}.md"

    def day_for(self, date: str) -> str:
        """Return the day to which entries of an ISO date are added: another one if git tracks its file.

        Git would take private turns with the next commit. `MEMORY`, without suffix, works like a day. Raise
        `JournalError` if it tracks both.
        """
        if not self.is_public(date):
            return date
        self._refuse_tracked(self.path(f"{date}.local"))
        return f"{date}.local"

    def is_public(self, day: str) -> bool:
        """Return whether git tracks the file of a day although the memory is not shared."""
        return self._is_tracked(self.path(day))

    def _is_tracked(self, path: Path) -> bool:
        """Whether git would take private text with the file. A memory that is a link lies elsewhere."""
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
        """One day as it is in its file. Raises `JournalError`."""
        return DayFile(self.text_at(self.path(day)) or f"# {day[:10]}")

    def text(self, name: str) -> str:
        """A memory file of this directory as it is; "" if there is none. Raises `JournalError`."""
        return self.text_at(self.directory / name)

    def read(self, day: str) -> bytes:
        """The file of a day as it is; empty if there is none. Raises `JournalError`."""
        return encoded(self.text_at(self.path(day)))

    def text_at(self, path: Path) -> str:
        """Return a file of the memory directory as it is; "" if there is none. Raises `JournalError`."""
        try:
            return read_file(self._real(path))
        except OSError as error:
            raise JournalError(f"cannot read {path}: {error.strerror or error}") from error

    def text_if_used(self, name: str) -> str:
        """Return the same as `text`, but "" for a file that memkit refuses to use."""
        try:
            return self.text(name)
        except JournalError as error:
            if isinstance(error.__cause__, RefusedFileError):
                return ""
            raise

    def bytes_at(self, path: Path) -> bytes:
        """Return the bytes of a file of the memory directory. Raises `JournalError`."""
        return encoded(self.text_at(path))

    def _real(self, path: Path) -> Path:
        """Return where a file of the memory lies. Raise `RefusedFileError` if that is outside of it."""
        memory = inside(str(self.directory), self.project.root)
        return Path(inside(str(path), memory))

    def prepare(self) -> None:
        """Make the memory directory, and the ignore file that keeps it out of git unless shared."""
        # Checked first, so that no directory is made where a link leads.
        inside(str(self.directory), self.project.root)
        make_private_directory(str(self.directory))
        if self.directory != Path(self.project.root, MEMORY_DIRECTORY):
            return  # the user's own memory lies in the memory home, which is no project
        try:
            keep_out_of_git(self.project.root, is_wanted=not self.shared)
        except OSError as error:  # one safeguard of several; the doctor tells if git takes the memory
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
        # Any other text is the user's own and stays.
        if present != wanted and present in ("", _PRIVATE_IGNORE, _SHARED_IGNORE):
            write_durably(str(ignore), wanted.encode())
        elif present != wanted and read_file(deeper) != _PRIVATE_IGNORE:
            # Git may have pulled it meanwhile, over the one that memkit made: days are there already.
            self._hide_from_git(self.directory / "0000-00-00.md")

    def take_over(self, name: str, data: bytes) -> None:
        """Put a whole file, as from a backup, in the place of what stands at `name`, if anything does.

        `name` is relative to the memory directory, with slashes. Durable when it returns. Raises
        `JournalError`, also for a name that leads outside of the memory.
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
        """Put a file that is no day's into the memory; False if it is there.

        Where another one has its name, a number is added to that. Durable when it returns. Raises
        `JournalError`.
        """
        with self._locked():
            path = self._place_for(name, data)
            if path.exists():
                return False
            make_private_directory(str(self._real(path).parent))
            text = data.decode("utf-8", "surrogateescape")
            return self._rewrite(path, lambda before: text, create=True)

    def holds_file(self, name: Path, data: bytes) -> bool:
        """Whether `add_file` would find the file there."""
        return self._place_for(name, data).exists()

    def _place_for(self, name: Path, data: bytes) -> Path:
        """The path of the file with that content, or the first one that is free for it."""
        path = self.directory / name
        number = 1
        while path.exists() and self.bytes_at(path) != data:
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
                    self._real(self.path(known))
                    self.path(known).unlink(missing_ok=True)
                sync_directory(str(self.directory))
        return older

    def remove_file(self, path: Path) -> None:
        """Remove a file of the memory directory. Raises `JournalError`."""
        with self._locked():
            self._real(path)
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))

    def remove_left_behind(self) -> None:
        """Remove what writers that were killed left half-written. Raises `JournalError`."""
        with self._locked():
            for path in self._real(self.directory).glob(".*.tmp"):
                path.unlink(missing_ok=True)

    def _remove_temporary(self, before: float) -> None:
        """Remove temporary files last changed before that time. The caller holds the lock."""
        for path in stale_temporary_files(str(self.directory), before):
            Path(path).unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among memkit's processes. Raises `JournalError`, for what fails inside too."""
        from filelock import FileLock, Timeout  # 0.05 s, only where memory is written

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
        """Have `change` work on a day file; return whether that changed it.

        `change` is called again if somebody else changed the file meanwhile. With `may_vanish` a file
        in which nothing is left is removed. `record` is as for `_rewrite`. The caller holds the lock.
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
        """Replace the text of a file by what `change` makes of it; None removes the file.

        Return whether that is something else. With `create` a missing file is made even if it is empty.
        `record` gets the old and the new text before it is written, to note what of it is this home's own.
        `change` is called again if somebody else changed the file meanwhile. The caller holds the lock,
        which keeps out memkit's own processes, but no editor.
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
        """Before a file is made: see that git ignores it, unless the memory is shared.

        A repository's own patterns go before git's list of excluded files, and only an ignore file that
        lies deeper goes before them.
        """
        if self.shared or self.directory != Path(self.project.root, MEMORY_DIRECTORY):
            return
        root, real = self.project.root, self._real(path)
        if is_ignored(root, str(real)):  # asked about a path through a link, git says nothing
            return
        if not str(real).startswith(os.path.join(os.path.realpath(root), MEMORY_DIRECTORY, "")):
            raise RefusedFileError(
                str(self.directory), "it is a link to files that git takes, and memory.shared is off"
            )
        ignore = self._real(self.directory / ".gitignore")
        present = read_file(ignore)  # patterns of the user's own stay; the last one that fits decides
        if not present.endswith(_PRIVATE_IGNORE):
            text = present + "\n" * (not present.endswith("\n") and bool(present)) + _PRIVATE_IGNORE
            write_durably(str(ignore), encoded(text))

    def _put(self, real: Path, text: str | None, stamp: _Stamp | None) -> None:
        """Replace or remove the file that had this stamp. Raise `_ChangedMeanwhile` if it has another.

        No file system can replace a file only if it is unchanged. What a person saves between the last
        look and the rename, some ten microseconds later, is lost, and so is what a program writes through
        a descriptor that it opened before and still holds.
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
    """The file as it is, its line ends and even invalid bytes kept; empty if there is none.

    Raises `RefusedFileError` for what is no regular file or too large, `OSError` for the rest.
    """
    try:
        return read_regular(str(path)).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _stamp(path: Path) -> _Stamp | None:
    """None if there is no file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return _Stamp(status.st_ino, status.st_size, status.st_mtime_ns)
