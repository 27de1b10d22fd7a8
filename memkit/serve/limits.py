"""The rate of requests of a key, and the threads that call the memory."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, Request, Response
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from memkit.interface import InterfaceMemory as Memory
from memkit.serve import link
from memkit.serve.answers import RETRY_SECONDS, Answer, published
from memkit.serve.kept import KeptAnswers

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

_PAGE_RATE = RateLimitItemPerMinute(link.RATE)


class RateLimits:
    """The requests of each key, and those without a key, in the last 60 seconds."""

    def __init__(self, rate: int) -> None:
        """`rate` is the most requests of one key in any 60 seconds."""
        self._rate = RateLimitItemPerMinute(rate)
        self._failures = RateLimitItemPerMinute(FAILURES_PER_MINUTE)
        # The asynchronous one of `limits` starts a thread for each request.
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def count(self, key: str) -> dict[str, str]:
        """Count a request of a key. Return headers with what is left, or raise `HTTPException` 429."""
        return self._count(_PAGE_RATE if key == link.KEY_ID else self._rate, f"key {key}")

    def count_failure(self, request: Request) -> None:
        """Count a request without a valid key. Raise as `count` does."""
        self._count(self._failures, f"address {request.client.host if request.client else ''}")

    def _count(self, limit: RateLimitItemPerMinute, name: str) -> dict[str, str]:
        is_allowed = self._limiter.hit(limit, name)
        window = self._limiter.get_window_stats(limit, name)
        seconds = str(max(1, math.ceil(window.reset_time - time.time())))
        counts = {"limit": str(limit.amount), "remaining": str(window.remaining), "reset": seconds}
        headers = {f"ratelimit-{name}": count for name, count in counts.items()}
        if not is_allowed:
            headers["Retry-After"] = seconds
            raise HTTPException(429, f"more than {limit.amount} requests in a minute", headers)
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
