"""The lock of the index: one process at a time writes it, or opens its Chroma directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memkit.errors import IndexBusyError, IndexStoreError
from memkit.paths import PRIVATE_FILE, Home, make_private_directory


@contextmanager
def index_lock(
    home: Home, wait_seconds: float, announce: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the index lock; raises `IndexBusyError` if another process keeps it for `wait_seconds`.

    `announce` is told in one line if there is someone to wait for.
    """
    from filelock import FileLock, Timeout  # 0.05 s, not needed by a search of an index in step

    try:
        make_private_directory(home.run)
        lock = FileLock(home.index_lock, mode=PRIVATE_FILE)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if announce is not None and wait_seconds > 0:
                announce("waiting for another memkit process that is working on the index")
            lock.acquire(timeout=wait_seconds)
    except Timeout as error:
        raise IndexBusyError(
            "another memkit process is working on the index; try again in a moment"
        ) from error
    except OSError as error:
        raise IndexStoreError(
            f"cannot lock the index in {home.run}: {error.strerror or error}"
        ) from error
    try:
        yield
    finally:
        lock.release()
