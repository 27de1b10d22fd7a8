"""The one thread of the service that writes: journal and index, a task at a time."""

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
"""How long index and lock are kept after the last task: the next turn is often not far."""

WAIT_SECONDS = 60.0
"""How long a task waits for another process that writes; then it is left to the next one."""

_Task = tuple[str, Callable[[], Any], "Future[Any]"]


class Writer:
    """Runs tasks in a thread of its own, under the index lock, each in the order it was asked for.

    A task that waits already is not queued twice: who asks for it again gets the same future.
    """

    def __init__(
        self,
        home: Home,
        settings_of: Callable[[Project], Settings],
        find_embedder: Callable[[EmbeddingSettings], tuple[Embedder | None, str]],
    ) -> None:
        """`find_embedder` gives the embedder of the settings, or None and why there is none."""
        self._home = home
        self._settings_of = settings_of
        self._find_embedder = find_embedder
        self._tasks: queue.Queue[_Task | None] = queue.Queue()
        self._waiting: dict[str, Future[Any]] = {}
        self._guard = threading.Lock()
        self._held = contextlib.ExitStack()
        self._is_held = False
        self._indexer: tuple[tuple[Project, Settings], Indexer] | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.is_stopping = False
        self.is_busy = False
        self.looked_at: set[str] = set()
        self._thread.start()

    def work(self) -> Future[WorkReport]:
        """Take in what waits in the spool, and index what changed."""
        return self.submit("work", self._work)

    def index(self, root: str) -> Future[SyncReport]:
        """Bring the index of the project at `root` into step."""
        try:
            unindexed.mark(self._home, root)  # before it waits for the lock, maybe in vain
        except OSError as error:  # the pass itself will say so too
            logger.warning("%s is not marked as changed: %s", root, error)
        return self.submit(f"index {root}", lambda: self.index_now(Project(root)))

    def index_now(self, project: Project) -> SyncReport:
        """Bring a project into step: for tasks, which run in the writer's thread."""
        unindexed.mark(self._home, project.root)  # if this fails, the next work finds it
        return self._index(project, self._settings_of(project))

    def close_index(self) -> None:
        """Close the index, whose files a task is about to change: for tasks, see `index_now`."""
        self._close_indexer()

    def submit(self, key: str, function: Callable[[], Any]) -> Future[Any]:
        """Run `function` in its turn; if a task of that `key` waits, there is no other."""
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
        """How many tasks wait."""
        return len(self._waiting)

    def stop(self) -> None:
        """Finish the task in hand and drop the others: what they were for is done by the next process."""
        with self._guard:
            self.is_stopping = True
            for future in self._waiting.values():
                future.cancel()
            self._tasks.put(None)

    def join(self, seconds: float) -> bool:
        """Wait for the thread to end; False if it has not."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self.is_stopping:
            try:
                task = self._tasks.get(timeout=HOLD_SECONDS if self._is_held else None)
            except queue.Empty:
                try:
                    self._release()
                except Exception:  # the index is opened anew for the next task
                    logger.exception("the index was not closed well")
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
            self._hold()
            future.set_result(function())
        except BaseException as error:
            logger.warning("%s: %s", key, error, exc_info=not isinstance(error, IndexBusyError))
            future.set_exception(error)
        finally:
            _return_memory()
            self.is_busy = False

    def _hold(self) -> None:
        if not self._is_held:
            self._held.enter_context(index_lock(self._home, WAIT_SECONDS))
            self._is_held = True

    def _release(self) -> None:
        self._is_held = False
        try:
            self._close_indexer()
        finally:
            self._held.close()

    def _close_indexer(self) -> None:
        found, self._indexer = self._indexer, None
        if found is not None:
            found[1].close()

    def _work(self) -> WorkReport:
        report = WorkReport()
        seen: set[str] = set()
        # What comes while this works is taken in too; what failed waits for its time.
        while not self.is_stopping:
            self.looked_at = set(launch.waiting_names(self._home))
            seen |= work_once(self._home, self._settings_of, report, self._index)
            note_left(self._home, seen)
            if not rest(self._home) - seen:
                break
        return report

    def _index(self, project: Project, settings: Settings) -> SyncReport:
        from memkit.index import Indexer

        def stop_if_asked(done: int, total: int) -> None:
            if self.is_stopping:
                raise InterruptedError("the service is ending")

        key = (project, settings)
        if self._indexer is None or self._indexer[0] != key:
            self._close_indexer()  # never two of Chroma's clients
            find = functools.partial(self._find_embedder, settings.embedding)
            self._indexer = (key, Indexer(project, self._home, settings, find_embedder=find))
        return self._indexer[1].sync(progress=stop_if_asked)


@functools.cache
def _c_library() -> Any:
    """The C library, if it is one that keeps freed memory until it is asked for it; else None."""
    import ctypes

    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "malloc_trim") else None


def _return_memory() -> None:
    """Give back what a task has freed: glibc would keep it, in pieces, for each thread."""
    library = _c_library()
    if library is not None:
        library.malloc_trim(0)
