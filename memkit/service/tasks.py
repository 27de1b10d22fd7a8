"""A thread that runs tasks one at a time under a lock."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from memkit.errors import IndexBusyError

logger = logging.getLogger(__name__)


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


def _return_memory() -> None:
    """Return to the system what a task has freed: glibc keeps it until asked."""
    if sys.platform == "linux":
        import ctypes

        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(0)
