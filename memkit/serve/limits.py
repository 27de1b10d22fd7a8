"""The rate of requests of a key, the threads that call the memory, and the answers that are kept."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, Request, Response

from memkit.interface import InterfaceMemory as Memory
from memkit.projects.project import Project
from memkit.serve import link
from memkit.serve.answers import RETRY_SECONDS, Answer, published

if TYPE_CHECKING:
    from starlette.types import Scope

Opener = Callable[[], Memory]
"""Opens the memory for one request: its settings may have changed since the last one."""

Question = Callable[[Memory], Any]
"""Returns values of JSON, or a response where status or headers matter."""

THREADS = 8
CHANGING_THREADS = 2
"""Changes may wait for the lock of the index. They have threads of their own, so that reading goes on."""

MOST_AT_ONCE = 16
"""Requests of one key that run or wait. More would wait for longer than clients do, and keep those of other
keys waiting.
"""

WAIT_SECONDS = 20.0
"""The longest wait for another process that writes the index."""

FAILURES_PER_MINUTE = 60
"""The most requests without a valid key, from one address."""

WINDOW_SECONDS = 60


class RateLimits:
    """The requests of each key, and those without a key, in the last 60 seconds. For the event loop."""

    def __init__(self, rate: int) -> None:
        """`rate` is the most requests of one key in any 60 seconds."""
        self._rate = rate
        self._times: dict[str, deque[float]] = {}  # of allowed requests; the last asked is the last name

    def count(self, key: str) -> dict[str, str]:
        """Count a request of a key. Return headers with what is left, or raise `HTTPException` 429."""
        return self._count(link.RATE if key == link.KEY_ID else self._rate, f"key {key}")

    def count_failure(self, request: Request) -> None:
        """Count a request without a valid key. Raise as `count` does."""
        self._count(FAILURES_PER_MINUTE, f"address {request.client.host if request.client else ''}")

    def _count(self, most: int, name: str) -> dict[str, str]:
        now = time.time()
        times = self._times[name] = self._times.pop(name, deque())
        while times and times[0] <= now - WINDOW_SECONDS:
            times.popleft()
        is_allowed = len(times) < most
        if is_allowed:
            times.append(now)
        while (oldest := next(iter(self._times))) != name and self._times[oldest][-1] <= now - WINDOW_SECONDS:
            del self._times[oldest]
        seconds = str(max(1, math.ceil((times[0] if times else now) + WINDOW_SECONDS - now)))
        counts = {"limit": str(most), "remaining": str(most - len(times)), "reset": seconds}
        headers = {f"ratelimit-{name}": count for name, count in counts.items()}
        if not is_allowed:
            headers["Retry-After"] = seconds
            raise HTTPException(429, f"more than {most} requests in a minute", headers)
        return headers


class Threads:
    """Calls the memory in threads, a bounded number at once."""

    def __init__(self, open_memory: Opener) -> None:
        self._open = open_memory
        self._reading = ThreadPoolExecutor(THREADS, "reading")
        self._changing = ThreadPoolExecutor(CHANGING_THREADS, "changing")
        self._waiting: Counter[str] = Counter()
        self.kept = KeptAnswers()
        self.storing = threading.Lock()
        """For a change that checks first whether it is needed."""

    async def ask(
        self, question: Question, key: str = "", *, is_change: bool = False, kept_as: Scope | None = None
    ) -> Response:
        """Return the response to a question, from a thread. Raise `HTTPException`.

        The answer is kept for requests like `kept_as`. Then it must depend on the timeline's files alone.

        If the client leaves, a question that waits for a thread is dropped. One that runs goes on in its
        thread, but no longer counts for the key.
        """
        if self._waiting[key] >= MOST_AT_ONCE:
            wait = {"Retry-After": str(RETRY_SECONDS)}
            raise HTTPException(429, f"more than {MOST_AT_ONCE} requests at once", wait)
        self._waiting[key] += 1
        try:
            threads = self._changing if is_change else self._reading
            return await asyncio.get_running_loop().run_in_executor(threads, self._answer, question, kept_as)
        finally:
            self._waiting[key] -= 1
            self._waiting += Counter()  # drops those of 0

    def open(self) -> Memory:
        """Return the memory for one request."""
        memory = self._open()
        memory.wait_seconds = WAIT_SECONDS
        return memory

    def _answer(self, question: Question, kept_as: Scope | None) -> Response:
        memory = self.open()

        def make() -> bytes:
            return bytes(published(question(memory), memory.project.root).body)

        if kept_as is None:
            return published(question(memory), memory.project.root)
        return Answer(self.kept.answer(kept_as, memory.project, make))


MOST_KEPT_BYTES = 8_000_000

LIST_SECONDS = 0.2
"""The files are listed again after this time. A file that was added or replaced counts at once."""


class KeptAnswers:
    """The answers to requests about the timeline, each with its route."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[bytes, Any]] = {}
        self._directories: dict[str, int] = {}
        self._files: object = None
        self._listed = 0.0
        self._size = 0
        self._lock = threading.Lock()

    def find(self, scope: Scope) -> tuple[bytes, Any] | None:
        """Return the answer to an equal request, without a listing of the files. For the event loop.

        None has the request list the files; meanwhile, others still get what is kept.
        """
        now, directories = time.monotonic(), self._directories
        is_current = directories == _changes(directories)  # before the answer, which may be newer
        found = self._answers.get(_name_of(scope)) if is_current else None
        if found is not None and now - self._listed > LIST_SECONDS:
            self._listed = now
            return None
        return found

    def answer(self, scope: Scope, project: Project, make: Callable[[], bytes]) -> bytes:
        """Return the answer to an equal request, or that of `make` if a file has changed."""
        now, name, project = time.monotonic(), _name_of(scope), project.for_counting()
        directories = _changes(filter(None, (project.memory, project.openclaw)))
        files = [one for directory in directories for one in _files_in(directory)]
        with self._lock:
            if files != self._files:
                self._answers, self._files, self._size = {}, files, 0
            self._directories, self._listed = directories, now
            answers = self._answers
            found = answers.get(name)
        if found is not None:
            return found[0]
        made = make()
        with self._lock:  # if a file has changed meanwhile, `answers` are no longer in use
            if answers is self._answers:
                self._size += len(name) + len(made)
                if self._size > MOST_KEPT_BYTES:
                    answers.clear()
                    self._size = len(name) + len(made)
            answers[name] = made, scope.get("route")
        return made


def _changes(directories: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(directories, 0)
    for path in found:
        with suppress(OSError):
            found[path] = os.stat(path).st_mtime_ns
    return found


def _files_in(directory: str) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError), os.scandir(directory) as entries:
        for one in entries:
            with suppress(OSError):  # removed since, or a link to nothing
                status = one.stat()
                yield one.path, status.st_mtime_ns, status.st_size, status.st_ino


def _name_of(scope: Scope) -> str:
    return f"{date.today()} {scope['path']}?{scope['query_string'].decode('latin-1')}"
