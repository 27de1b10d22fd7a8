"""The service and the locks: who holds them, who left them, and whether there is an answer."""

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
from memkit.doctor.finding import MEND, Finding, Subject
from memkit.index.lock import Holder, holder
from memkit.ipc import launch, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.locks import is_locked
from memkit.paths import Home
from memkit.state import release

START_SECONDS = 5.0
"""How long a service that has just begun may take until it answers."""

LOOK_SECONDS = 0.1

LONG_SECONDS = 1800.0
"""Longer than anything but the first index of a very large memory holds the index lock."""

LOCKS = Path("/proc/locks")


def check_service(subject: Subject) -> Iterator[Finding]:
    """Whether the service answers, and is of this version."""
    home = subject.home
    if not launch.service_is_running(home):
        return
    status = _status(home)
    if status is None:
        if not launch.service_is_running(home):  # it has ended meanwhile
            return
        process = stop.process_of(home)
        yield Finding(
            "service-hung",
            "error",
            f"the service{f', process {process},' if process else ''} does not answer",
            "hooks and searches wait for it in vain, and nothing new is taken in",
            f"{MEND}, or `memkit service restart`; ending it loses nothing",
            fixable=True,
        )
        return
    theirs = str(status.get("version"))
    if theirs != memkit.__version__:
        is_newer = release(theirs) > release(memkit.__version__)
        yield Finding(
            "service-version",
            "warning",
            f"the service is of version {theirs}, this is {memkit.__version__}",
            "this older memkit uses the newer one's service" if is_newer else "commands do without it",
            "`claude plugin update memkit@memkit`, and update this one"
            if is_newer
            else f"{MEND}, or `memkit service restart`",
            fixable=not is_newer,  # ending a newer one would start the older in its place
        )
    for line in status.get("errors", [])[-1:]:
        yield Finding(
            "service-errors",
            "note",
            f"the service reports: {line}",
            "it goes on, and tries again",
            "mend what it names; `memkit service status` shows all",
        )


def check_listening(subject: Subject) -> Iterator[Finding]:
    """Whether the last service that was started could listen."""
    problem = stop.problem_of(subject.home)
    if problem and subject.settings.service.enabled:
        yield Finding(
            "service-unreachable",
            "warning",
            f"the service cannot listen: {problem}",
            "turns are taken in by a worker each time, searches are slower, and prompts get no pointers",
            "set MEMKIT_HOME to a shorter path on a local disk, or `memkit config set service.enabled false`",
        )


def _status(home: Home) -> dict[str, Any] | None:
    """What the service says of itself; None if it does not answer."""
    deadline = time.monotonic() + START_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            # Shorter than what makes the client ask a late service to end.
            return request(home, "status", {}, min(left, 3.0))
        except RequestRefused as refused:
            return {"version": memkit.__version__, "errors": [str(refused)]}
        except ServiceUnavailable as unavailable:
            if not launch.service_is_running(home):
                return None
            if unavailable.reason != "late":
                time.sleep(LOOK_SECONDS)  # it has the lock, and listens in a moment
    return None


def stop_service(subject: Subject) -> str:
    """End the service; who needs one starts it. Raises `MemkitError`."""
    stop.stop(subject.home)
    stop.remove_stale_files(subject.home)
    return "the service was ended; the next hook or search starts one"


def check_left_behind(subject: Subject) -> Iterator[Finding]:
    """Whether a service that was killed left the way to it behind."""
    for path in stop.stale_files(subject.home):
        yield Finding(
            "service-left-behind",
            "note",
            f"{path} was left by a service that was killed",
            "none: hooks find that nobody listens, and the next service replaces it",
            MEND,
            fixable=True,
        )


def remove_left_behind(subject: Subject) -> str:
    """Remove what a killed service left. Raises `OSError`."""
    found = stop.stale_files(subject.home)
    stop.remove_stale_files(subject.home)
    return f"{len(found)} files of a killed service removed"


def check_locks(subject: Subject) -> Iterator[Finding]:
    """Whether a lock is held by a process that is stopped, or for one that is dead by its child."""
    home = subject.home
    for path in (home.index_lock, environment.lock_file(home.root)):
        if not is_locked(path):
            continue
        holder = _holder(path)
        if holder is None or holder == stop.process_of(home):  # that is `check_service`'s
            continue
        meaning = "what needs that lock waits: nothing is taken in, indexed or built"
        if not psutil.pid_exists(holder):
            heirs = " ".join(map(str, _with_open(path)))
            yield Finding(
                "lock-orphaned",
                "error",
                f"process {holder}, which locked {path}, is dead; {heirs or 'a child of it'} still has it",
                meaning,
                f"wait for its end, or `kill {heirs}`" if heirs else "end memkit's processes",
            )
        elif _is_stopped(holder):
            yield Finding(
                "lock-stopped",
                "error",
                f"process {holder}, which has locked {path}, is stopped, as by Ctrl-Z",
                meaning,
                f"`kill -CONT {holder}` lets it go on, `kill -KILL {holder}` ends it and loses nothing",
            )


def check_long_lock(subject: Subject) -> Iterator[Finding]:
    """Whether one process has held the index lock for very long."""
    found = holder(subject.home)
    if found is None:
        return
    seconds = subject.now - found.since
    if seconds > LONG_SECONDS and _may_hold(found):
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.since))
        yield Finding(
            "lock-held-long",
            "warning",
            f"process {found.process} has held {subject.home.index_lock} since {since}, for "
            f"{seconds / 60:.0f} minutes",
            "no session of any project is taken in meanwhile; a first index of a very large memory may "
            "take that long",
            f"`memkit logs` shows what it does; if nothing moves, `kill {found.process}` stops it, and the "
            "next memkit goes on",
        )


def _may_hold(found: Holder) -> bool:
    """Whether the process that noted itself as the holder is a memkit process from before that moment.

    A killed holder leaves its note, and its number can be another process's by now.
    """
    try:
        process = psutil.Process(found.process)
        is_ours = any("memkit" in word for word in process.cmdline())
        return is_ours and process.create_time() <= found.since + 1
    except psutil.Error:
        return False


def _is_stopped(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() == psutil.STATUS_STOPPED)
    except psutil.Error:  # gone meanwhile
        return False


def _holder(path: str) -> int | None:
    """The process that locked the file at `path`, from the table of proc_locks(5); None if it is not told."""
    if sys.platform == "win32":
        return None
    try:
        status = os.stat(path)
        lines = LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:  # no such table on this platform
        return None
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5] == file and int(fields[4]) > 0:
            return int(fields[4])
    return None


def _with_open(path: str) -> list[int]:
    """The processes of this user that have the file open, but for this one."""
    found = []
    for process in psutil.process_iter():
        try:
            is_open = any(file.path == path for file in process.open_files())
        except psutil.Error:  # gone, or not ours
            continue
        if is_open and process.pid != os.getpid():
            found.append(process.pid)
    return found
