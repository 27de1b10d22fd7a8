"""Report when the memory of a project changes.

A file system event is only a hint. After a burst of events, and every few seconds in any case, the watcher
lists the files as the scanner does, and calls back if the list has changed. So no editor's habit and no lost
event matters, and network drives, which send none, need no special care.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from memkit.errors import MemkitError
from memkit.index.memory_files import memory_paths
from memkit.index.scanner import is_below, is_markdown, scan
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import MOST_DEBOUNCE_MS
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

logger = logging.getLogger(__name__)

LIST_SECONDS = MOST_DEBOUNCE_MS / 1000
"""The longest time between two listings, without an event and in a burst that never pauses."""


@dataclass(slots=True)
class _Memory:
    paths: list[Path]
    exclude: list[str]
    files: dict[str, tuple[int, ...]] = field(default_factory=dict)  # as last reported
    unreadable: dict[str, str] = field(default_factory=dict)  # the scanner logs each once


class Watcher:
    """Watches the memories of any number of projects. Any thread may call it, the callback too."""

    def __init__(self, changed: Callable[[str], object]) -> None:
        """Call `changed(root)` once for each burst of changes, in the watcher's thread."""
        self._changed = changed
        self._debounce_ms = Settings().watch.debounce_ms
        self._memories: dict[str, _Memory] = {}
        self._directories: dict[str, tuple[bool, int]] = {}
        self._observer: BaseObserver | None = None
        self._has_moved = False  # whether a directory may have been replaced
        self._removed: set[str] = set()  # Markdown files that went since the last listing
        self._event = threading.Event()
        self._closed = False
        # Never held while files are listed or observed: a hanging drive must not stop other projects.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def watch(self, root: str, paths: Sequence[Path], exclude: Sequence[str] = ()) -> None:
        """Watch a memory; `paths` and `exclude`, as for `scan`, replace those of an earlier call.

        Every change after this returns is reported: watch first, then index.
        """
        given = _Memory(list(paths), list(exclude))
        if root not in self._memories:
            given.files = _list_files(root, given)
        with self._lock:
            if self._closed:
                raise RuntimeError("the watcher is closed")
            known = self._memories.get(root)
            if known is None or (known.paths, known.exclude) != (given.paths, given.exclude):
                given.files = given.files if known is None else known.files
                self._memories[root] = given
            self._event.set()
            if self._thread.ident is None:
                self._thread.start()

    def watch_memory(self, project: Project, home: Home, settings: Settings) -> int:
        """Watch the memory of a project as its settings define it. Return the number of its paths.

        `watch.debounce_ms` is the user's own, so it counts for all projects.
        """
        self._debounce_ms = settings.watch.debounce_ms
        paths = memory_paths(project, home, settings)
        self.watch(project.root, [Path(path) for path in paths], settings.memory.exclude)
        return len(paths)

    def unwatch(self, root: str) -> None:
        """Stop watching a project. Do nothing if it is not watched."""
        with self._lock:
            self._memories.pop(root, None)

    def close(self) -> None:
        """Stop watching, and wait for the thread unless it is the calling one."""
        with self._lock:
            self._closed = True
            self._memories.clear()
            self._event.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            self._event.wait(LIST_SECONDS)
            end = time.monotonic() + LIST_SECONDS
            while self._event.is_set() and not self._closed and time.monotonic() < end:
                self._event.clear()
                self._event.wait(min(self._debounce_ms / 1000, LIST_SECONDS))
            try:
                for root in self._changed_roots():
                    self._changed(root)
            except Exception:  # one failed call must not end the watching
                logger.exception("handling a change of the memory failed")
        self._stop_observer()

    def _changed_roots(self) -> list[str]:
        """Return the projects whose files are not those of the last report, or that lost a file.

        A search may have had a file indexed that came and went between two listings.
        """
        with self._lock:
            memories = dict(self._memories)
            removed, self._removed = self._removed, set()
        directories = _find_directories(memories)
        if self._has_moved or directories != self._directories:
            self._observe(directories)
        found = {root: _list_files(root, memory) for root, memory in memories.items()}
        with self._lock:
            changed = [
                root
                for root, memory in memories.items()
                if self._memories.get(root) is memory
                and (memory.files != found[root] or _holds_any(root, memory, removed))
            ]
            for root in changed:
                memories[root].files = found[root]
        return changed

    def _observe(self, directories: dict[str, tuple[bool, int]]) -> None:
        self._stop_observer()
        self._directories = directories
        self._has_moved = False
        try:
            if self._directories and not self._closed:
                self._start_observer()
        except (FileNotFoundError, NotADirectoryError):  # removed in this moment
            self._has_moved = True
        except OSError as error:
            logger.warning("changes are found only every %g s: %s", LIST_SECONDS, error)
        self._event.set()  # what changed in the meantime gave no event

    def _start_observer(self) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        on_event = self._on_event

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                on_event(event)

        # It warns of directories that it adds twice while a tree is copied, which does no harm.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        # Not opening, reading, and closing: an index pass causes many of these events.
        kinds: list[type[FileSystemEvent]] = [events.FileCreatedEvent, events.FileModifiedEvent]
        kinds += [events.FileMovedEvent, events.FileDeletedEvent]
        kinds += [events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent]
        self._observer = Observer()
        self._observer.start()
        for path, (is_deep, _) in self._directories.items():
            self._observer.schedule(Handler(), path, recursive=is_deep, event_filter=kinds)

    def _on_event(self, event: FileSystemEvent) -> None:
        if event.is_directory:
            self._has_moved = True
        elif event.event_type in ("deleted", "moved") and is_markdown(os.fsdecode(event.src_path)):
            with self._lock:
                self._removed.add(os.fsdecode(event.src_path))
        self._event.set()

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()


def memory_changes(project: Project, home: Home, settings: Settings) -> Generator[int, None, None]:
    """Yield the number of watched paths at once, and again after each burst of changes; it never ends.

    Every change after a value is reported: index then. Closing the iterator stops the watching.
    """
    # Not a threading.Event: a signal in the middle of its `wait` can leave its lock in a wrong state.
    changes: SimpleQueue[str] = SimpleQueue()
    watcher = Watcher(changes.put)
    try:
        count = watcher.watch_memory(project, home, settings)
        while True:
            yield count  # watch first, then index: a change in between is reported
            changes.get()
            while not changes.empty():
                changes.get()
            with contextlib.suppress(MemkitError):  # indexing has the same problem, and reports it
                count = watcher.watch_memory(project, home, settings)
    finally:
        watcher.close()


def _find_directories(memories: dict[str, _Memory]) -> dict[str, tuple[bool, int]]:
    found: dict[str, tuple[bool, int]] = {}
    for root, memory in memories.items():
        for path in map(os.path.realpath, _followed(root, memory.paths)):
            is_tree = os.path.isdir(path)
            directory = path if is_tree else os.path.dirname(path)
            is_deep = is_tree or found.get(directory, (False, 0))[0]
            with contextlib.suppress(OSError):  # removed in this moment
                found[directory] = is_deep, os.stat(directory).st_ino
    return found


def _followed(root: str, paths: Sequence[Path]) -> list[str]:
    """Return the existing paths, absolute. Leave out links that leave the project, as the scanner does."""
    boundary = os.path.realpath(root)
    found = []
    for path in (os.path.normpath(os.path.join(root, one)) for one in paths):
        leads_out = is_below(path, root) and not is_below(os.path.realpath(path), boundary)
        if os.path.exists(path) and not leads_out:
            found.append(path)
    return found


def _holds_any(root: str, memory: _Memory, paths: set[str]) -> bool:
    places = [os.path.realpath(one) for one in _followed(root, memory.paths)]
    return any(is_below(path, place) for path in paths for place in places)


def _list_files(root: str, memory: _Memory) -> dict[str, tuple[int, ...]]:
    """Return times, size, and inode by source. No tool can set back the time of change."""
    found: dict[str, tuple[int, ...]] = {}
    paths = _followed(root, memory.paths)  # the scanner would log the others each time
    for file in scan(Path(root), paths, exclude=memory.exclude, unreadable=memory.unreadable):
        try:
            status = os.stat(file.path)
        except OSError:  # deleted since
            continue
        times = (status.st_mtime_ns, status.st_ctime_ns)
        found[file.source] = (*times, status.st_size, status.st_ino)
    return found
