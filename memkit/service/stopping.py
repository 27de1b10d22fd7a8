"""Ends the service of a memory home, in whatever state it is, and removes what a killed one left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from memkit.capture import launch
from memkit.errors import MemkitError
from memkit.paths import PRIVATE_FILE, Home
from memkit.service import address
from memkit.service.client import DRAIN, request

ASK_SECONDS = 5.0

STOP_SECONDS = 10.0
"""How long a service that answers may take to end."""

TERM_SECONDS = 3.0
"""How long one that does not may take after SIGTERM, before it is killed, which loses nothing."""

POLL_SECONDS = 0.05


def stop(home: Home) -> None:
    """End the service, if there is one. Raises `MemkitError` if it does not end."""

    def has_ended() -> bool:
        return not launch.service_is_running(home)

    if has_ended():
        return
    try:
        request(home, DRAIN, {}, ASK_SECONDS)
        wait_for(has_ended, STOP_SECONDS, "the service has not ended")
    except MemkitError:  # it is not there to be asked, or does not end
        process = process_of(home)
        if process is None:
            raise MemkitError(
                "the service does not answer, and does not say which process it is"
            ) from None
        # On Windows the first ends it at once.
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            # The lock is held, so who wrote its number when it took it is alive, and is the one.
            if not has_ended():
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(process, number)
                with contextlib.suppress(MemkitError):
                    wait_for(has_ended, TERM_SECONDS, "")
        wait_for(has_ended, TERM_SECONDS, f"the service, process {process}, does not end")


def process_of(home: Home) -> int | None:
    """The process that last took the service's lock; None if it has not said which it is."""
    try:
        return int(Path(home.service_process).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def left_behind(home: Home) -> list[str]:
    """The files that say how to reach a service, where there is none."""
    if launch.service_is_running(home):
        return []
    listening = address.socket_path(home) if address.uses_unix_sockets() else home.service_token
    return [path for path in (listening, home.service_process) if os.path.lexists(path)]


def remove_left_behind(home: Home) -> None:
    """Remove those files. Raises `OSError`; nothing happens if a service has started meanwhile."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(home.service_lock, timeout=0, mode=PRIVATE_FILE):
            address.remove(home)
            Path(home.service_process).unlink(missing_ok=True)
    except Timeout:
        pass


def wait_for(is_done: Callable[[], bool], seconds: float, problem: str) -> None:
    """Return as soon as `is_done`. Raises `MemkitError` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise MemkitError(f"{problem} within {seconds:.0f} s; `memkit logs` may say why")
        time.sleep(POLL_SECONDS)
