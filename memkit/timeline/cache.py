"""The summaries of a memory's days, kept in the memory home so that only changed day files are read again.

One file for each month of the timeline, `index/timeline/PROJECT/2026-11.json`: a turn that is added changes
the file of its month and no other. It is derived from the day files alone, and whoever deletes it loses
nothing. Each day has the identity of the file that it was read from.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from glob import escape, glob
from typing import Annotated

import msgspec

from memkit.errors import JournalError
from memkit.files import inside, make_private_directory, read_regular, write_durably
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project, digest16
from memkit.timeline.nodes import day_of, month_of
from memkit.timeline.summary import (
    Numbers,
    Segment,
    Summary,
    count_day,
    joined,
    read_day,
    read_segments,
    same_day,
    summarize,
)

logger = logging.getLogger(__name__)

VERSION = 3
_SUFFIX = ".json"
_MANY_DAYS = 50
"""From this number of changed days on, a line tells what takes time."""

Stamp = tuple[int, int, int]
"""Modification time in nanoseconds, size, and inode: a file that was written again has another one."""


class Day(msgspec.Struct, frozen=True):
    """A day file as the timeline knows it."""

    summary: Summary
    segments: list[Segment]
    numbers: Numbers


class _MonthFile(msgspec.Struct):
    """A month as its file has it. `days` stay text until they are asked for: most views need sums only."""

    stamps: dict[str, Stamp]
    total: Summary
    days: msgspec.Raw
    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)] = VERSION


# Made at import: msgspec's first use of a type is not thread-safe.
_DAYS = msgspec.json.Decoder(dict[str, Day])
_MONTH_FILE = msgspec.json.Decoder(_MonthFile)


def _decoded(file: _MonthFile) -> dict[str, Day]:
    found = _DAYS.decode(file.days)
    if found.keys() != file.stamps.keys():
        raise msgspec.DecodeError("its days are not those of its files")
    return found


class Month:
    """A month of the timeline: its sum, and its day files by name, oldest first."""

    def __init__(self, file: _MonthFile, read_again: Callable[[], _MonthFile]) -> None:
        """`read_again` reads the day files, if it turns out that the text of the days is damaged."""
        self.names = sorted(file.stamps)
        self.stamps = file.stamps
        self.total = file.total
        self._file = file
        self._read_again = read_again

    @cached_property
    def days(self) -> dict[str, Day]:
        """The known facts of each day file, by its name."""
        try:
            return _decoded(self._file)
        except msgspec.DecodeError as error:
            logger.warning("a month of the timeline is made again: %s", error)
            return _decoded(self._read_again())

    def may_hold(self, name: str) -> bool:
        """Whether an id that begins with `name` may be in it. Most months can be left out without reading."""
        return f'"{name}'.encode() in bytes(self._file.days)


class MonthCache:
    """Reads the months of a project, and keeps them up to date."""

    def __init__(
        self, project: Project, home: Home, announce: Callable[[str], None],
        announce_wait: Callable[[str], None] | None = None,
    ) -> None:
        """`announce` gets a line about each day that cannot be read, `announce_wait` about a long wait."""
        self._journal = Journal(project.for_counting())
        self._directory = os.path.join(directory_of_timelines(home), digest16(project.root))
        self._announce = announce
        self._announce_wait = announce_wait or announce

    def months(self) -> dict[str, Month]:
        """Return all months by name, the oldest first, as their day files are now."""
        present = self._stamps()
        kept = {month: self._read(month) for month in present}
        stamps = {month: file.stamps for month, file in kept.items() if file}
        stale = sum(len(days.items() - stamps.get(month, {}).items()) for month, days in present.items())
        if stale >= _MANY_DAYS:
            self._announce_wait(f"reading {stale:,} days for the timeline; the next call will be fast")
        found = {}
        for month, days in sorted(present.items()):
            file = kept[month]
            if file is None or file.stamps != days:
                file = self._update(month, days, file)
            if file.stamps:
                found[month] = Month(file, partial(self._update, month, days, None))
        self._drop_others(present)
        return found

    def _stamps(self) -> dict[str, dict[str, Stamp]]:
        found: dict[str, dict[str, Stamp]] = {}
        for name in self._journal.days():
            day = day_of(name)
            if day is None:  # looks like the name of a day that the calendar does not have
                continue
            stamp = self._stamp(name)
            if stamp is not None:
                found.setdefault(month_of(day), {})[name] = stamp
        return found

    def _stamp(self, name: str) -> Stamp | None:
        try:
            status = os.stat(self._journal.path(name))
        except OSError:  # removed since the listing
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self, month: str) -> _MonthFile | None:
        try:
            data = read_regular(self._path(month))
            return _MONTH_FILE.decode(data)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("the timeline of %s is made again: %s", month, error)
            return None

    def _update(self, month: str, stamps: Mapping[str, Stamp], kept: _MonthFile | None) -> _MonthFile:
        days: dict[str, Day] = {}
        known: dict[str, Day] = {}
        if kept is not None:
            try:
                known = _decoded(kept)
            except msgspec.DecodeError as error:
                logger.warning("the timeline of %s is made again: %s", month, error)
        for name in sorted(stamps):
            if kept is not None and name in known and kept.stamps.get(name) == stamps[name]:
                days[name] = known[name]
                continue
            try:
                content = read_day(self._journal, name)
            except JournalError as error:
                self._announce(str(error))
                continue
            days[name] = Day(summarize(name, content), read_segments(name, content), count_day(content))
        dates: dict[str, list[Summary]] = {}
        for name, day in days.items():
            dates.setdefault(name[:10], []).append(day.summary)
        total = joined([same_day(parts) for parts in dates.values()])
        # A day that cannot be read is not kept, so that the next call tries it again.
        own = {name: stamps[name] for name in days}
        file = _MonthFile(own, total, msgspec.Raw(msgspec.json.encode(days)))
        self._write(month, file)
        return file

    def _write(self, month: str, file: _MonthFile) -> None:
        def check() -> None:
            # `forget` rewrites the days, then removes this directory. What was read before must not return.
            if any(self._stamp(name) != stamp for name, stamp in file.stamps.items()):
                raise _ChangedError

        try:
            make_private_directory(self._directory)
            write_durably(self._path(month), msgspec.json.encode(file), check=check)
        except _ChangedError:
            logger.info("a day of %s changed meanwhile; its timeline is not kept", month)
        except OSError as error:  # a full disk: the answer needs no cache
            logger.warning("cannot keep the timeline of %s: %s", month, error)

    def drop_stale(self) -> None:
        """Remove all files but those of months whose days are as they were read. Raise `OSError`."""
        present = self._stamps()
        for name in os.listdir(self._directory):
            path = os.path.join(self._directory, name)
            try:
                kept = _MONTH_FILE.decode(read_regular(path)).stamps
            except (OSError, msgspec.DecodeError):
                kept = {}
            if not kept or present.get(name.removesuffix(_SUFFIX)) != kept:
                os.unlink(path)

    def _drop_others(self, present: Mapping[str, object]) -> None:
        for path in glob(os.path.join(escape(self._directory), f"*{_SUFFIX}")):
            if os.path.basename(path).removesuffix(_SUFFIX) not in present:
                try:
                    os.unlink(path)
                except OSError as error:
                    logger.warning("cannot remove %s: %s", path, error)

    def _path(self, month: str) -> str:
        return os.path.join(self._directory, month + _SUFFIX)


class _ChangedError(Exception):
    """A day file changed after it was read."""


def directory_of_timelines(home: Home) -> str:
    """Return the directory with the timelines of all projects."""
    return os.path.join(home.index, "timeline")


def erase_timelines(home: Home, projects: Iterable[Project]) -> None:
    """Remove what is kept of all timelines, except what the days of `projects` say as they are now.

    The next look at a timeline makes it again. Raise `OSError`.
    """
    directory = inside(directory_of_timelines(home), home.root)
    if not os.path.isdir(directory):
        return
    known = {digest16(project.root): project for project in projects}
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if name in known and os.path.isdir(path) and not os.path.islink(path):
            MonthCache(known[name], home, logger.info).drop_stale()
        elif os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
