"""Tells when the memory of a project has changed.

An event of the file system is a hint only: after a burst of them the files are listed as the scanner lists
them, and the callback is called if that list is not what it was. So whatever an editor does in between,
whichever events are lost or doubled, a change is told once, and nothing else is.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.index.directories import LIMITS, Directories
from memkit.index.mounts import silent_file_system
from memkit.service.debounce import Debouncer
from memkit.service.watched_paths import WatchedContents, WatchedPaths, contents, places

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 10.0
"""A stream of changes that never pauses is told of this often."""

POLL_SECONDS = 2.0


@dataclass
class _Root:
    """A project that is watched."""

    root: str
    paths: list[Path]
    exclude: list[str]
    polling: bool = False
    places: WatchedPaths = field(default_factory=WatchedPaths)
    found: WatchedContents = field(default_factory=WatchedContents)
    """What was there at the last look."""
    told: WatchedContents = field(default_factory=WatchedContents)
    """What was there when the callback was last called, or when watching began."""
    has_grown: bool = False
    """Whether there may be directories that inotify had no room for."""


class Watcher:
    """Watches the memories of any number of projects, with one observer.

    Where the kernel does not tell of changes, or has no room for more watches, it looks every
    `poll_seconds`, and says so once. Any thread may call it, the callback too.
    """

    def __init__(
        self,
        changed: Callable[[str], None],
        *,
        debounce_seconds: float = 1.5,
        say: Callable[[str], None] = logger.info,
        poll: bool | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """`changed(root)` is called once a burst, in the watcher's own thread.

        A burst ends with `debounce_seconds` of quiet, or after `LONGEST_SECONDS`. `poll` True looks
        at intervals in any case, False only where inotify has no room; None also on the file systems
        that cause no events.
        """
        self._changed = changed
        self._say = say
        self._poll = poll
        self._poll_seconds = poll_seconds
        self._debouncer = Debouncer(debounce_seconds, LONGEST_SECONDS)
        self._roots: dict[str, _Root] = {}
        self._directories = Directories(self._on_event)
        self._said: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closed = False
        # Held while watches change or files are listed; never by the observer's threads, which
        # hold a lock of their own when they call.
        self._arranging = threading.RLock()
        self._condition = threading.Condition()

    @property
    def roots(self) -> list[str]:
        """The projects that are watched, sorted."""
        return sorted(self._roots)

    def is_polling(self, root: str) -> bool:
        """Whether the project is looked at in intervals; False for one that is not watched."""
        state = self._roots.get(root)
        return state is not None and state.polling

    def watch(self, root: str, paths: Sequence[Path], *, exclude: Sequence[str] = ()) -> None:
        """Watch the memory of the project at `root`, from now on.

        `paths` (absolute or relative to `root`) and `exclude` are as for `memkit.index.scanner.scan`;
        they replace those of an earlier call. What changes after this has returned is told; so watch
        first, then index.
        """
        with self._arranging:
            if self._closed:
                raise RuntimeError("the watcher is closed")
            known = self._roots.get(root)
            state = _Root(root, list(paths), list(exclude))
            if known is not None:
                state.polling, state.told, state.found = known.polling, known.told, known.found
            with self._condition:
                self._roots[root] = state
            self._poll_if_silent(state)
            self._arrange()
            if known is None:
                state.told = self._look(state)
            else:
                self._note(root)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="memkit-watcher", daemon=True
                )
                self._thread.start()
        self._wake()

    def unwatch(self, root: str) -> None:
        """Stop watching a project; nothing happens if it is not watched."""
        with self._arranging:
            with self._condition:
                self._roots.pop(root, None)
                self._debouncer.drop(root)
            self._directories.keep(self._wanted())

    def close(self) -> None:
        """Stop watching; all threads have ended when this returns, but for the one that calls it."""
        with self._arranging:
            self._closed = True
            with self._condition:
                self._roots.clear()
            self._directories.close()
        self._wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    # What the observer's threads call.

    def _on_event(self, event: FileSystemEvent) -> None:
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        if event.event_type != "modified":
            for path in paths:
                self._directories.doubt(path)
        with self._condition:
            for state in self._roots.values():
                if any(
                    state.places.concern(path, event.is_directory) or state.found.concern(path)
                    for path in paths
                ):
                    state.has_grown |= event.is_directory
                    self._debouncer.note(state.root, time.monotonic())
                    self._condition.notify()

    # What the watcher's own thread does.

    def _run(self) -> None:
        poll_at = time.monotonic() + self._poll_seconds
        while not self._closed:
            with self._condition:
                due = self._debouncer.take(time.monotonic())
                if not due and not self._closed:
                    self._condition.wait(self._seconds_left(poll_at))
            for root in due:
                try:
                    self._settle(root)
                except Exception:  # one failed call must not end the watching
                    logger.exception("what follows a change of %s failed", root)
            if time.monotonic() >= poll_at:
                self._look_around()
                poll_at = time.monotonic() + self._poll_seconds

    def _seconds_left(self, poll_at: float) -> float | None:
        """How long there is nothing to do, None for ever. The caller holds the condition."""
        times = [self._debouncer.next_due()]
        if any(state.polling for state in self._roots.values()):
            times.append(poll_at)
        left = [at - time.monotonic() for at in times if at is not None]
        return max(0.0, min(left)) if left else None

    def _look_around(self) -> None:
        with self._arranging:
            for state in list(self._roots.values()):
                if state.polling:
                    before = state.found
                    if self._look(state) != before:
                        self._note(state.root)

    def _settle(self, root: str) -> None:
        """End a burst: watch what is new, and call back if the memory is not what it was."""
        with self._arranging:
            state = self._roots.get(root)
            if state is None:
                return
            self._arrange()
            if self._look(state) == state.told:
                return
            state.told = state.found
        self._changed(root)

    def _look(self, state: _Root) -> WatchedContents:
        state.found = contents(state.root, state.paths, state.exclude)
        return state.found

    def _note(self, root: str) -> None:
        with self._condition:
            self._debouncer.note(root, time.monotonic())
            self._condition.notify()

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify()

    # What is watched; the caller holds `_arranging`.

    def _poll_if_silent(self, state: _Root) -> None:
        if self._poll is not None:
            state.polling |= self._poll
            return
        for path in state.paths:
            real = os.path.realpath(os.path.join(state.root, path))
            kind = silent_file_system(real)
            if kind is not None:
                self._fall_back(state, f"{real} is on {kind}, which does not tell of all changes")
                return

    def _fall_back(self, state: _Root, reason: str) -> None:
        state.polling = True
        if state.root not in self._said:
            self._said.add(state.root)
            self._say(f"{state.root} is looked at every {self._poll_seconds:g} s: {reason}")

    def _arrange(self) -> None:
        """Watch the directories of all projects as they are now, and no others."""
        while True:
            # A directory that appears before the one above it is watched is found by looking again.
            wanted = self._wanted()
            self._directories.keep(wanted)
            missing = [path for path in wanted if path not in self._directories]
            if not missing:
                break
            for path in missing:
                self._add(path, wanted[path])
        for state in self._roots.values():
            has_grown, state.has_grown = state.has_grown, False
            if has_grown and not state.polling and not self._directories.has_room():
                self._fall_back(state, _at_limit(errno.ENOSPC))
        self._directories.keep(self._wanted())

    def _wanted(self) -> dict[str, bool]:
        """The directories of all projects, and whether with all below them."""
        wanted: dict[str, bool] = {}
        for state in self._roots.values():
            state.places = WatchedPaths() if state.polling else places(state.root, state.paths)
            for path, recursive in state.places.directories.items():
                wanted[path] = wanted.get(path, False) or recursive
        return wanted

    def _add(self, path: str, recursive: bool) -> None:
        """Watch one directory, or look in intervals at the projects it belongs to."""
        concerned = [s for s in self._roots.values() if path in s.places.directories]
        try:
            self._directories.add(path, recursive)
        except (FileNotFoundError, NotADirectoryError):
            return  # gone since; the next look knows
        except OSError as error:
            reason = _at_limit(error.errno) or f"{path} cannot be watched: {error}"
            for state in concerned:
                self._fall_back(state, reason)
            return
        for state in concerned:
            state.has_grown |= recursive


def _at_limit(number: int | None) -> str:
    limit = LIMITS.get(number or 0)
    return f"inotify takes no more, {limit} is reached" if limit else ""
