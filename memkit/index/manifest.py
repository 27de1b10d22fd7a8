"""The manifest of an index: the segments that make up its current state, and what of each counts.

A new state replaces the file at once, so a reader sees the old or the new one. Its checksum reveals damage.
Its values are checked too: a file with a right checksum may still come from elsewhere. Standard library only.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from memkit.errors import StaleSnapshotError, raise_if_exhausted
from memkit.files import read_head, read_regular
from memkit.state import parse_json

logger = logging.getLogger(__name__)

FORMAT = 9

MANIFEST = "manifest"
"""The file: a line with the name of the state and a checksum, then JSON."""

SUFFIX = ".segment"

_NAME = re.compile(r"[0-9a-f]{32}")

Stat = tuple[int, ...]
"""Size, times of change in nanoseconds, and inode of a file. Equal ones mean equal bytes; () is unknown."""


class Entry(NamedTuple):
    """The manifest's entry of one memory file.

    `state` is that of `memory_files.state_of`. Its chunks are `first` to before `last` of the segment with
    this number; none if both are 0. `waiting` of them have no vector. `stat` identifies the bytes that were
    read; it is empty if they may have changed since.
    """

    state: str
    segment: int = 0
    first: int = 0
    last: int = 0
    waiting: int = 0
    stat: Stat = ()


class Run(NamedTuple):
    """Neighboring chunks: those of a segment from `first` to before `last`, at `start` in the whole."""

    segment: int
    first: int
    last: int
    start: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One state of an index.

    Attributes:
        name: 32 hex characters. No other state of any index has it.
        root: the root directory of the project.
        segments: the names of the segments, each 32 hex characters, and the stats that their files had when
            they were checked or written.
        entries: the indexed memory files by source.
    """

    name: str
    root: str
    segments: Mapping[str, Stat]
    entries: Mapping[str, Entry]

    @property
    def sources(self) -> dict[str, str]:
        """The state of each indexed memory file by source, see `memory_files.state_of`."""
        return {source: entry.state for source, entry in self.entries.items()}

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return sum(entry.last - entry.first for entry in self.entries.values())

    @property
    def missing(self) -> int:
        """The number of chunks that are not embedded."""
        return sum(entry.waiting for entry in self.entries.values())

    def to_bytes(self) -> bytes:
        """Return the content of `MANIFEST`."""
        value = {
            "format": FORMAT, "root": self.root, "segments": dict(self.segments),
            "sources": dict(sorted(self.entries.items())),
        }
        data = json.dumps(value, separators=(",", ":")).encode("ascii")
        name = self.name.encode("ascii")
        return b"%s %d\n%s" % (name, zlib.crc32(data, zlib.crc32(name)), data)

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read the current state in `directory`. Raise `StaleSnapshotError`."""
        try:
            name, value = _read(directory)
            if value["format"] != FORMAT:
                raise StaleSnapshotError(f"the snapshot in {directory} is of another version of memkit")
            segments = {one: _stat(stat) for one, stat in value["segments"].items()}
            _checked(all(map(_NAME.fullmatch, segments)), list(segments))
            entries = {source: _entry(values, len(segments)) for source, values in value["sources"].items()}
            return cls(name, _text(value["root"]), segments, entries)
        except FileNotFoundError as error:
            raise StaleSnapshotError(f"the snapshot in {directory} is gone") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(f"the snapshot in {directory} cannot be used: {error}") from error


def name_of(directory: Path) -> str:
    """Return the name of the current state in `directory`, also of another format; "" if there is none."""
    try:
        head = read_head(str(directory / MANIFEST), 80).split(b" ")[0]
        return head.decode("ascii")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise_if_exhausted(error)
        return ""


def root_of(directory: Path) -> str:
    """Return the root of the project whose index is in `directory`; "" if it cannot be read.

    An index of another format counts too: its project stays known until the index is made again. Raise
    `NoDescriptorsError`.
    """
    try:
        return _text(_read(directory)[1]["root"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise_if_exhausted(error)
        logger.info("the snapshot in %s cannot be read: %s", directory, error)
        return ""


def stat_of(found: os.stat_result) -> Stat:
    """Return what identifies the bytes of a file."""
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def runs_of(entries: Mapping[str, Entry]) -> list[Run]:
    """Return the runs of all chunks in the order of their sources; neighbors in a segment are one run."""
    runs: list[Run] = []
    start = 0
    for _, entry in sorted(entries.items()):
        if entry.first == entry.last:
            continue
        if runs and (runs[-1].segment, runs[-1].last) == (entry.segment, entry.first):
            runs[-1] = runs[-1]._replace(last=entry.last)
        else:
            runs.append(Run(entry.segment, entry.first, entry.last, start))
        start += entry.last - entry.first
    return runs


def _read(directory: Path) -> tuple[str, Any]:
    head, _, data = read_regular(str(directory / MANIFEST)).partition(b"\n")
    name, checksum = head.decode("ascii").split(" ")
    if int(checksum) != zlib.crc32(data, zlib.crc32(name.encode("ascii"))) or not _NAME.fullmatch(name):
        raise ValueError("its manifest is damaged")
    return name, parse_json(data)


def _entry(values: Any, segments: int) -> Entry:
    state, segment, first, last, waiting, stat = values
    # All in one step: a search that starts without the service reads thousands.
    is_right = (
        isinstance(state, str)
        and {*map(type, (segment, first, last, waiting, *stat))} == {int}
        and 0 <= first <= last
        and 0 <= waiting <= last - first
        and (first == last or 0 <= segment < segments)
    )
    _checked(is_right, values)
    return Entry(state, segment, first, last, waiting, tuple(stat))


def _stat(numbers: Iterable[Any]) -> Stat:
    found = tuple(numbers)
    _checked(all(type(one) is int for one in found), found)
    return found


def _text(value: object) -> str:
    return str(_checked(isinstance(value, str), value))


def _checked(is_right: bool, value: Any) -> Any:
    if not is_right:
        raise ValueError(f"its manifest has {str(value)[:80]!r}")
    return value
