"""Stop the service of a memory home, whatever its state, and remove the files of a killed one."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE
from memkit.ipc import address, launch
from memkit.ipc.client import DRAIN, is_alive, request
from memkit.paths import Home
from memkit.text import one_line

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
"""The time limit for the answer to `drain`."""

STOP_SECONDS = 10.0
"""The time limit for the exit of a service that answers."""

TERM_SECONDS = 3.0
"""The time limit for an exit after SIGTERM. Killing it then loses nothing."""

IDLE_SECONDS = 4.0
"""A service that neither answers `ping` nor works during this time is hung, not busy."""

WORK_SECONDS = 0.1
"""A hung process uses less processor time than this during `IDLE_SECONDS`."""

POLL_SECONDS = 0.05


def stop(home: Home) -> bool:
    """Stop the service. Return False if there is none. Raise `MemkitError` if it does not exit."""

    def has_ended() -> bool:
        return not launch.service_is_running(home)

    if has_ended():
        return False
    try:
        request(home, DRAIN, {}, DRAIN_SECONDS)
        wait_for(has_ended, STOP_SECONDS, "the service has not exited")
    except MemkitError:  # it does not answer, or does not exit
        process = _service_process(home)
        if has_ended():
            return True
        if process is None:
            raise MemkitError("the service does not answer, and its process is unknown") from None
        for end in (process.terminate, process.kill):
            with contextlib.suppress(psutil.NoSuchProcess, MemkitError):  # it has just exited
                end()
                wait_for(has_ended, TERM_SECONDS, "")
                return True
        wait_for(has_ended, TERM_SECONDS, f"the service, process {process.pid}, has not exited")
    return True


def stop_hung_service(home: Home, announce: Callable[[str], None]) -> None:
    """Kill the service if it hangs. `announce` gets a line on what was done, if it does not respond.

    Call this before waiting for the service, or for a lock that it may hold.
    """
    number = process_of(home)
    if number == os.getpid() or not launch.service_is_running(home) or is_alive(home):
        return
    if kill_if_hung(home):
        announce(f"the service, process {number}, hung; killed it and continued without it")
    else:
        announce(
            f"the service, process {number}, does not respond; continued without it. "
            "`memkit service restart` stops it"
        )


def kill_if_hung(home: Home) -> bool:
    """Kill a service that does not respond, which loses nothing; return whether that was done.

    Leave a busy one alone, and one that a debugger holds.
    """
    process = _service_process(home)
    if process is None or not launch.service_is_running(home):
        return False
    try:
        if not _hangs(home, process):
            return False
        process.kill()  # psutil refuses if the id belongs to another process by now
        wait_for(
            lambda: not launch.service_is_running(home), TERM_SECONDS, f"process {process.pid} has not exited"
        )
    except (psutil.Error, OSError, MemkitError) as error:
        logger.warning("cannot kill the hung service, process %s: %s", process.pid, error)
        return False
    logger.warning("killed the service, process %s, which hung", process.pid)
    return True


def _hangs(home: Home, process: psutil.Process) -> bool:
    status = process.status()
    if status == psutil.STATUS_STOPPED:
        return True
    if status in (psutil.STATUS_TRACING_STOP, psutil.STATUS_DISK_SLEEP):
        return False
    before = _cpu_seconds(process)
    return not is_alive(home, IDLE_SECONDS) and _cpu_seconds(process) - before < WORK_SECONDS


def _cpu_seconds(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))  # user and system


def _service_process(home: Home) -> psutil.Process | None:
    """Return the service, checked by command line and home: its ID may be another process's by now."""
    number = process_of(home)
    if number is None:
        return None
    try:
        process = psutil.Process(number)
        words, variables = process.cmdline(), process.environ()
    except (psutil.Error, OSError, ValueError) as error:
        logger.info("cannot inspect process %s: %s", number, error)
        return None
    root = variables.get("MEMKIT_HOME") or os.path.join("~", ".memkit")
    is_ours = os.path.realpath(os.path.expanduser(root)) == os.path.realpath(home.root)
    is_service = {"service", "run"}.issubset(words) and any("memkit" in word for word in words)
    return process if is_ours and is_service else None


def process_of(home: Home) -> int | None:
    """Return the id of the process that last took the service's lock, None if it is unknown."""
    try:
        return int(Path(home.service_process).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def problem_of(home: Home) -> str:
    """Return in one line why the last service could not listen, "" if it could."""
    try:
        return one_line(Path(home.service_problem).read_text("utf-8", errors="replace"))
    except OSError:
        return ""


def remove_stale_files(home: Home) -> None:
    """Remove the files of a killed service, unless another has started. Raise `OSError`."""
    from filelock import FileLock, Timeout

    with contextlib.suppress(Timeout), FileLock(home.service_lock, timeout=0, mode=PRIVATE_FILE):
        address.remove(home)
        Path(home.service_process).unlink(missing_ok=True)


def wait_for(is_done: Callable[[], bool], seconds: float, problem: str) -> None:
    """Return as soon as `is_done` is true. Raise `MemkitError` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise MemkitError(f"{problem} within {seconds:.0f} s; `memkit logs` may say why")
        time.sleep(POLL_SECONDS)
