"""The service's process. A lock ensures that there is one; it exits when it is idle."""

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
from memkit.errors import ConfigError, MemkitError, NewerFileError, unwritable
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.ipc import address, launch
from memkit.ipc.client import PING, ServiceUnavailable, request
from memkit.paths import Home
from memkit.processes import kill_running
from memkit.projects.project import Project
from memkit.service.jobs import due_jobs
from memkit.service.listener import OPEN_OPERATIONS, STATUS, Listener, Request
from memkit.service.operations import Operations
from memkit.settings import load

logger = logging.getLogger(__name__)

READERS = 4
"""Threads that answer requests. Most of a search runs outside the interpreter's lock."""

CHECK_SECONDS = 15.0
"""The longest time between two checks for due jobs and for idleness."""

STOP_SECONDS = 1.5
"""The time limit for the current task when the process should exit. Cutting it short loses nothing."""

TAKE_OVER_SECONDS = 10.0
"""The time that a new service waits for one that is about to exit."""


class CannotListenError(MemkitError):
    """The service cannot listen. `home.service_problem` says why, for hooks and the doctor."""


def run(home: Home) -> bool:
    """Run the service of `home` until it exits. Return False at once if one already runs.

    Raise `CannotListenError`.
    """
    make_private_directory(home.run)
    lock = filelock.FileLock(home.service_lock, mode=PRIVATE_FILE)
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while True:
        try:
            lock.acquire(timeout=0.2)
            break
        except filelock.Timeout:
            with contextlib.suppress(ServiceUnavailable):
                request(home, STATUS, {}, 2.0)
                return False  # it listens, so it is not about to exit
            if time.monotonic() > deadline:
                return False
    service = _Service(home)
    try:
        # For whoever has to kill this process if it hangs.
        write_durably(home.service_process, str(os.getpid()).encode("ascii"))
        asyncio.run(service.run())
    finally:
        lock.release()
    # An event may arrive after the last check, when the service no longer listens. Leave the work that was
    # seen before for later, and start no other service if this one was asked to exit.
    seen = service.operations.writer.seen_work
    if service.is_idle and not seen.issuperset(launch.waiting_names(home)):
        launch.hand_over(home, with_service=True)
    return True


class _Service:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock_identity = _identity(home.service_lock)
        self._last_request = time.monotonic()
        self._running = 0
        self._exiting = asyncio.Event()
        self.is_idle = False

    async def run(self) -> None:
        loop = asyncio.get_running_loop()

        def drain() -> None:
            loop.call_soon_threadsafe(self._exiting.set)

        sock, token = self._listen()
        self.operations = Operations(self._home, drain)
        self._readers = ThreadPoolExecutor(READERS, "reader")
        _call_on_signals(loop, self._exiting.set)
        listener = Listener(sock, token, self._answer, version=memkit.__version__)
        listening = asyncio.create_task(listener.run())
        listening.add_done_callback(lambda _: self._exiting.set())
        logger.info("service %s listens", os.getpid())
        self.operations.work({})
        self.operations.agents.start()
        try:
            await self._wait_for_exit()
        finally:
            if not self._owns_home():
                os._exit(0)
            logger.info("service %s exits", os.getpid())
            address.remove(self._home)  # from now on, clients start another service
            listener.stop()
            self.operations.writer.stop()
            await asyncio.wait([listening], timeout=STOP_SECONDS / 2)
            self.operations.close()
            kill_running()  # or the model's program outlives the service, and its answer is lost all the same
            if not self.operations.writer.join(STOP_SECONDS / 2) or self.operations.jobs.is_busy:
                logger.info("the current task is left to the next service")
                logging.shutdown()
                os._exit(0)  # it loses nothing, whenever it is killed
            self._readers.shutdown(wait=False, cancel_futures=True)

    def _listen(self) -> tuple[socket.socket, str | None]:
        problem = self._home.service_problem
        try:
            listening = address.listen(self._home)
        except OSError as error:
            reason = unwritable(error, self._home.run)
            with contextlib.suppress(OSError):
                write_durably(problem, reason.encode("utf-8", "replace"))
            raise CannotListenError(f"the service cannot listen: {reason}") from error
        Path(problem).unlink(missing_ok=True)
        return listening

    async def _answer(self, request: Request) -> dict[str, object]:
        if request.operation == PING:
            return {}
        loop = asyncio.get_running_loop()
        operation = self.operations.named(request.operation)
        if request.operation in OPEN_OPERATIONS:
            # In a thread of its own, so it answers while the readers are busy. It does not count as use.
            return await loop.run_in_executor(None, operation, request.arguments)
        self._last_request = time.monotonic()
        self._running += 1
        try:
            found = await loop.run_in_executor(self._readers, operation, request.arguments)
            if isinstance(found, Future):  # wait without a thread
                # Others may wait for the same task: do not cancel it when this request is late.
                found = await asyncio.shield(asyncio.wrap_future(found))
            result: dict[str, object] = msgspec.to_builtins(found)
            return result
        finally:
            self._running -= 1
            self._last_request = time.monotonic()

    async def _wait_for_exit(self) -> None:
        idle = 600.0
        while not self._exiting.is_set():
            try:
                idle = load.load(self._home).settings.service.idle_minutes * 60
            except MemkitError as error:  # a mistake in the file; commands report it
                logger.warning("%s", error)
            pause = min(CHECK_SECONDS, max(0.2, idle / 4))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._exiting.wait(), pause)
                return
            if not self._owns_home():
                # The home was removed or replaced. Its files belong to another service now, and even a
                # line in the log would bring back a removed home.
                os._exit(0)
            self._start_due_jobs()
            self.operations.writer.copy()
            if not self.operations.jobs.is_busy:  # one of its jobs asks a model, too
                self.operations.summaries.look()
            if self._is_idle(idle):
                self.is_idle = True
                return
            if launch.work_is_due(self._home):  # it failed before, or no hook could report it
                self.operations.work({})

    def _owns_home(self) -> bool:
        return _identity(self._home.service_lock) == self._lock_identity

    def _start_due_jobs(self) -> None:
        try:
            settings = self.operations.settings_of(Project(self._home.root, self._home))
            for job in due_jobs(self._home, settings, time.time()):
                self.operations.start_job(job)
        except (ConfigError, NewerFileError) as error:  # `memkit jobs` reports it
            logger.warning("%s", error)

    def _is_idle(self, idle_seconds: float) -> bool:
        last = max(self._last_request, self.operations.agents.changed)
        if time.monotonic() - last < idle_seconds or self._running:
            return False
        writer = self.operations.writer
        if writer.length or writer.is_busy or self.operations.summaries.is_busy:
            return False
        if self.operations.jobs.is_busy or any(self.operations.live):
            return False
        return not writer.copy(everything=True)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _call_on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
