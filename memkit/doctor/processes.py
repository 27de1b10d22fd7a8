"""Check the service and the locks: who holds them, and whether the service answers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

import memkit
from memkit import environment
from memkit.doctor.finding import FIX, Finding, Subject, moment
from memkit.index.lock import Holder, holder
from memkit.ipc import launch, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.paths import Home
from memkit.processes import is_locked
from memkit.state import release
from memkit.text import plural

START_SECONDS = 5.0
"""The time from the start of a service to its first answer."""

POLL_SECONDS = 0.1

LONG_SECONDS = 1800.0
"""Only the first index of a very large memory holds the index lock for longer."""

LOCKS = Path("/proc/locks")


def check_service(subject: Subject) -> Iterator[Finding]:
    """Check that the service answers and has this version."""
    home = subject.home
    status = _status(home)
    if status is None:
        if launch.service_is_running(home):
            process = stop.process_of(home)
            yield Finding(
                "service-hung",
                "error",
                f"the service{f', process {process},' if process else ''} does not answer",
                "hooks and searches wait for it in vain, and memkit handles no events",
                f"{FIX}, or `memkit service restart`; ending it loses nothing",
            )
        return
    version = str(status.get("version"))
    if version != memkit.__version__:
        is_newer = release(version) > release(memkit.__version__)
        yield Finding(
            "service-version",
            "warning",
            f"the service has version {version}, this is {memkit.__version__}",
            "this older memkit uses the newer one's service" if is_newer else "commands do not use it",
            # Ending a newer one would start the older one instead.
            "`claude plugin update memkit@memkit`, and update this one"
            if is_newer
            else f"{FIX}, or `memkit service restart`",
        )
    for line in status.get("errors", [])[-1:]:
        yield Finding(
            "service-errors",
            "note",
            f"the service reports: {line}",
            "it continues, and tries again",
            "fix the cause; `memkit service status` shows all errors",
        )


def _status(home: Home) -> dict[str, Any] | None:
    """Return the status of the service, or None if it does not run or does not answer."""
    deadline = time.monotonic() + START_SECONDS
    while (seconds := deadline - time.monotonic()) > 0 and launch.service_is_running(home):
        try:
            # A longer wait would make the client ask a late service to end.
            return request(home, "status", {}, min(seconds, 3.0))
        except RequestRefused as refused:
            return {"version": memkit.__version__, "errors": [str(refused)]}
        except ServiceUnavailable as unavailable:
            if unavailable.reason != "late":
                time.sleep(POLL_SECONDS)  # it is starting
    return None


def check_listening(subject: Subject) -> Iterator[Finding]:
    """Check that the last service that was started could listen."""
    problem = stop.problem_of(subject.home)
    if problem and subject.settings.service.enabled:
        yield Finding(
            "service-unreachable",
            "warning",
            f"the service cannot listen: {problem}",
            "each hook starts a worker instead, searches are slower, and prompts get no pointers",
            "set MEMKIT_HOME to a shorter path on a local disk, or `memkit config set service.enabled false`",
        )


def stop_service(subject: Subject) -> str:
    """Stop the service. Raise `MemkitError`."""
    stop.stop(subject.home)
    stop.remove_stale_files(subject.home)
    return "the service was stopped; the next hook or search starts one"


def check_stale_files(subject: Subject) -> Iterator[Finding]:
    """Find the files of a service that was killed."""
    for path in stop.stale_files(subject.home):
        yield Finding(
            "service-left-behind",
            "note",
            f"{path} is of a service that was killed",
            "none: hooks notice that no service listens, and the next service replaces it",
        )


def remove_stale_files(subject: Subject) -> str:
    """Remove the files of a killed service. Raise `OSError`."""
    found = stop.stale_files(subject.home)
    stop.remove_stale_files(subject.home)
    return f"{plural(len(found), 'file')} of a killed service removed"


def check_locks(subject: Subject) -> Iterator[Finding]:
    """Find locks that a stopped process holds, or a child of a dead one."""
    home = subject.home
    for path in (home.index_lock, environment.lock_file(home.root)):
        process = _locking_process(path) if is_locked(path) else None
        if process is None or process == stop.process_of(home):  # `check_service` checks the latter
            continue
        meaning = "processes wait for that lock: memkit handles, indexes, or builds nothing"
        if not psutil.pid_exists(process):
            heirs = " ".join(map(str, _processes_with_open(path)))
            yield Finding(
                "lock-orphaned",
                "error",
                f"process {process}, which locked {path}, is dead; {heirs or 'a child of it'} still holds it",
                meaning,
                f"wait until it ends, or `kill {heirs}`" if heirs else "end memkit's processes",
            )
        elif _is_stopped(process):
            yield Finding(
                "lock-stopped",
                "error",
                f"process {process}, which has locked {path}, is stopped, for example by Ctrl-Z",
                meaning,
                f"`kill -CONT {process}` continues it, `kill -KILL {process}` ends it and loses nothing",
            )


def check_long_lock(subject: Subject) -> Iterator[Finding]:
    """Find a process that has held the index lock for very long."""
    found = holder(subject.home)
    if found is None:
        return
    seconds = subject.now - found.since
    if seconds > LONG_SECONDS and _is_memkit(found):
        yield Finding(
            "lock-held-long",
            "warning",
            f"process {found.process} has held {subject.home.index_lock} since {moment(found.since)}, for "
            f"{seconds / 60:.0f} minutes",
            "memkit handles no events of any project meanwhile; a first index of a very large memory may "
            "take that long",
            f"`memkit logs` shows what it does; if nothing happens, `kill {found.process}` stops it, and the "
            "next memkit continues",
        )


def _is_memkit(found: Holder) -> bool:
    """Return whether the recorded holder is a memkit process that started before it took the lock.

    The record of a killed holder stays, and another process may have its number by now.
    """
    try:
        process = psutil.Process(found.process)
        is_memkit = any("memkit" in word for word in process.cmdline())
        return is_memkit and process.create_time() <= found.since + 1
    except psutil.Error:
        return False


def _is_stopped(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() == psutil.STATUS_STOPPED)
    except psutil.Error:  # it has ended
        return False


def _locking_process(path: str) -> int | None:
    """Return the process that locked the file, from proc_locks(5); None if that is unknown."""
    if sys.platform == "win32":
        return None
    try:
        status = os.stat(path)
        lines = LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:  # this platform has no such table
        return None
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5] == file and int(fields[4]) > 0:
            return int(fields[4])
    return None


def _processes_with_open(path: str) -> list[int]:
    """Return the other processes of this user that have the file open."""
    found = []
    for process in psutil.process_iter():
        try:
            is_open = any(file.path == path for file in process.open_files())
        except psutil.Error:  # ended, or of another user
            continue
        if is_open and process.pid != os.getpid():
            found.append(process.pid)
    return found
