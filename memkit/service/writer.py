"""The one thread of the service that writes the journal and the index."""

from __future__ import annotations

import contextlib
import functools
import logging
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from memkit.capture.worker import WorkReport, note_left, rest, work_once
from memkit.errors import IndexBusyError
from memkit.hook.project import Project
from memkit.index import index_lock
from memkit.ipc import launch, unindexed
from memkit.paths import Home
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder
    from memkit.index import Indexer, SyncReport
    from memkit.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

HOLD_SECONDS = 3.0
"""The time to keep the lock and the open index after the last task: the next one often comes soon."""

WAIT_SECONDS = 60.0
"""The time that a task waits for another process that writes. Then the next task does its work."""

_Task = tuple[str, Callable[[], Any], "Future[Any]"]


class Writer:
    """Runs tasks one at a time, in order, in a thread of its own that holds the index lock."""

    def __init__(
        self,
        home: Home,
        settings_of: Callable[[Project], Settings],
        find_embedder: Callable[[EmbeddingSettings], tuple[Embedder | None, str]],
    ) -> None:
        """`find_embedder` returns the embedder for the settings, or None and the reason."""
        self._home = home
        self._settings_of = settings_of
        self._find_embedder = find_embedder
        self._tasks: queue.Queue[_Task | None] = queue.Queue()
        self._waiting: dict[str, Future[Any]] = {}
        self._guard = threading.Lock()
        self._lock = contextlib.ExitStack()
        self._has_lock = False
        self._indexer: tuple[tuple[Project, str, Settings], Indexer] | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.is_stopping = False
        self.is_busy = False
        self.seen_work: set[str] = set()
        self._thread.start()

    def work(self) -> Future[WorkReport]:
        """Capture the spooled events, and index what changed."""
        return self.submit("work", self._work)

    def index(self, root: str) -> Future[SyncReport]:
        """Update the index of the project at `root`."""
        try:
            unindexed.mark(self._home, root)  # the task may never get the lock
        except OSError as error:  # the task reports this too
            logger.warning("cannot mark %s as changed: %s", root, error)
        return self.submit(f"index {root}", lambda: self.index_now(Project(root, self._home)))

    def index_now(self, project: Project) -> SyncReport:
        """Update the index of a project. Only for tasks."""
        unindexed.mark(self._home, project.root)  # if this fails, the next work finds it
        return self._index(project, self._settings_of(project))

    def close_index(self) -> None:
        """Close the index before a task changes its files. Only for tasks."""
        found, self._indexer = self._indexer, None
        if found is not None:
            found[1].close()

    def submit(self, key: str, function: Callable[[], Any]) -> Future[Any]:
        """Run `function` as a task. If a task with that `key` waits, return its future instead."""
        with self._guard:
            if key in self._waiting:
                return self._waiting[key]
            future: Future[Any] = Future()
            if self.is_stopping:
                future.cancel()
                return future
            self._waiting[key] = future
            self._tasks.put((key, function, future))
            return future

    @property
    def length(self) -> int:
        """The number of waiting tasks."""
        return len(self._waiting)

    def stop(self) -> None:
        """Finish the current task and drop the others. The next process does their work."""
        with self._guard:
            self.is_stopping = True
            for future in self._waiting.values():
                future.cancel()
            self._tasks.put(None)

    def join(self, seconds: float) -> bool:
        """Wait for the thread. Return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self.is_stopping:
            try:
                task = self._tasks.get(timeout=HOLD_SECONDS if self._has_lock else None)
            except queue.Empty:
                self._release()
                continue
            if task is not None:
                self._do(*task)
        self._release()

    def _do(self, key: str, function: Callable[[], Any], future: Future[Any]) -> None:
        with self._guard:
            self._waiting.pop(key, None)
        if not future.set_running_or_notify_cancel():
            return
        self.is_busy = True
        try:
            if not self._has_lock:
                self._lock.enter_context(index_lock(self._home, WAIT_SECONDS))
                self._has_lock = True
            future.set_result(function())
        except BaseException as error:
            logger.warning("%s: %s", key, error, exc_info=not isinstance(error, IndexBusyError))
            future.set_exception(error)
        finally:
            _return_memory()
            self.is_busy = False

    def _release(self) -> None:
        self._has_lock = False
        try:
            self.close_index()
        except Exception:  # the next task opens it again
            logger.exception("closing the index failed")
        finally:
            self._lock.close()

    def _work(self) -> WorkReport:
        report = WorkReport()
        seen: set[str] = set()
        # Include what arrives meanwhile. What failed is tried again later.
        while not self.is_stopping:
            self.seen_work = set(launch.waiting_names(self._home))
            seen |= work_once(self._home, self._settings_of, report, self._index)
            note_left(self._home, seen)
            if not rest(self._home) - seen:
                break
        return report

    def _index(self, project: Project, settings: Settings) -> SyncReport:
        from memkit.index import Indexer

        def stop_if_asked(done: int, total: int) -> None:
            if self.is_stopping:
                raise InterruptedError("the service is stopping")

        key = (project, project.folder, settings)
        if self._indexer is None or self._indexer[0] != key:
            self.close_index()  # never two Chroma clients
            find = functools.partial(self._find_embedder, settings.embedding)
            self._indexer = (key, Indexer(project, self._home, settings, find_embedder=find))
        return self._indexer[1].sync(progress=stop_if_asked)


def _return_memory() -> None:
    """Return to the system what a task has freed: glibc keeps it until asked."""
    if sys.platform == "linux":
        import ctypes

        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(0)
