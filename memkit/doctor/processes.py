"""Check the service, who holds the locks, and the limit on watched files."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

import memkit
from memkit import environment
from memkit.doctor import FIX, Finding, Subject, make_finding
from memkit.ipc import launch, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.locks import Holder, holder, lock_files
from memkit.paths import Home
from memkit.processes import is_locked
from memkit.state import release
from memkit.text import format_time, plural

START_SECONDS = 5.0
"""The time from the start of a service to its first answer."""

POLL_SECONDS = 0.1

LONG_SECONDS = 1800.0
"""Only the first index of a very large memory holds its lock for longer."""

LOCKS = Path("/proc/locks")

_WATCH_LIMITS = {
    errno.ENOSPC: ("fs.inotify.max_user_watches", 524288),
    errno.EMFILE: ("fs.inotify.max_user_instances", 1024),
}
"""The sysctl to raise, and to which value, by the error that inotify reports."""


def check_service(subject: Subject) -> Iterator[Finding]:
    """Check that the service answers and has this version."""
    home = subject.home
    status = _status(home)
    if status is None:
        if launch.service_is_running(home):
            process = stop.process_of(home)
            shown = f", process {process}," if process else ""
            yield make_finding("service-hung", process=shown)
        return
    version = str(status.get("version"))
    if version != memkit.__version__:
        meaning, fix = "commands do not use it", f"run {FIX} or `memkit service restart`"
        if release(version) > release(memkit.__version__):
            meaning = "this older command uses the newer service"
            # Ending the newer service would start the older one instead.
            fix = "run `claude plugin update memkit@memkit`, or `uv tool upgrade memkit-memory`, for this one"
        own = memkit.__version__
        yield make_finding("service-version", version=version, own=own, meaning=meaning, fix=fix)
    for line in status.get("errors", [])[-1:]:
        yield make_finding("service-errors", line=line)


def _status(home: Home) -> dict[str, Any] | None:
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
        yield make_finding("service-unreachable", problem=problem, home=subject.home.root)


def stop_service(subject: Subject) -> str:
    """Stop the service. Raise `MemkitError`."""
    stop.stop(subject.home)
    stop.remove_stale_files(subject.home)
    return "stopped the service; the next hook or search starts a new one"


def check_stale_files(subject: Subject) -> Iterator[Finding]:
    """Find the files of a service that was killed."""
    for path in stop.stale_files(subject.home):
        yield make_finding("service-left-behind", path=path)


def remove_stale_files(subject: Subject) -> str:
    """Remove the files of a killed service. Raise `OSError`."""
    found = stop.stale_files(subject.home)
    stop.remove_stale_files(subject.home)
    return f"removed {plural(len(found), 'file')} of a killed service"


def check_locks(subject: Subject) -> Iterator[Finding]:
    """Find locks that a stopped process holds, or a child of a dead one."""
    home = subject.home
    for path in (*lock_files(home), environment.lock_file(home.root)):
        process = _locking_process(path) if is_locked(path) else None
        if process is None or process == stop.process_of(home):  # `check_service` checks the latter
            continue
        if not psutil.pid_exists(process):
            heirs = " ".join(map(str, _processes_with_open(path)))
            fix = f"wait until it ends, or run `kill {heirs}`" if heirs else "end memkit's processes"
            heirs = heirs or "a child process"
            yield make_finding("lock-orphaned", process=process, path=path, heirs=heirs, fix=fix)
        elif _is_stopped(process):
            yield make_finding("lock-stopped", process=process, path=path)


def check_long_lock(subject: Subject) -> Iterator[Finding]:
    """Find a process that has held a lock for very long."""
    for path in (subject.home.capture_lock, subject.home.index_lock):
        found = holder(path)
        seconds = 0.0 if found is None else subject.now - found.since
        if found is not None and seconds > LONG_SECONDS and _is_memkit(found):
            yield make_finding(
                "lock-held-long",
                process=found.process,
                path=path,
                time=format_time(found.since),
                minutes=f"{seconds / 60:.0f}",
            )


def _is_memkit(found: Holder) -> bool:
    """Return whether the holder is memkit and older than its lock: its ID may be another's by now."""
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
    found = []
    for process in psutil.process_iter():
        try:
            is_open = any(file.path == path for file in process.open_files())
        except psutil.Error:  # ended, or of another user
            continue
        if is_open and process.pid != os.getpid():
            found.append(process.pid)
    return found


def check_watches(subject: Subject) -> Iterator[Finding]:
    """Check whether one more directory can be watched."""
    from watchdog.events import FileSystemEventHandler
    from watchdog.observers import Observer

    try:
        observer = Observer()
        observer.start()
        try:
            with tempfile.TemporaryDirectory() as directory:
                observer.schedule(FileSystemEventHandler(), directory)
        finally:
            observer.stop()
            observer.join()
    except OSError as error:
        limit, value = _WATCH_LIMITS.get(error.errno or 0, ("", 0))
        if limit:
            yield make_finding("inotify-limit", limit=limit, value=value)
