"""What can go wrong, as people read it.

Every error a person may see is a `MemkitError` whose message is one line: what happened, where,
and what to do. The command line prints it and exits 1; tracebacks go to the log only.
"""

from __future__ import annotations

import errno


class MemkitError(Exception):
    """Base of all errors meant for people. The message is one complete line."""


class ConfigError(MemkitError):
    """A setting is unknown or has a bad value, or a settings file cannot be read."""


class SettingError(ValueError):
    """A value that is not allowed; `name` is the field's, or "" if several fields do not fit together."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


class TranscriptError(MemkitError):
    """A transcript cannot be found or read at all."""


class JournalError(MemkitError):
    """A memory file cannot be written."""


class ArchiveError(MemkitError):
    """The archive of a session cannot be read or written."""


class ArchiveVersionError(ArchiveError):
    """The archive of a session was written by a newer memkit."""


class TombstoneError(MemkitError):
    """What was forgotten is not known: the file that says so cannot be read."""


class BackupError(MemkitError):
    """A backup cannot be written, is damaged, or is none."""


class NewerFileError(MemkitError):
    """A file was written by a newer memkit, whose format this one does not know."""


class DamagedFileError(MemkitError):
    """A file of memkit's own cannot be read, and what stands in it is not known elsewhere."""


class IndexStoreError(MemkitError):
    """The index cannot be opened, read or written."""


class StaleSnapshotError(IndexStoreError):
    """A snapshot is absent, damaged, or of another version, language or set of parameters."""


class ForeignSnapshotError(StaleSnapshotError):
    """A snapshot was written by another version of memkit."""


class NoDescriptorsError(IndexStoreError):
    """The system lets this process open no more files; that says nothing about any of them."""


class IndexBusyError(IndexStoreError):
    """Another process held the index for longer than we were willing to wait."""


class EmbeddingError(MemkitError):
    """Text cannot be embedded: a provider is missing, refuses, or returns unusable vectors."""


class WeightsUnavailableError(EmbeddingError):
    """No source gave the model's weights; search goes on with BM25 alone."""


class RegistryError(MemkitError):
    """What is said about projects cannot be read or changed."""


class NotFoundError(MemkitError):
    """What was asked for by name or id is not in the memory."""


class AmbiguousIdError(MemkitError):
    """A shortened id fits more than one thing."""


def raise_if_exhausted(error: Exception) -> None:
    """Raise `NoDescriptorsError` if that is what `error` says: the file itself may be sound, and is kept."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise NoDescriptorsError(
            f"the index cannot be read: {error.strerror}; allow more with `ulimit -n 4096`, and try again"
        ) from error


def unwritable(error: OSError, place: str) -> str:
    """What the system refused, where, and what to do; `place` is named if the error names no file."""
    where = error.filename if isinstance(error.filename, str) else place
    reason = error.strerror or str(error) or type(error).__name__
    advice = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "; make room on that disk"
    elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        advice = "; make it writable"
    return f"{where}: {reason}{advice}"
