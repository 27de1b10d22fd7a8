"""The index lock: one process at a time writes the index, or opens its Chroma directory."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from memkit.errors import IndexBusyError, IndexStoreError
from memkit.files import PRIVATE_FILE, create_private, make_private_directory, read_head
from memkit.paths import Home
from memkit.processes import is_locked

if TYPE_CHECKING:
    from filelock import FileLock

logger = logging.getLogger(__name__)


@contextmanager
def index_lock(
    home: Home, wait_seconds: float, announce: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the index lock. Raise `IndexBusyError` if another process keeps it for `wait_seconds`.

    Before a wait, kill the service if it holds the lock and hangs. `announce` gets a line on that, and on a
    wait.
    """
    # It takes 0.05 s, which a search of an up-to-date index saves.
    from filelock import FileLock, Timeout

    try:
        make_private_directory(home.run)
        lock = FileLock(home.index_lock, mode=PRIVATE_FILE)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if wait_seconds <= 0:
                raise
            _wait(home, lock, wait_seconds, announce)
    except Timeout as error:
        raise IndexBusyError(
            "another memkit process is working on the index; try again in a moment"
        ) from error
    except OSError as error:
        raise IndexStoreError(
            f"cannot lock the index in {home.run}: {error.strerror or error}"
        ) from error
    try:
        _note_holder(home)
        yield
    finally:
        with contextlib.suppress(OSError):  # then it names a process that no longer holds the lock
            os.unlink(home.index_holder)
        lock.release()


def _wait(
    home: Home, lock: FileLock, wait_seconds: float, announce: Callable[[str], None] | None
) -> None:
    from filelock import Timeout

    from memkit.ipc.stop import process_of, stop_hung_service

    found = holder(home)
    if found is None or found.process == process_of(home):
        stop_hung_service(home, announce or logger.warning)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if announce is not None:
            announce("waiting for another memkit process that is working on the index")
        lock.acquire(timeout=wait_seconds)


def _note_holder(home: Home) -> None:
    """Record for the doctor which process holds the lock. Every attempt truncates the lock file itself."""
    try:
        with create_private(home.index_holder) as file:
            file.write(f"{os.getpid()} {time.time():.0f}\n".encode("ascii"))
    except OSError as error:
        logger.warning("cannot record the holder of the index lock: %s", error)


class Holder(NamedTuple):
    """The process that holds the index lock, and the start in seconds since the epoch."""

    process: int
    since: float


def holder(home: Home) -> Holder | None:
    """Return the current holder of the index lock as it recorded itself; None if unknown."""
    if not is_locked(home.index_lock):
        return None
    try:
        process, since = read_head(home.index_holder, 100).split()
        return Holder(int(process), float(since))
    except (OSError, ValueError):  # just taken, or by an older memkit
        return None
