"""The rate of requests of a key, and the threads that call the memory."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import HTTPException
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from memkit.memory import Memory
from memkit.serve import link
from memkit.serve.answers import RETRY_SECONDS

Opener = Callable[[], Memory]
"""Opens the memory for one request: its settings may have changed since the last one."""

Found = TypeVar("Found")

THREADS = 8
CHANGING_THREADS = 2
"""Changes may wait for the lock of the index. They have threads of their own, so that reading goes on."""

MOST_AT_ONCE = 64
"""Requests of one key that run or wait. More would only wait, and keep those of other keys waiting."""

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

    def count(self, key: str) -> None:
        """Count a request of a key. Raise `HTTPException` 429 if there were too many."""
        self._count(_PAGE_RATE if key == link.KEY_ID else self._rate, f"key {key}")

    def count_failure(self, address: str) -> None:
        """Count a request without a valid key. Raise as `count` does."""
        self._count(self._failures, f"address {address}")

    def _count(self, limit: RateLimitItemPerMinute, name: str) -> None:
        if self._limiter.hit(limit, name):
            return
        window = self._limiter.get_window_stats(limit, name)
        seconds = max(1, math.ceil(window.reset_time - time.time()))
        raise HTTPException(
            429, f"more than {limit.amount} requests in a minute", {"Retry-After": str(seconds)}
        )


class Threads:
    """Calls the memory in threads, a bounded number at once."""

    def __init__(self, open_memory: Opener) -> None:
        self._open = open_memory
        self._reading = ThreadPoolExecutor(THREADS, "reading")
        self._changing = ThreadPoolExecutor(CHANGING_THREADS, "changing")
        self._waiting: Counter[str] = Counter()
        self.storing = threading.Lock()
        """For a change that checks first whether it is needed."""

    async def ask(
        self, question: Callable[[Memory], Found], key: str = "", *, is_change: bool = False
    ) -> Found:
        """Return what `question` returns of the memory, from a thread. Raise `HTTPException`.

        If the client leaves, a question that waits for a thread is dropped. One that runs goes on in its
        thread, but no longer counts for the key.
        """
        if self._waiting[key] >= MOST_AT_ONCE:
            raise HTTPException(
                429, f"more than {MOST_AT_ONCE} requests at once", {"Retry-After": str(RETRY_SECONDS)}
            )
        self._waiting[key] += 1
        try:
            threads = self._changing if is_change else self._reading
            return await asyncio.get_running_loop().run_in_executor(threads, self.answer, question)
        finally:
            self._waiting[key] -= 1
            self._waiting += Counter()  # drops those of 0

    def answer(self, question: Callable[[Memory], Found]) -> Found:
        """Return what `question` returns of the memory, in this thread."""
        memory = self._open()
        memory.wait_seconds = WAIT_SECONDS
        return question(memory)
