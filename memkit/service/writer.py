"""Write for the service: one thread captures turns, another one updates the index.

Each holds a lock of its own, so a turn's Markdown never waits for an index pass.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memkit.capture.worker import WorkReport, apply_events, note_left
from memkit.errors import IndexBusyError
from memkit.ipc import launch, spool, unindexed
from memkit.locks import capture_lock, index_lock
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from memkit.text import one_line

if TYPE_CHECKING:
    from memkit.embedding import Embedder
    from memkit.index import Indexer, SyncReport
    from memkit.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

WAIT_SECONDS = 60.0
"""The time that a task waits for another process that writes. Then the next task does its work."""

PASS_SECONDS = 3.0
"""The least time between two passes over a project, unless a search waits for one. The second does the work
of all requests since the first.
"""

COPY_SECONDS = 60.0
"""The time after the last pass over a project until Chroma gets the changes; sooner if the service exits."""


@dataclass(slots=True)
class _Task:
    function: Callable[[], Any]
    due: float
    future: Future[Any] = field(default_factory=Future)


class Tasks:
    """Runs tasks in the order in which they are due, in a thread of its own that holds a lock."""

    def __init__(self, name: str, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._lock = lock
        self._waiting: dict[str, _Task] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.is_stopping = False
        self.is_busy = False
        self._thread.start()

    def submit(self, key: str, function: Callable[[], Any], due: float = 0.0) -> Future[Any]:
        """Run `function` as a task, at the time `due` or later. If a task with that `key` waits, return its
        future instead; it is due when the first of both is.
        """
        with self._changed:
            task = self._waiting.get(key)
            if task is None:
                task = _Task(function, due)
                if self.is_stopping:
                    task.future.cancel()
                    return task.future
                self._waiting[key] = task
            task.due = min(task.due, due)
            self._changed.notify()
            return task.future

    def postponed(self, key: str) -> Future[Any] | None:
        """Return the future of a task that only waits until it is due, and make it due now; else None."""
        with self._changed:
            task = self._waiting.get(key)
            if task is None or self.is_busy or task.due <= time.monotonic():
                return None
            task.due = 0.0
            self._changed.notify()
            return task.future

    @property
    def length(self) -> int:
        """The number of waiting tasks."""
        return len(self._waiting)

    def stop(self) -> None:
        """Finish the current task and drop the others. The next process does their work."""
        with self._changed:
            self.is_stopping = True
            dropped = [task.future for task in self._waiting.values()]
            self._waiting.clear()
            self._changed.notify()
        for future in dropped:
            future.cancel()

    def join(self, seconds: float) -> bool:
        """Wait for the thread. Return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self.is_stopping:
            found = self._next()
            if found is not None:
                self._do(*found)

    def _next(self) -> tuple[str, _Task] | None:
        with self._changed:
            now = time.monotonic()
            due = [(task.due, key) for key, task in self._waiting.items()]
            first = min(due, default=None, key=lambda one: one[0])
            if first is not None and first[0] <= now:
                self.is_busy = True
                return first[1], self._waiting.pop(first[1])
            if not self.is_stopping:
                self._changed.wait(None if first is None else first[0] - now)
            return None

    def _do(self, key: str, task: _Task) -> None:
        try:
            if not task.future.set_running_or_notify_cancel():
                return
            with self._lock():
                result = task.function()
            task.future.set_result(result)
        except BaseException as error:
            logger.warning("%s: %s", key, error, exc_info=not isinstance(error, IndexBusyError))
            task.future.set_exception(error)
        finally:
            _return_memory()
            self.is_busy = False


class Writer:
    """Captures spooled events, and updates the index of projects. Any thread may call it."""

    def __init__(
        self, home: Home, settings_of: Callable[[Project], Settings],
        find_embedder: Callable[[EmbeddingSettings], tuple[Embedder | None, str]],
    ) -> None:
        """`find_embedder` returns the embedder for the settings, or None and the reason."""
        self._home = home
        self._settings_of = settings_of
        self._find_embedder = find_embedder
        self._indexer: tuple[tuple[Project, str, Settings], Indexer] | None = None
        self._passed: dict[str, float] = {}  # when the last pass of a project began or ended
        self._uncopied: dict[str, float] = {}  # when Chroma gets the changes of a project
        self.seen_work: set[str] = set()
        self.capture = Tasks("capture", lambda: capture_lock(home, WAIT_SECONDS))
        self.passes = Tasks("index", lambda: index_lock(home, WAIT_SECONDS))

    def work(self, *, soon: bool = False) -> Future[WorkReport]:
        """Capture the spooled events, and index what changed; `soon` is as for `index`."""
        done: Future[WorkReport] = Future()
        captured = self.capture.submit("work", self._capture)
        captured.add_done_callback(lambda _: self._index_changed(captured, done, soon))
        return done

    def index(self, root: str, *, soon: bool = False) -> Future[SyncReport]:
        """Update the index of the project at `root`, at once unless that was done just now.

        With `soon`, as for a search that waits, update it at once in any case.
        """
        try:
            unindexed.mark(self._home, root)  # the task may never get the lock
        except OSError as error:  # the task reports this too
            logger.warning("cannot mark %s as changed: %s", root, error)
        due = 0.0 if soon else self._passed.get(root, -PASS_SECONDS) + PASS_SECONDS
        return self.passes.submit(f"index {root}", functools.partial(self._index, root), due)

    def postponed(self, root: str) -> Future[SyncReport] | None:
        """If a pass over the project at `root` is only waiting for more, begin it and return its future."""
        return self.passes.postponed(f"index {root}")

    def copy(self, *, everything: bool = False) -> bool:
        """Have Chroma get the changes that are due, or `everything`. Return whether there are any."""
        now = time.monotonic()
        due = [root for root, when in list(self._uncopied.items()) if everything or when <= now]
        for root in due:
            self._uncopied.pop(root, None)
            self.passes.submit(f"copy {root}", functools.partial(self._copy, root))
        return bool(due)

    @property
    def length(self) -> int:
        """The number of waiting tasks."""
        return self.capture.length + self.passes.length

    @property
    def is_busy(self) -> bool:
        """Whether a task runs."""
        return self.capture.is_busy or self.passes.is_busy

    def stop(self) -> None:
        """Finish the current tasks and drop the others. The next process does their work."""
        self.capture.stop()
        self.passes.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the threads. Return whether they have ended."""
        deadline = time.monotonic() + seconds
        return all(tasks.join(max(0.0, deadline - time.monotonic())) for tasks in (self.capture, self.passes))

    def _capture(self) -> tuple[WorkReport, set[str]]:
        report = WorkReport()
        left: set[str] = set()
        # Include what arrives meanwhile. What failed is tried again later.
        while not self.capture.is_stopping:
            self.seen_work = set(launch.waiting_names(self._home))
            left |= apply_events(self._home, self._settings_of, report)
            if not set(spool.waiting(self._home)) - left:
                break
        return report, left

    def _index_changed(
        self, captured: Future[tuple[WorkReport, set[str]]], done: Future[WorkReport], soon: bool
    ) -> None:
        if captured.cancelled():
            done.cancel()
            return
        error = captured.exception()  # as if another process captures for long; it may have left marks
        report, left = (WorkReport(), set[str]()) if error is not None else captured.result()
        passes = {root: self.index(root, soon=soon) for root in unindexed.roots(self._home)}
        is_first = threading.Lock()

        def finish(_: object = None) -> None:
            """The last pass to end completes the report."""
            if all(future.done() for future in passes.values()) and is_first.acquire(blocking=False):
                if any(future.cancelled() for future in passes.values()):
                    done.cancel()
                    return
                failed = _add_passes(report, passes)
                if error is not None:
                    done.set_exception(error)
                    return
                note_left(self._home, left | failed)
                done.set_result(report)

        for future in passes.values():
            future.add_done_callback(finish)
        finish()

    def _index(self, root: str) -> SyncReport:
        def stop_if_asked(done: int, total: int) -> None:
            if self.passes.is_stopping:
                raise InterruptedError("the service is stopping")

        self._passed[root] = time.monotonic()
        unindexed.mark(self._home, root)  # if this fails, the next work finds it
        indexer = self._indexer_of(root)
        report = indexer.sync(later=True, progress=stop_if_asked)
        # After what waits, such as the next turn:
        if indexer.is_merge_due():
            self.passes.submit(f"merge {root}", lambda: self._indexer_of(root).merge())
        now = self._passed[root] = time.monotonic()
        self._uncopied[root] = now + COPY_SECONDS
        return report

    def _copy(self, root: str) -> None:
        self._indexer_of(root).copy()

    def _indexer_of(self, root: str) -> Indexer:
        from memkit.index import Indexer

        project = Project(root, self._home)
        settings = self._settings_of(project)
        key = (project, project.folder, settings)
        if self._indexer is None or self._indexer[0] != key:
            find = functools.partial(self._find_embedder, settings.embedding)
            self._indexer = (key, Indexer(project, self._home, settings, find_embedder=find))
        return self._indexer[1]


def _add_passes(report: WorkReport, passes: Mapping[str, Future[SyncReport]]) -> set[str]:
    failed = set()
    for root, future in passes.items():
        error = future.exception()
        if error is None:
            report.indexed.append(future.result())
        else:
            failed.add(root)
            report.failures.append(f"indexing {root}: {one_line(str(error))}")
    return failed


def _return_memory() -> None:
    """Return to the system what a task has freed: glibc keeps it until asked."""
    if sys.platform == "linux":
        import ctypes

        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(0)
