"""The service's process: elected by a lock, it listens, answers, and ends when nobody needs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import filelock
import msgspec

import memkit
from memkit.errors import MemkitError, NewerFileError, unwritable
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.ipc import address, launch
from memkit.ipc.client import PING
from memkit.ipc.requests import OPEN_OPERATIONS, Request
from memkit.paths import Home
from memkit.service.jobs import JobBook
from memkit.service.listener import Listener
from memkit.service.operations import Operations
from memkit.settings import load

logger = logging.getLogger(__name__)

READERS = 4
"""Threads that answer; most of a search runs outside the interpreter's lock."""

CHECK_SECONDS = 15.0
"""How often it looks whether a job is due and whether anybody still needs it, at most."""

END_SECONDS = 1.5
"""What a task in hand may take when the process is told to end; being cut short costs nothing but time."""

TAKE_OVER_SECONDS = 10.0
"""How long a new service waits for one that is about to end."""


def run(home: Home) -> bool:
    """Be the service of `home` until it ends; False, at once, if there is one already.

    Raises `DeafError` if it cannot listen.
    """
    make_private_directory(home.run)
    lock = filelock.FileLock(home.service_lock, mode=PRIVATE_FILE)
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while True:
        try:
            lock.acquire(timeout=0.2)
            break
        except filelock.Timeout:
            if _answers(home) or time.monotonic() > deadline:
                return False
    server = _Server(home)
    try:
        # For whoever has to end us if we hang.
        write_durably(home.service_process, str(os.getpid()).encode("ascii"))
        asyncio.run(server.run())
    finally:
        lock.release()
    # An event of the last instant found us listening no more. What we have seen before is left for its
    # time, and who told us to end wants no successor.
    if server.is_idle and not server.operations.writer.looked_at.issuperset(
        launch.waiting_names(home)
    ):
        launch.hand_over(home, with_service=True)
    return True


def _answers(home: Home) -> bool:
    from memkit.ipc.client import ServiceUnavailable, request

    try:
        return not request(home, "status", {}, 2.0).get("draining")
    except ServiceUnavailable:
        return False


class DeafError(MemkitError):
    """The service cannot listen. `home.service_problem` says why, for hooks and the doctor."""


class _Server:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.is_idle = False
        self._lock_identity = _identity(home.service_lock)
        self.last_request = time.monotonic()
        self.running = 0
        self.ending = asyncio.Event()

    async def run(self) -> None:
        """Listen and answer until it is time to end."""
        loop = asyncio.get_running_loop()

        def drain() -> None:
            loop.call_soon_threadsafe(self.ending.set)

        sock, token = self._listen()
        self.operations = Operations(self.home, drain)
        self.readers = ThreadPoolExecutor(READERS, "reader")
        _call_on_signals(loop, self.ending.set)
        listener = Listener(sock, token, self.answer, version=memkit.__version__)
        listening = asyncio.create_task(listener.run())
        listening.add_done_callback(lambda _: self.ending.set())  # deaf it is of no use
        logger.info("service %s listens", os.getpid())
        self.operations.work({})
        try:
            await self._wait_for_the_end()
        finally:
            if not self._owns_home():
                os._exit(0)
            logger.info("service %s ends", os.getpid())
            address.remove(self.home)  # who comes now starts another one
            listener.stop()
            self.operations.writer.stop()
            await asyncio.wait([listening], timeout=END_SECONDS / 2)
            self.operations.close()
            if not self.operations.writer.join(END_SECONDS / 2):
                logger.info("the step in hand is left to the next service")
                logging.shutdown()
                os._exit(0)  # killed at any instant it loses nothing
            self.readers.shutdown(wait=False, cancel_futures=True)

    def _listen(self) -> tuple[socket.socket, str | None]:
        problem = Path(self.home.service_problem)
        try:
            listening = address.listen(self.home)
        except OSError as error:
            reason = unwritable(error, self.home.run)
            with contextlib.suppress(OSError):
                write_durably(str(problem), reason.encode("utf-8", "replace"))
            raise DeafError(f"the service cannot listen: {reason}") from error
        problem.unlink(missing_ok=True)
        return listening

    async def answer(self, request: Request) -> dict[str, object]:
        """The result of one request. Raises `MemkitError`."""
        if request.operation == PING:
            return {}
        operation = self.operations.named(request.operation)
        if request.operation in OPEN_OPERATIONS:
            # Whether it lives is told in a thread of its own, however long the readers are at it; and
            # who only looks does not keep it alive.
            return await asyncio.get_running_loop().run_in_executor(
                None, operation, request.arguments
            )
        self.last_request = time.monotonic()
        self.running += 1
        try:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self.readers, operation, request.arguments)
            if isinstance(found, Future):  # waited for without a thread
                # Others may wait for the same, so it is not cancelled when this request is late.
                found = await asyncio.shield(asyncio.wrap_future(found))
            result: dict[str, object] = msgspec.to_builtins(found)
            return result
        finally:
            self.running -= 1
            self.last_request = time.monotonic()

    async def _wait_for_the_end(self) -> None:
        idle = 600.0
        while not self.ending.is_set():
            try:
                idle = load.load(self.home).settings.service.idle_minutes * 60
            except MemkitError as error:  # a mistake in the file; who asks is told
                logger.warning("%s", error)
            try:
                await asyncio.wait_for(self.ending.wait(), min(CHECK_SECONDS, max(0.2, idle / 4)))
            except asyncio.TimeoutError:
                if not self._owns_home():
                    # The home was removed or replaced. What is there now belongs to another service, and
                    # even a line in the log would bring a removed home back.
                    os._exit(0)
                self._bound_log()
                self._start_due_jobs()
                self.operations.summaries.look(idle)
                if self._is_idle(idle):
                    self.is_idle = True
                    return
                if launch.work_is_due(self.home):  # what failed before, or nobody could tell us of
                    self.operations.work({})

    def _owns_home(self) -> bool:
        """Whether the home still holds the lock file that we have locked."""
        return _identity(self.home.service_lock) == self._lock_identity

    def _bound_log(self) -> None:
        try:
            launch.limit_worker_log(self.home)  # our own stderr, for days
        except OSError as error:
            logger.warning("worker.log cannot be begun anew: %s", error)

    def _start_due_jobs(self) -> None:
        try:
            due = JobBook(self.home).due(time.time())
        except NewerFileError as error:  # who asks for the jobs is told as well
            logger.warning("%s", error)
            return
        for job in due:
            self.operations.start_job(job)

    def _is_idle(self, idle_seconds: float) -> bool:
        """Whether nobody asked for so long, no session is live, and nothing is in hand."""
        if time.monotonic() - self.last_request < idle_seconds or self.running:
            return False
        writer = self.operations.writer
        if writer.length or writer.is_busy or self.operations.summaries.is_busy:
            return False
        return not any(self.operations.live)


def _identity(path: str) -> tuple[int, int] | None:
    """The device and inode of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _call_on_signals(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    """Call `end` in the loop when the process is told to end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, end)
        except NotImplementedError:  # the loops of Windows have none
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
