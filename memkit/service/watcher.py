"""Report when the memory of a project changes.

A file system event is only a hint. After a burst of events the watcher lists the files as the scanner does,
and calls back if the list has changed. So it does not matter what an editor does in between, or which events
are lost or doubled: each change is reported once, and nothing else is.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkit.doctor.watch_limit import check_room, describe_limit, silent_file_system
from memkit.hook.project import Project
from memkit.index.memory_files import memory_paths
from memkit.index.scanner import is_hidden, is_markdown, scan
from memkit.paths import Home
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

logger = logging.getLogger(__name__)

DEBOUNCE_SECONDS = 1.5
"""The pause that ends a burst of changes."""

LONGEST_SECONDS = 10.0
"""A burst that never pauses is reported this often."""

POLL_SECONDS = 2.0
"""The time between two listings of the files where the kernel does not report all changes."""


class Watcher:
    """Watches the memories of any number of projects. Any thread may call it, the callback too."""

    def __init__(
        self, changed: Callable[[str], object], announce: Callable[[str], None] = logger.info
    ) -> None:
        """Call `changed(root)` once for each burst of changes, in a thread of that project.

        `announce` gets one line for a project that is polled.
        """
        self._changed = changed
        self._announce = announce
        self._projects: dict[str, _ProjectWatch] = {}
        self._guard = threading.RLock()
        self._closed = False

    def watch(self, root: str, paths: Sequence[Path], exclude: Sequence[str] = ()) -> None:
        """Watch the memory of the project at `root` from now on.

        `paths` (absolute or relative to `root`) and `exclude` are as for `memkit.index.scanner.scan`;
        they replace those of an earlier call. Every change after this returns is reported: watch first,
        then index.
        """
        with self._guard:
            if self._closed:
                raise RuntimeError("the watcher is closed")
            if root not in self._projects:
                self._projects[root] = _ProjectWatch(root, self._changed, self._announce)
            self._projects[root].watch(paths, exclude)

    def watch_memory(self, project: Project, home: Home, settings: Settings) -> int:
        """Watch the memory of a project as its settings define it. Return the number of its paths."""
        paths = memory_paths(project, home, settings)
        self.watch(project.root, [Path(path) for path in paths], settings.memory.exclude)
        return len(paths)

    def unwatch(self, root: str) -> None:
        """Stop watching a project. Do nothing if it is not watched."""
        with self._guard:
            project = self._projects.pop(root, None)
        if project is not None:
            project.stop()

    def close(self) -> None:
        """Stop watching, and wait for all threads except the calling one."""
        with self._guard:
            self._closed = True
            projects = list(self._projects.values())
            self._projects.clear()
        for project in projects:
            project.stop()
            project.join()

    def state(self) -> list[dict[str, Any]]:
        """Return each watched root, sorted, and whether it is polled."""
        projects = sorted(self._projects.items())
        return [{"root": root, "polling": one.is_polling} for root, one in projects]


class _ProjectWatch:
    """Watches one project, with an observer and a thread of its own."""

    def __init__(
        self, root: str, changed: Callable[[str], object], announce: Callable[[str], None]
    ) -> None:
        self.is_polling = False
        self._root = root
        self._changed = changed
        self._announce = announce
        self._paths: list[Path] = []
        self._exclude: list[str] = []
        self._watched = WatchedPaths({}, frozenset())
        self._reported: dict[str, tuple[int, ...]] = {}
        self._has_moved = False  # whether directories or links may have changed
        self._observer: BaseObserver | None = None
        self._event = threading.Event()
        self._closed = False
        # Held while watches change or files are listed. The observer's threads must never hold it:
        # `_stop_observer` waits for them.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def watch(self, paths: Sequence[Path], exclude: Sequence[str]) -> None:
        given = list(paths), list(exclude)
        with self._lock:
            is_new = self._thread.ident is None
            if is_new or given != (self._paths, self._exclude):
                self._paths, self._exclude = given
                self._arrange()
            if is_new:
                self._reported = self._list_files()
                self._thread.start()
            else:
                self._event.set()

    def stop(self) -> None:
        self._closed = True
        self._event.set()
        with self._lock:
            self._stop_observer()

    def join(self) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            self._event.wait(POLL_SECONDS if self.is_polling else None)
            end = time.monotonic() + LONGEST_SECONDS
            while self._event.is_set() and not self._closed and time.monotonic() < end:
                self._event.clear()
                self._event.wait(DEBOUNCE_SECONDS)
            try:
                self._report()
            except Exception:  # one failed call must not end the watching
                logger.exception("handling a change of %s failed", self._root)

    def _report(self) -> None:
        """Call back if the files are not those of the last report."""
        with self._lock:
            if self._closed:
                return
            if self._has_moved:
                self._has_moved = False
                self._arrange()
            files = self._list_files()
            if files == self._reported:
                return
            self._reported = files
        self._changed(self._root)

    def _list_files(self) -> dict[str, tuple[int, ...]]:
        """Return, by source, the times of modification and of change, the size, and the inode.

        No tool can set back the time of change.
        """
        found: dict[str, tuple[int, ...]] = {}
        # The scanner would log a missing path each time.
        paths = [str(one) for one in self._paths if os.path.exists(os.path.join(self._root, one))]
        for file in scan(Path(self._root), paths, exclude=self._exclude):
            try:
                status = os.stat(file.path)
            except OSError:  # deleted since; its event follows
                continue
            times = (status.st_mtime_ns, status.st_ctime_ns)
            found[file.source] = (*times, status.st_size, status.st_ino)
        return found

    def _arrange(self) -> None:
        """Observe the directories as they are now, or poll if that is impossible."""
        if self.is_polling:
            return
        for path in self._paths:
            real = os.path.realpath(os.path.join(self._root, path))
            kind = silent_file_system(real)
            if kind is not None:
                self._start_polling(f"{real} is on {kind}, which does not report all changes")
                return
        try:
            self._observe()
        except OSError as error:
            self._start_polling(describe_limit(error) or f"it cannot be watched: {error}")

    def _start_polling(self, reason: str) -> None:
        self._stop_observer()
        self.is_polling = True
        self._announce(f"{self._root} is checked every {POLL_SECONDS:g} s: {reason}")

    def _observe(self) -> None:
        """Observe all directories with a new observer. Raise `OSError` if one cannot be watched."""
        while True:
            self._stop_observer()
            self._watched = watched_paths(self._root, self._paths)
            try:
                self._start_observer()
            except (FileNotFoundError, NotADirectoryError):  # removed in this moment
                continue
            # A directory may appear before the one above it is watched.
            if watched_paths(self._root, self._paths) == self._watched:
                break
        check_room()

    def _start_observer(self) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        on_event = self._on_event

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                on_event(event)

        # It warns of directories that it adds twice while a tree is copied, which does no harm.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.")
        handler = Handler()
        self._observer = Observer()
        self._observer.start()
        for path, is_recursive in self._watched.directories.items():
            self._observer.schedule(
                handler,
                path,
                recursive=is_recursive,
                # Not opening, reading, and closing: an index pass causes many of these events.
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

    def _on_event(self, event: FileSystemEvent) -> None:
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        if any(self._watched.concern(path, event.is_directory) for path in paths):
            is_waypoint = any(path in self._watched.waypoints for path in paths)
            if event.is_directory or (is_waypoint and event.event_type != "modified"):
                self._has_moved = True
            self._event.set()

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()


@dataclass(frozen=True, slots=True)
class WatchedPaths:
    """The directories that report every change of a memory. All paths are absolute and real.

    `directories` says for each whether to watch all below it. `waypoints` are the names on the way to
    the memory, itself included: directories, links, or a configured file.
    """

    directories: dict[str, bool]
    waypoints: frozenset[str]

    def concern(self, path: str, is_directory: bool) -> bool:
        """Return whether a change of `path` may be a change of the memory, judged by names."""
        if path in self.waypoints:
            return True
        if is_hidden(os.path.basename(path)) or not (is_directory or is_markdown(path)):
            return False
        return any(deep and _is_below(path, tree) for tree, deep in self.directories.items())


def watched_paths(root: str, paths: Sequence[Path]) -> WatchedPaths:
    """Return what to watch for the memory of the project at `root`.

    `paths` are absolute or relative to `root`. Follow no link that leads out of the project, as the
    scanner does not.
    """
    root = os.path.abspath(root)
    trees: set[str] = set()
    waypoints: set[str] = set()
    for path in paths:
        absolute = os.path.normpath(os.path.join(root, path))
        real = os.path.realpath(absolute)
        waypoints |= _waypoints(root, absolute)
        if _is_below(absolute, root) and not _is_below(real, os.path.realpath(root)):
            continue
        waypoints |= _waypoints(os.path.realpath(root), real)
        if os.path.isdir(real):
            trees.add(real)
    directories = {
        path: path in trees
        for path in sorted(trees.union(map(os.path.dirname, waypoints)))
        if not any(_is_below(path, tree) for tree in trees)
    }
    return WatchedPaths(directories, frozenset(waypoints | trees))


def _waypoints(root: str, path: str) -> set[str]:
    """Return the names on the way to `path`, each in the real path of its directory.

    The way begins at `root`, or at the nearest directory if `path` is outside.
    """
    found = set()
    is_inside = _is_below(path, root)
    while path not in (root, os.path.dirname(path)):
        above, name = os.path.split(path)
        if os.path.isdir(above):
            found.add(os.path.join(os.path.realpath(above), name))
            if not is_inside:
                break
        path = above
    return found


def _is_below(path: str, directory: str) -> bool:
    return path != directory and path.startswith(directory.rstrip(os.sep) + os.sep)
