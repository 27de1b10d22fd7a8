"""The directories that the kernel watches for us, through watchdog's observer."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

LIMITS = {
    errno.ENOSPC: "fs.inotify.max_user_watches",
    errno.EMFILE: "fs.inotify.max_user_instances",
}
"""What inotify says when it takes no more, and the sysctl that would let it."""


@dataclass(frozen=True, slots=True)
class _Directory:
    watch: ObservedWatch
    recursive: bool
    identity: tuple[int, int]


class Directories:
    """Directories under watch, by one observer, which begins with the first of them.

    `doubt` may be called from any thread; of the rest, one call at a time.
    """

    def __init__(self, on_event: Callable[[FileSystemEvent], None]) -> None:
        """`on_event` is called in a thread of the observer: creations, edits, moves, deletions."""
        self._on_event = on_event
        self._directories: dict[str, _Directory] = {}
        self._doubtful: set[str] = set()
        self._lock = threading.Lock()
        self._observer: BaseObserver | None = None
        self._handler: FileSystemEventHandler | None = None

    def __contains__(self, path: str) -> bool:
        return path in self._directories

    def add(self, path: str, recursive: bool) -> None:
        """Watch a directory, an absolute path without links. Raises `OSError`, see `LIMITS`."""
        status = os.stat(path)
        watch = self._schedule(path, recursive)
        self._directories[path] = _Directory(watch, recursive, (status.st_dev, status.st_ino))

    def doubt(self, path: str) -> None:
        """Something was created, moved or deleted at `path`: it may be another directory now."""
        if path in self._directories:
            with self._lock:
                self._doubtful.add(path)

    def keep(self, wanted: Mapping[str, bool]) -> None:
        """Stop watching what is not `wanted` (and whether recursively), or another directory now."""
        with self._lock:
            doubtful, self._doubtful = self._doubtful, set()
        for path, directory in list(self._directories.items()):
            is_enough = path in wanted and directory.recursive >= wanted[path]
            if not is_enough or path in doubtful or directory.identity != _identity(path):
                del self._directories[path]
                if self._observer is not None:
                    self._observer.unschedule(directory.watch)

    def has_room(self) -> bool:
        """Whether the kernel takes one more directory.

        Only then has it taken all: watchdog passes over those below a tree that it could not add.
        """
        if sys.platform != "linux" or self._observer is None:
            return True
        # Its name is hidden, so that it is no change of a memory that it happens to lie in.
        with tempfile.TemporaryDirectory(prefix=".memkit-") as directory:
            try:
                watch = self._schedule(directory, recursive=False)
            except OSError as error:
                return error.errno not in LIMITS
            self._observer.unschedule(watch)
        return True

    def close(self) -> None:
        """Watch nothing any more; the observer's threads have ended when this returns."""
        self._directories.clear()
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _schedule(self, path: str, recursive: bool) -> ObservedWatch:
        from watchdog import events
        from watchdog.observers import Observer

        if self._observer is None or self._handler is None:
            on_event = self._on_event

            class Handler(events.FileSystemEventHandler):
                def on_any_event(self, event: FileSystemEvent) -> None:
                    on_event(event)

            # It warns of directories that it adds twice while a tree is copied, which does no harm.
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
            self._handler = Handler()
            observer = Observer()
            observer.start()
            self._observer = observer
        return self._observer.schedule(
            self._handler,
            path,
            recursive=recursive,
            # Not those of opening, reading and closing, of which an index pass makes many.
            event_filter=[
                events.FileCreatedEvent,
                events.FileModifiedEvent,
                events.FileMovedEvent,
                events.FileDeletedEvent,
                events.DirCreatedEvent,
                events.DirMovedEvent,
                events.DirDeletedEvent,
            ],
        )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
