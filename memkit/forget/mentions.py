"""Which IDs a file mentions. Most files mention none of those to forget, and need not be parsed.

A file is read once, and again only if it has changed: what to forget is searched for several times, the last
time under the lock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from os import stat
from pathlib import Path
from typing import NamedTuple

from memkit.archive import file as archive_file
from memkit.index.memory_files import RACY_NS
from memkit.journal.journal import Journal

# Every anchor of `memkit.anchors`, and other comments: rather too many than one too few.
_COMMENT = re.compile(rb"<!--([^\n<>]*)")
_KEYS = frozenset({"turn", "turns", "grip", "grips", "note", "fact"})


class Mentioned(NamedTuple):
    """The IDs of turns, bullets, notes, and facts that a file mentions, and whether it holds a fact."""

    ids: frozenset[str]
    has_fact: bool = False


class Mentions:
    """The IDs that each file mentions, kept in memory while its size, times, and inode stay the same."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], Mentioned]] = {}

    def of_day(self, journal: Journal, day: str) -> Mentioned:
        """Return the IDs in a day of a memory. Raise `JournalError`."""
        return self._of(journal.project.day_file(day), lambda: _in_markdown(journal.data(f"{day}.md")))

    def of_file(self, journal: Journal, path: Path) -> Mentioned:
        """Return the IDs in a Markdown file of a memory. Raise `JournalError`."""
        return self._of(str(path), lambda: _in_markdown(journal.data(path)))

    def of_archive(self, path: str) -> Mentioned:
        """Return the IDs of the turns in an archive file, and perhaps others. Raise `ArchiveError`."""
        return self._of(path, lambda: Mentioned(archive_file.turn_ids(path)))

    def _of(self, path: str, read: Callable[[], Mentioned]) -> Mentioned:
        before = _stamp(path)
        known = self._known.get(path)
        if before and known is not None and known[0] == before:
            return known[1]
        now, found = time.time_ns(), read()
        is_settled = bool(before) and max(before[:2]) + RACY_NS < now
        if is_settled and _stamp(path) == before:
            self._known[path] = before, found
        return found


def _in_markdown(data: bytes) -> Mentioned:
    comments = b" ".join(_COMMENT.findall(data)).decode("utf-8", "surrogateescape")
    pairs = [pair.partition(":") for pair in comments.split()]
    ids: Collection[str] = {value for key, _, value in pairs if key in _KEYS}
    listed = {name for value in ids if "," in value for name in value.split(",")}
    return Mentioned(frozenset({*ids, *listed}), any(key == "fact" for key, _, _ in pairs))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
