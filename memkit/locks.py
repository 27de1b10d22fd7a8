"""The two locks of a memory home.

A process that captures turns holds the capture lock: it covers the spool, session states, archive, and the
turns of the journal. A process that writes the index holds the index lock. So a turn's Markdown never waits
for an index pass. A process that needs both takes the capture lock first: otherwise two processes could wait
for each other.

A process that waits for a lock is the next one to get it, even if the holder asks for it again at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memkit.errors import IndexBusyError, IndexStoreError
from memkit.files import PRIVATE_FILE, create_private, make_private_directory, read_head
from memkit.home_files import remove_obstacles
from memkit.paths import Home

if TYPE_CHECKING:
    from filelock import FileLock

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]


def capture_lock(
    home: Home, wait_seconds: float, announce: Announce | None = None
) -> contextlib.AbstractContextManager[None]:
    """Hold the capture lock; as `index_lock`."""
    return _hold(home, home.capture_lock, "capturing sessions", wait_seconds, announce)


def index_lock(
    home: Home, wait_seconds: float, announce: Announce | None = None
) -> contextlib.AbstractContextManager[None]:
    """Hold the index lock. Raise `IndexBusyError` if another process keeps it for `wait_seconds`.

    Before a wait, kill the service if it holds the lock and hangs. `announce` gets a line about a kill and
    about a wait.
    """
    return _hold(home, home.index_lock, "working on the index", wait_seconds, announce)


@contextmanager
def _hold(
    home: Home, path: str, doing: str, wait_seconds: float, announce: Announce | None
) -> Iterator[None]:
    # 0.05 s, which a search of an up-to-date index need not pay
    from filelock import FileLock, Timeout

    try:
        make_private_directory(home.run)
        for obstacle in remove_obstacles(home.root):
            logger.warning("removed %s, which was in the place of a file of memkit", obstacle)
        lock, queue = (FileLock(name, mode=PRIVATE_FILE) for name in (path, _queue(path)))
        try:
            _acquire(lock, queue, 0)
        except Timeout:
            if wait_seconds <= 0:
                raise
            _stop_hung_holder(home, path, announce)
            try:
                _acquire(lock, queue, 0)
            except Timeout:
                if announce is not None:
                    announce(f"waiting for another memkit process that is {doing}")
                _acquire(lock, queue, wait_seconds)
    except Timeout as error:
        raise IndexBusyError(f"another memkit process is {doing}; try again in a moment") from error
    except OSError as error:
        raise IndexStoreError(f"cannot lock {error.filename or path}: {error.strerror or error}") from error
    try:
        _note_holder(path)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(_holder(path))
        lock.release()


def _acquire(lock: FileLock, queue: FileLock, seconds: float) -> None:
    """Take the lock. The process that holds the queue's lock gets it next."""
    deadline = time.monotonic() + seconds
    with queue.acquire(timeout=seconds):
        lock.acquire(timeout=max(0.0, deadline - time.monotonic()))


def _stop_hung_holder(home: Home, path: str, announce: Announce | None) -> None:
    from memkit.ipc.stop import process_of, stop_hung_service

    try:
        process = int(read_head(_holder(path), 100))
    except (OSError, ValueError):  # just taken
        process = None
    if process in (None, process_of(home)):
        stop_hung_service(home, announce or logger.warning)


def _note_holder(path: str) -> None:
    """Record which process holds the lock. Every attempt truncates the lock file itself."""
    try:
        with create_private(_holder(path)) as file:
            file.write(str(os.getpid()).encode("ascii"))
    except OSError as error:
        logger.warning("cannot record the holder of %s: %s", path, error)


def lock_files(home: Home) -> list[str]:
    """Return the files that are locked: those of both locks, and of the queues for them."""
    return [name for path in (home.capture_lock, home.index_lock) for name in (path, _queue(path))]


def _holder(path: str) -> str:
    return os.path.splitext(path)[0] + ".holder"


def _queue(path: str) -> str:
    return os.path.splitext(path)[0] + ".queue"
