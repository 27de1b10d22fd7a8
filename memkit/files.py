"""Read and write files safely.

Reading: a project's files come with its repository, so links, devices, pipes, and huge files are normal
input. Only regular files are opened, and a bounded part is read. A process that swaps a directory for a
link between check and use is not covered: it already runs as this user.

Writing: a reader sees the old file or the new one, never a part. A write that returned survives a power
cut.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import io
import os
import stat
import time
from collections.abc import Callable, Iterator

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

READERS_BLOCK = os.name == "nt"
"""Whether the system refuses to replace a file that any program, such as a virus scanner, has open."""

BUSY_SECONDS = 2.0
"""How long to retry a rename while another program has the file open."""

_TEMPORARY_NAME = r"\.[a-z0-9_]{8}\.tmp"
"""The names `write_durably` gives unfinished files; `tempfile` picks the eight characters."""

MOST_BYTES = 64 * 1024 * 1024
"""The largest memory file that is read as a whole."""

_unsynced: set[int] = set()
"""The threads in `durable_together`."""

_SAFE_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class RefusedFileError(OSError):
    """A file that memkit does not open. `strerror` says why, `filename` which one."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(errno.EPERM, reason, path)


def inside(path: str, root: str, is_real: bool = False) -> str:
    """Return the real path of `path`, which need not exist.

    Raise `RefusedFileError` if it lies outside the real path of `root`, or in a `.git` below it. `is_real`
    says that `root` is a real path.
    """
    boundary = root if is_real else os.path.realpath(root)
    real = path if _has_no_links(path, boundary) else os.path.realpath(path)
    folded, start = os.path.normcase(real), os.path.normcase(boundary).rstrip(os.sep) + os.sep
    if not (folded + os.sep).startswith(start):
        raise RefusedFileError(path, f"it leads out of {root}")
    if ".git" in folded[len(start) :].lower().split(os.sep):
        raise RefusedFileError(path, "it leads into git's own files")
    return real


def _has_no_links(path: str, real: str) -> bool:
    """Return whether `path` has no link below the real path `real`, three times as fast as `realpath`."""
    if os.name != "posix" or not path.startswith(real + os.sep):  # Windows has other links, and short names
        return False
    part = real
    for name in path[len(real) + 1 :].split(os.sep):
        if name in ("", os.curdir, os.pardir):
            return False
        part = f"{part}{os.sep}{name}"
        try:
            if stat.S_ISLNK(os.lstat(part).st_mode):
                return False
        except OSError:
            return False
    return True


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return the descriptor. Do not follow a link, and never wait.

    Raise `RefusedFileError` for anything but a regular file, `OSError` for any other failure.
    """
    _refuse_others(path, os.lstat(path).st_mode)  # opening some devices has effects of its own
    try:
        descriptor = os.open(path, flags | _SAFE_FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RefusedFileError(path, "it is a link") from error
        raise
    try:
        _refuse_others(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def files_below(directory: str, pattern: str = "*") -> Iterator[str]:
    """Yield the files below a directory with such names, in no order. Follow links to files only."""
    from fnmatch import fnmatchcase  # hooks do not need it

    for entry in entries_below(directory):
        if fnmatchcase(entry.name, pattern) and (
            entry.is_file(follow_symlinks=False) or os.path.isfile(entry.path)
        ):
            yield entry.path


def entries_below(directory: str) -> Iterator[os.DirEntry[str]]:
    """Yield all but the folders below a directory, in no order, without following links.

    `rglob` and `os.walk` fail where folders nest deeply. What cannot be listed is logged.
    """
    folders = [directory]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        yield entry
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            import logging  # hooks rarely need it

            logging.getLogger(__name__).warning("cannot look into a folder: %s", error)


def read_regular(path: str, most: int = MOST_BYTES) -> bytes:
    """Return a regular file of at most `most` bytes. Raise `RefusedFileError`, else `OSError`."""
    with os.fdopen(open_regular(path), "rb") as file:
        is_larger = os.fstat(file.fileno()).st_size > most
        data = b"" if is_larger else file.read(most + 1)
    if is_larger or len(data) > most:
        raise RefusedFileError(path, f"it is larger than {most:,} bytes")
    return data


def read_head(path: str, most: int) -> bytes:
    """Return at most the first `most` bytes of a regular file. Raise as `open_regular` does."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read(most)


def read_tail(path: str, most: int) -> bytes:
    """Return at most the last `most` bytes of a regular file. Raise as `open_regular` does."""
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def _refuse_others(path: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise RefusedFileError(path, "it is a link")
    if not stat.S_ISREG(mode):
        raise RefusedFileError(path, "it is not a regular file")


def remove_path(path: str | os.PathLike[str]) -> None:
    """Remove a file, a link, or a directory with its content, if there is one. Raise `OSError`."""
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil  # hooks do not need it

        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def make_private_directory(path: str) -> str:
    """Create the directory `path` and its missing parents with mode 0700; return `path`."""
    if not os.path.isdir(path):
        parent = os.path.dirname(path)
        if parent and parent != path:
            make_private_directory(parent)
        try:
            os.mkdir(path, PRIVATE_DIRECTORY)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
    return path


def create_private(path: str) -> io.BufferedWriter:
    """Open a new or emptied file for writing that only its owner may read; not forced to the disk."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb")


@contextlib.contextmanager
def open_replacement(path: str) -> Iterator[io.BufferedWriter]:
    """Yield a new file that replaces `path`, durably, at the end of the block. Only its owner may read it.

    Its `name` is its path, for libraries that open it again.

    For data too large for `write_durably`. If the block fails, the old file stays. Raise `OSError`.
    """
    directory, name = os.path.split(os.path.abspath(path))
    partial = os.path.join(directory, f".{name}.partial")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(partial)  # left by a killed process
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, PRIVATE_FILE)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        rename_over(partial, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path
        raise
    sync_directory(directory)


def rename_over(made: str, path: str) -> None:
    """Rename the file `made` to `path` and replace what is there. Raise `OSError`."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            os.replace(made, path)
            return
        except PermissionError:
            if not READERS_BLOCK or time.monotonic() > deadline:
                raise
        except OSError as error:  # it names the temporary file first
            raise OSError(error.errno, error.strerror, path) from error
        time.sleep(0.01)


def stale_temporary_files(directory: str, before: float) -> list[str]:
    """Return the temporary files of killed writers, older than `before` (seconds since the epoch)."""
    import re  # the launcher does not need it

    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not re.fullmatch(_TEMPORARY_NAME, entry.name):
                    continue
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_mtime < before:
                    found.append(entry.path)
    except FileNotFoundError:
        return []
    return found


@contextlib.contextmanager
def durable_together() -> Iterator[None]:
    """Make what this thread writes in the block durable at its end, not file by file.

    That is ten times as fast for thousands of files. Where the system cannot, it changes nothing.
    """
    sync, thread = getattr(os, "sync", None), _thread.get_ident()
    if sync is None:
        yield
        return
    _unsynced.add(thread)
    try:
        yield
    finally:
        _unsynced.discard(thread)
        sync()


def sync_file(descriptor: int) -> None:
    """Make a file durable, now or at the end of `durable_together`."""
    if _thread.get_ident() not in _unsynced:
        os.fsync(descriptor)


def sync_directory(path: str) -> None:
    """Make renames inside `path` survive a power cut, where the platform can."""
    if _thread.get_ident() in _unsynced:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # Windows cannot open a directory; its renames are journaled
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse; the file itself is synced
        pass
    finally:
        os.close(descriptor)


def rewrite(path: str, change: Callable[[str], str]) -> bool:
    """Replace the text of a file, "" if there is none, by what `change` returns; "" removes the file.

    Return whether that changed it. Raise `OSError`, `ValueError`.
    """
    text = read_regular(path).decode("utf-8") if os.path.exists(path) else ""
    changed = change(text)
    if changed == text:
        return False
    if not changed:
        os.unlink(path)
        return True
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = os.stat(path).st_mode & 0o777 if text else PRIVATE_FILE
    write_durably(path, changed.encode(), mode)
    return True


def write_durably(
    path: str,
    data: bytes,
    mode: int = PRIVATE_FILE,
    check: Callable[[], None] | None = None,
) -> None:
    """Replace the file at `path` with `data`, atomically and synced to disk.

    `check` is called right before the rename and may raise to stop it. Raise `OSError`; then the old file
    stays, and no temporary file is left.
    """
    import tempfile  # 8 ms, which most callers need not pay

    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            sync_file(file.fileno())
        os.chmod(temporary, mode)
        if check is not None:
            check()
        rename_over(temporary, path)
    except BaseException as error:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path  # errors of a full disk name no file
        raise
    sync_directory(directory)
