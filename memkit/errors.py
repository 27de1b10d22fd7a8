"""Errors that users see.

Each is a `MemkitError` with a message of one line: what happened, where, and what to do. The command line
prints it and exits with status 1. Tracebacks go to the log only.
"""

from __future__ import annotations

import errno
import os


class MemkitError(Exception):
    """Base of all errors that users see. The message is one complete line."""


class ConfigError(MemkitError):
    """A setting is unknown or has a bad value, or a settings file cannot be read."""


class SettingError(ConfigError, ValueError):
    """A setting has a value that is not allowed. `name` is the setting, or "" if several values conflict.

    A `ValueError` too, so that msgspec reports it as a failed validation.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


class TranscriptError(MemkitError):
    """A transcript is missing or unreadable."""


class JournalError(MemkitError):
    """A memory file cannot be written."""


class ArchiveError(MemkitError):
    """A session's archive cannot be read or written."""


class ArchiveVersionError(ArchiveError):
    """A session's archive was written by a newer memkit."""


class NewerFileError(MemkitError):
    """A file was written by a newer memkit, in a format that this one does not know."""


class DamagedFileError(MemkitError):
    """A file of memkit's is damaged, and its content exists nowhere else."""


class IndexStoreError(MemkitError):
    """The index cannot be opened, read, or written."""


class StaleSnapshotError(IndexStoreError):
    """A snapshot is missing or damaged, or its version, language, or parameters are not the current ones."""


class NoDescriptorsError(IndexStoreError):
    """The system lets this process open no more files; the files themselves may be fine."""


class IndexBusyError(IndexStoreError):
    """Another process kept the lock of the index, or of capture, for too long."""


class EmbeddingError(MemkitError):
    """Text cannot be embedded: the provider is missing, refuses, or returns unusable vectors."""


class WeightsUnavailableError(EmbeddingError):
    """No source has the model's weights; search works with BM25 alone."""


class NotFoundError(MemkitError):
    """Nothing has the given name or id."""


class MissingPackageError(MemkitError):
    """An optional package is not installed."""


class OtherProjectsError(MemkitError):
    """Only the user can allow to read the memory of other projects."""


class AmbiguousIdError(MemkitError):
    """A shortened id matches several entries."""


def raise_if_exhausted(error: Exception) -> None:
    """Raise `NoDescriptorsError` if no more files can be opened: the file itself may be fine."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise NoDescriptorsError(
            f"the index cannot be read: {error.strerror}; allow more with `ulimit -n 4096`, and try again"
        ) from error


def unwritable(error: OSError, place: str) -> str:
    """Return a line on a failed write: the error, where (`place` if it names no file), and what to do."""
    where = error.filename if isinstance(error.filename, str) else place
    reason = error.strerror or str(error) or type(error).__name__
    advice = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "; make room on that disk"
    elif error.errno in (errno.EROFS, errno.EACCES) or (
        error.errno == errno.EPERM and reason == os.strerror(errno.EPERM)  # not what memkit refuses itself
    ):
        advice = "; make it writable"
    return f"{where}: {reason}{advice}"
