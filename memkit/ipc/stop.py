"""Ends the service of a memory home, in whatever state it is, and removes what a killed one left."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE
from memkit.ipc import address, launch
from memkit.ipc.client import DRAIN, is_alive, request
from memkit.paths import Home

logger = logging.getLogger(__name__)

ASK_SECONDS = 5.0

STOP_SECONDS = 10.0
"""How long a service that answers may take to end."""

TERM_SECONDS = 3.0
"""How long one that does not may take after SIGTERM, before it is killed, which loses nothing."""

IDLE_SECONDS = 4.0
"""A service that gives no sign of life and does no work for so long is hung, not busy."""

WORK_SECONDS = 0.1
"""Processor time in which a hung process has done nothing."""

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
        process = _service_process(home)
        if process is None:
            if has_ended():
                return
            raise MemkitError(
                "the service does not answer, and does not say which process it is"
            ) from None
        # On Windows the first ends it at once.
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            if not has_ended():
                with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                    process.send_signal(number)
                with contextlib.suppress(MemkitError):
                    wait_for(has_ended, TERM_SECONDS, "")
        wait_for(has_ended, TERM_SECONDS, f"the service, process {process.pid}, does not end")


def end_hung(home: Home) -> int | None:
    """Kill the service if it hangs: its process id then, None if it does not, or cannot be told.

    Call it when the service gave no sign of life. A busy one, or one that a debugger holds, goes on. Being
    killed loses nothing, and frees the locks.
    """
    process = _service_process(home)
    if process is None or not launch.service_is_running(home):
        return None
    try:
        if not _hangs(home, process):
            return None
        process.kill()  # psutil refuses if the id is another process's by now
        wait_for(
            lambda: not launch.service_is_running(home),
            TERM_SECONDS,
            f"process {process.pid} does not end",
        )
    except (psutil.Error, OSError, MemkitError) as error:
        logger.warning("the hung service, process %s, is not ended: %s", process.pid, error)
        return None
    logger.warning("the service, process %s, hung and was ended", process.pid)
    return int(process.pid)


def _hangs(home: Home, process: psutil.Process) -> bool:
    status = process.status()
    if status == psutil.STATUS_STOPPED:
        return True
    if status in (psutil.STATUS_TRACING_STOP, psutil.STATUS_DISK_SLEEP):
        return False
    before = _worked(process)
    return not is_alive(home, IDLE_SECONDS) and _worked(process) - before < WORK_SECONDS


def _worked(process: psutil.Process) -> float:
    """The processor time that a process took so far, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _service_process(home: Home) -> psutil.Process | None:
    """The process that last took the service's lock, if it is certain that it is a service of this home.

    Its number may be another's by now, so command line and memory home must fit, too.
    """
    number = process_of(home)
    if number is None:
        return None
    try:
        process = psutil.Process(number)
        words, variables = process.cmdline(), process.environ()
    except (psutil.Error, OSError, ValueError) as error:
        logger.info("process %s is not looked into: %s", number, error)
        return None
    root = variables.get("MEMKIT_HOME") or os.path.join("~", ".memkit")
    is_ours = os.path.realpath(os.path.expanduser(root)) == os.path.realpath(home.root)
    is_service = {"service", "run"}.issubset(words) and any("memkit" in word for word in words)
    return process if is_ours and is_service else None


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


def problem_of(home: Home) -> str:
    """Why the last service that was started could not listen, in one line; "" if it could."""
    try:
        text = Path(home.service_problem).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return " ".join(text.split())


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
