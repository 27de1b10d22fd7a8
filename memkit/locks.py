"""Lock files as the `filelock` package does, for hooks and the launcher, which run without it.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import errno
import os
import sys


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if it is locked already. Raise `OSError`."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0, os.SEEK_SET)  # it locks the byte at the current position
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def is_locked(path: str) -> bool:
    """Return whether a process holds the lock file at `path` now."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
