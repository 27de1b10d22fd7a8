"""The memory directory of one project: safe reads, locked and atomic writes, and its place outside of git.

Also the old versions of memory files that a compaction replaced. They are next to the archive.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from memkit.errors import ArchiveError, JournalError
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
from memkit.journal.day_file import encoded
from memkit.paths import MEMORY_DIRECTORY, Home
from memkit.projects.git import is_ignored, is_tracked, keep_out_of_git, tracked_in
from memkit.projects.project import Project

logger = logging.getLogger(__name__)

MOST_TRIES = 10
"""Attempts to apply a change to a file that others keep changing."""

LEFTOVER_SECONDS = 60.0
"""Age at which a temporary file can no longer belong to a live writer, under the lock."""

LOCK_SECONDS = 30.0
"""Seconds to wait for another process that writes to the same journal."""

_HIDE_ALL = "*\n"
_PRIVATE_IGNORE = "*\n!/team/\n!/team/**\n"
_SHARED_IGNORE = "*\n!.gitignore\n!memory/\n!memory/**\n!/team/\n!/team/**\n"

_UNTIL = re.compile(r"-until-\d{4}-\d\d-\d\d-[0-9a-f]{8}$")
_UNSAFE = re.compile(r"[^\w.-]+")

Record = Callable[[str, str], None]
"""Gets the text of a file before and after a change."""

_Stamp = tuple[int, int, int]
"""Inode, size, and modification time: they change when someone edits or replaces a file."""


class _ChangedMeanwhile(Exception):
    """The file changed since it was read."""


class MemoryDirectory:
    """The files of one memory. If `shared`, `.memkit/.gitignore` does not hide them from git."""

    def __init__(self, project: Project, *, shared: bool) -> None:
        self.project = project
        self.path = Path(project.memory)
        self.shared = shared
        self._locked_by: int | None = None  # the ID of a thread

    def real(self, path: Path) -> Path:
        """Return the real path of a memory file. Raise `RefusedFileError` if it lies outside the memory."""
        return Path(self.project.real_file(str(path)))

    @property
    def directories(self) -> list[str]:
        """The real paths of the folders that hold days: memkit's own, and OpenClaw's if it may be used."""
        found = [str(self.real(self.path / "0000-00-00.md").parent)]
        if self.project.openclaw:
            with contextlib.suppress(RefusedFileError):
                found.append(str(self.real(Path(self.project.openclaw, "0000-00-00.md")).parent))
        return found

    def is_openclaw(self, path: Path) -> bool:
        """Return whether the file is in OpenClaw's folder, where memkit changes its own sections only."""
        return bool(self.project.openclaw) and str(path.parent) in (
            self.project.openclaw,
            os.path.realpath(self.project.openclaw),
        )

    def may_use_openclaw(self) -> bool:
        """Return whether memkit may write days into OpenClaw's folder.

        Not if git would commit them, nor if the folder is a link.
        """
        folder = self.project.openclaw
        if not folder or (not self.shared and tracked_in(self.project.root, folder)):
            return False
        try:
            self.project.real_file(os.path.join(folder, "0000-00-00.md"))
        except RefusedFileError:
            return False
        return True

    def read(self, path: Path) -> str:
        """Read a file of the memory, "" if there is none. Raise `JournalError`."""
        text = self.data(str(path)).decode("utf-8", "surrogateescape")
        return text.replace("\r\n", "\n") if is_crlf(text) else text

    def data(self, path: str) -> bytes:
        """Return the bytes of a file of the memory, none if there is no file. Raise `JournalError`."""
        try:
            return read_data(self.project.real_file(path))
        except OSError as error:
            raise JournalError(f"cannot read {path}: {error.strerror or error}") from error

    def read_if_used(self, path: Path) -> str:
        """Read as `read` does, but return "" for a file that memkit refuses to use."""
        try:
            return self.read(path)
        except JournalError as error:
            if isinstance(error.__cause__, RefusedFileError):
                return ""
            raise

    def is_tracked(self, path: Path) -> bool:
        """Return whether git would commit private text in the file, directly or through a symlink."""
        if self.shared:
            return False
        return any(is_tracked(self.project.root, one) for one in {str(path), os.path.realpath(path)})

    def refuse_tracked(self, path: Path) -> None:
        """Raise `JournalError` if git would commit private text in the file."""
        if self.is_tracked(path):
            raise JournalError(
                f"git tracks {path}, so memkit writes nothing private to it; take it "
                "out of git with `git rm --cached` in a terminal of your own"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the journal lock. Raise `JournalError` for every OS error, also inside the block."""
        if self._locked_by == threading.get_ident():
            yield
            return
        from filelock import FileLock, Timeout  # 0.05 s; only writers need it

        try:
            self.prepare()
            lock = self.path.parent / "journal.lock"
            if os.path.lexists(lock) and not stat.S_ISREG(lock.lstat().st_mode):
                raise RefusedFileError(str(lock), "journal.lock is not a regular file")
            with FileLock(lock, LOCK_SECONDS, mode=PRIVATE_FILE):
                for directory in self.directories:
                    for left in stale_temporary_files(directory, time.time() - LEFTOVER_SECONDS):
                        Path(left).unlink(missing_ok=True)
                self._locked_by = threading.get_ident()
                try:
                    yield
                finally:
                    self._locked_by = None
        except Timeout as error:
            raise JournalError(
                f"the journal in {self.path} was busy for {LOCK_SECONDS:.0f} s; try again"
            ) from error
        except RefusedFileError as error:
            raise JournalError(f"cannot use {error.filename}: {error.strerror}") from error
        except OSError as error:
            raise JournalError(
                f"cannot write memory in {self.path}: {error.strerror or error}"
            ) from error

    def rewrite(
        self,
        path: Path,
        change: Callable[[str], str | None],
        *,
        create: bool = False,
        record: Record | None = None,
    ) -> bool:
        """Replace the text of a file with the result of `change`; None removes the file.

        Return whether that changed the file. With `create`, a missing file is created even if it stays
        empty. `record` gets the old and the new text before the write. Calls `change` again if someone else
        changed the file meanwhile: the lock stops memkit's processes but not editors. Raise `JournalError`.
        """
        with self.locked():
            real = self.real(path)
            if create or self.is_openclaw(path):
                make_private_directory(str(real.parent))
            return self._rewrite(real, change, create, record)

    def _rewrite(
        self, real: Path, change: Callable[[str], str | None], create: bool, record: Record | None
    ) -> bool:
        for _ in range(MOST_TRIES):
            stamp = _stamp(real)
            before = read_file(real)
            if _stamp(real) != stamp:
                continue
            if ends_in_crlf := is_crlf(before):
                before = before.replace("\r\n", "\n")
            after = change(before)
            if after == before and not (create and stamp is None):
                return False
            if record is not None and after is not None:
                record(before, after)
            if stamp is None or self.is_openclaw(real):
                self._hide_from_git(real)
            if ends_in_crlf and after is not None:
                after = after.replace("\n", "\r\n")
            try:
                self._put(real, after, stamp)
                return True
            except _ChangedMeanwhile:
                logger.info("%s was changed meanwhile; the change is applied again", real)
        raise JournalError(f"{real} keeps changing; nothing was written; try again later")

    def remove(self, path: Path) -> None:
        """Remove a file, durably. Raise `JournalError`."""
        with self.locked():
            self.real(path)
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))

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
            self.remove(real)
            return
        mode = PRIVATE_FILE
        if stamp is not None:
            mode = stat.S_IMODE(real.stat().st_mode)
            mode = mode if self.shared else mode & PRIVATE_FILE
        write_durably(str(real), encoded(text), mode, check)

    def prepare(self) -> None:
        """Create the directory, and the ignore file that keeps it out of git unless shared."""
        # Check first, so that no directory is created behind a symlink.
        inside(str(self.path), self.project.root)
        make_private_directory(str(self.path))
        if not self._is_in_project:
            return
        try:
            keep_out_of_git(
                self.project.root, is_wanted=not self.shared, with_openclaw=bool(self.project.openclaw)
            )
        except OSError as error:  # one of several safeguards; the doctor reports whether git sees the memory
            logger.warning("cannot change what git excludes in %s: %s", self.project.root, error)
        deeper = self.real(self.path / ".gitignore")
        if self.shared:
            _stop_hiding(deeper)
            if self.may_use_openclaw():
                _stop_hiding(self.real(Path(self.project.openclaw, ".gitignore")))
        ignore = Path(inside(str(self.path.parent / ".gitignore"), self.project.root))
        wanted = _SHARED_IGNORE if self.shared else _PRIVATE_IGNORE
        present = read_file(ignore)
        # Any other text belongs to the user and stays.
        if present != wanted and present in ("", _PRIVATE_IGNORE, _SHARED_IGNORE):
            write_durably(str(ignore), wanted.encode())
        elif present != wanted and read_file(deeper) != _HIDE_ALL:
            # A pull may have replaced the file that memkit wrote after days were created.
            self._hide_from_git(self.real(self.path / "0000-00-00.md"))

    @property
    def _is_in_project(self) -> bool:
        """Whether this is not the user's own memory, which is in the memory home."""
        return self.path == Path(self.project.root, MEMORY_DIRECTORY)

    def _hide_from_git(self, real: Path) -> None:
        """A repository's own patterns override git's excluded files; only a deeper ignore file helps."""
        if self.shared or not self._is_in_project:
            return
        root = self.project.root
        if is_ignored(root, str(real)):  # git has no answer for a path through a symlink
            return
        ignore = self.real(self.path / ".gitignore")
        if self.is_openclaw(real):
            ignore = real.with_name(".gitignore")
        elif not str(real).startswith(os.path.join(os.path.realpath(root), MEMORY_DIRECTORY, "")):
            raise RefusedFileError(
                str(self.path), "it is a link to files that git does not ignore, and memory.shared is off"
            )
        present = read_file(ignore)  # the user's patterns stay; the last match decides
        if not present.endswith(_HIDE_ALL):
            text = present + "\n" * (not present.endswith("\n") and bool(present)) + _HIDE_ALL
            write_durably(str(ignore), encoded(text))


def _stop_hiding(ignore: Path) -> None:
    patterns = read_file(ignore)
    kept = patterns.removesuffix(_HIDE_ALL)
    if kept and kept != patterns:
        write_durably(str(ignore), encoded(kept))
    elif kept != patterns:
        ignore.unlink()


def is_crlf(text: str) -> bool:
    """Return whether every line ends in CRLF, as on Windows."""
    return 0 < text.count("\n") == text.count("\r\n")


def read_file(path: Path) -> str:
    """Read a file as `read_data` does, keeping line ends and invalid bytes."""
    return read_data(str(path)).decode("utf-8", "surrogateescape")


def read_data(path: str) -> bytes:
    """Return the bytes of a file, none if there is no file.

    Raise `RefusedFileError` for anything but a regular file of bounded size, `OSError` for any other failure.
    """
    try:
        return read_regular(path)
    except FileNotFoundError:
        return b""


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def keep_replaced(home: Home, project: Project, name: str, text: str, day: str) -> Path | None:
    """Keep a copy of `text`, the redacted content that file `name` had until `day`. Raise `ArchiveError`.

    Return its path, or None for empty text. Durable on return; repeating it changes nothing.
    """
    if not text.strip():
        return None
    data = encoded(text)
    directory = directory_of_replaced(home, project.root)
    own = name.removesuffix(".md")
    path = directory / f"{own}-until-{day}-{hashlib.sha256(data).hexdigest()[:8]}.md"
    try:
        make_private_directory(str(directory))
        write_durably(str(path), data)
    except OSError as error:
        raise ArchiveError(
            f"cannot keep the old text as {path}: {error.strerror}; nothing was changed"
        ) from error
    return path


def replaced_files(home: Home, roots: Collection[str] | None) -> list[Path]:
    """Return the old versions kept for the projects at `roots`, or for all projects if None."""
    above = [Path(home.replaced)]
    if roots is not None:
        above = [directory_of_replaced(home, root) for root in roots]
    return sorted(path for directory in above for path in directory.rglob("*.md"))


def original_name(path: Path) -> str:
    """Return the name of the file whose old version is at `path`."""
    return _UNTIL.sub("", path.stem) + ".md"


def directory_of_replaced(home: Home, root: str) -> Path:
    """Return the directory with the old versions of the project at `root`."""
    owner = hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Path(home.replaced, f"{_UNSAFE.sub('-', Path(root).name)[:40]}-{owner}")
