"""Open only regular files that lie where they seem to lie, and read a bounded part of them.

The files of a project come with its repository, so links, devices, pipes, and giants are normal input.
A directory that another process replaces by a link between the check and the use is not covered: who
can do that already runs programs as this user.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import errno
import os
import stat

MOST_BYTES = 64 * 1024 * 1024
"""The largest memory file that is read as a whole."""

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


def inside(path: str, root: str) -> str:
    """Return the real path of `path`, which need not exist.

    Raise `RefusedFileError` if it lies outside the real path of `root`, or in a `.git` below it.
    """
    real, boundary = os.path.realpath(path), os.path.realpath(root)
    folded, start = os.path.normcase(real), os.path.normcase(boundary).rstrip(os.sep) + os.sep
    if not (folded + os.sep).startswith(start):
        raise RefusedFileError(path, f"it leads out of {root}")
    if ".git" in folded[len(start) :].lower().split(os.sep):
        raise RefusedFileError(path, "it leads into git's own files")
    return real


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return the descriptor. Do not follow a link, and never wait.

    Raise `RefusedFileError` for anything but a regular file, `OSError` for the rest.
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


def read_regular(path: str, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    Raise `RefusedFileError` if it is no regular file or larger than `most` bytes, `OSError` for the rest.
    """
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
        raise RefusedFileError(path, "it is no regular file")
