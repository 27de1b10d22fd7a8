"""Authorization, rate limits, and the threads that call the memory."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from memkit.errors import MemkitError
from memkit.memory import Memory
from memkit.serve import link
from memkit.serve.guard import KEY_ID
from memkit.serve.keys import ApiKey, Keys
from memkit.serve.link import Link
from memkit.serve.live import Live
from memkit.serve.problems import RETRY_SECONDS, BusyError

logger = logging.getLogger(__name__)

Opener = Callable[[], Memory]
"""Opens the memory for one request: its settings may have changed since the last one."""

Found = TypeVar("Found")

THREADS = 8
CHANGING_THREADS = 2
"""Changes may wait for the lock of the index. They have threads of their own, so that reading goes on."""

MOST_WAITING = 1000
"""Requests that wait for a thread. Further ones are refused."""

MOST_AT_ONCE = 64
"""Requests of one key that run or wait. More would only wait, and keep those of other keys waiting."""

WAIT_SECONDS = 20.0
"""The longest wait for another process that writes the index."""

FAILURES_PER_MINUTE = 60
"""The most requests without a valid key, from one address."""

_PAGE_RATE = RateLimitItemPerMinute(link.RATE)

_bearer = HTTPBearer(auto_error=False, description="A key from `memkit serve key`.")


class Desk:
    """State shared by all requests: memory, keys, rate limits, and threads."""

    def __init__(
        self,
        open_memory: Opener,
        keys: Keys,
        rate: int,
        links: Sequence[Link] = (),
        live: Live | None = None,
    ) -> None:
        """`rate` is the most requests of one key in any 60 seconds."""
        self.keys = keys
        self.links = links
        self.live = live or Live(open_memory)
        self.is_ready = False
        self._open = open_memory
        self._rate = RateLimitItemPerMinute(rate)
        self._failures = RateLimitItemPerMinute(FAILURES_PER_MINUTE)
        # The asynchronous one of `limits` starts a thread for each request.
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._threads = ThreadPoolExecutor(THREADS, "reading")
        self._changing = ThreadPoolExecutor(CHANGING_THREADS, "changing")
        self._waiting: Counter[str] = Counter()
        self._storing = threading.Lock()

    async def ask(
        self, question: Callable[[Memory], Found], key: str = "", *, is_change: bool = False
    ) -> Found:
        """Return what `question` returns of the memory, from a thread. Raise `BusyError`, `HTTPException`.

        If the client leaves, a question that waits for a thread is dropped. One that runs goes on in its
        thread, but no longer counts for the key.
        """
        if self._waiting[key] >= MOST_AT_ONCE:
            raise HTTPException(
                429, f"more than {MOST_AT_ONCE} requests at once", {"Retry-After": str(RETRY_SECONDS)}
            )
        if self._waiting.total() >= MOST_WAITING:
            raise BusyError("too many requests wait already; try again in a moment")
        self._waiting[key] += 1
        try:
            threads = self._changing if is_change else self._threads
            return await asyncio.get_running_loop().run_in_executor(threads, self.answer, question)
        finally:
            self._waiting[key] -= 1
            self._waiting += Counter()  # drops those of 0

    def answer(self, question: Callable[[Memory], Found]) -> Found:
        """Return what `question` returns of the memory, in this thread."""
        memory = self._open()
        memory.wait_seconds = WAIT_SECONDS
        return question(memory)

    def one_at_a_time(self, question: Callable[[Memory], Found]) -> Callable[[Memory], Found]:
        """Return `question` wrapped in a lock, for a change that checks first whether it is needed."""

        def run(memory: Memory) -> Found:
            with self._storing:
                return question(memory)

        return run

    def find_key(self, secret: str) -> ApiKey | None:
        """Return the stored key or the page's, or None. Raise 503 if the keys cannot be read."""
        of_page = [found for one in self.links if (found := one.find(secret)) is not None]
        if of_page:
            return of_page[0]
        try:
            return self.keys.find(secret)
        except (MemkitError, OSError) as error:
            # The client may be anybody, and the error names files.
            logger.warning("no key can be checked: %s", error)
            raise HTTPException(503, "no key can be checked; you can run `memkit serve keys`") from error

    def link_of(self, request: Request) -> Link | None:
        """Return the link whose key a request has; None for a stored key."""
        secret = request.headers["authorization"].partition(" ")[2].strip()
        return next((one for one in self.links if one.find(secret)), None)

    def is_known(self, secret: str) -> bool:
        """Return whether a valid key has this secret."""
        try:
            return self.find_key(secret) is not None
        except HTTPException:
            return False

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


Ask = Callable[[Callable[[Memory], Response]], Awaitable[Response]]
"""Makes a response of the memory in a thread: `await ask(lambda memory: Answer(memory.overview()))`."""


def desk_of(request: Request) -> Desk:
    """Return the desk of the app that got a request."""
    desk: Desk = request.app.state.desk
    return desk


def _for(role: str, *, or_page: bool = False) -> Callable[..., Awaitable[Ask]]:
    async def authorized(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Ask:
        desk = desk_of(request)
        key = desk.find_key(given.credentials) if given is not None else None
        if key is None:
            desk.count_failure(request.client.host if request.client else "")
            raise HTTPException(
                401, "this needs a key: `Authorization: Bearer memkit_key_…`", {"WWW-Authenticate": "Bearer"}
            )
        request.scope[KEY_ID] = key.id
        desk.count(key.id)
        if not key.may(role) and not (or_page and key.id == link.KEY_ID):
            raise HTTPException(403, f"this needs a key with the role {role}; this one has {key.role}")
        return partial(desk.ask, key=key.id, is_change=role != "read")

    return authorized


Reading = Annotated[Ask, Depends(_for("read"))]
Writing = Annotated[Ask, Depends(_for("write"))]
Administering = Annotated[Ask, Depends(_for("admin"))]
AdministeringOrPage = Annotated[Ask, Depends(_for("admin", or_page=True))]


async def refuse_unknown(request: Request) -> None:
    """Raise `HTTPException` for a query parameter that the route does not have, or that is given twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    if not names:
        return
    path = getattr(request.scope.get("route"), "path_format", "")
    described = request.app.openapi()["paths"].get(path, {}).get(request.method.lower(), {})
    known = {one["name"] for one in described.get("parameters", ()) if one["in"] == "query"}
    if len(names) > len(set(names)) or not known.issuperset(names):
        shown = ", ".join(sorted(known)) or "none"
        raise HTTPException(422, f"an unknown or repeated query parameter; this address takes {shown}")
