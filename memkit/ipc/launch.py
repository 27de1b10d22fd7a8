"""Hand waiting work to the service, or to a worker: notify a running one, or start one.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from memkit import environment, processes
from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, create_private, make_private_directory
from memkit.ipc import spool, unindexed
from memkit.paths import Home
from memkit.processes import is_locked
from memkit.state import read_state, write_state

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory that holds the package: the plugin's root, or site-packages."""

NOTIFY_SECONDS = 0.05
"""Longest time that a hook takes to notify the service."""

MAX_LOG_BYTES = 1024 * 1024
"""A longer `worker.log`, the stderr of these processes, becomes `worker.log.1`."""

LEFT_VERSION = 1
"""The format version of `run/left.json`."""

_USER_VARIABLES = ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_")
"""Prefixes of Claude Code's variables that identify the user; all others belong to one session."""

FIRST_PAUSE_SECONDS = 30.0
"""First pause after an index could not be written; it doubles each time."""

LONGEST_PAUSE_SECONDS = 3600.0

OVERDUE_SECONDS = 10.0
"""A service that leaves an event for this long may hang."""

CHECK_PAUSE_SECONDS = 60.0
"""Time between checks of a service, which may be busy with a long index pass."""

RETRY_LISTEN_SECONDS = 600.0
"""The time in which hooks start workers instead, after a service could not listen."""

RETRY_BUILD_SECONDS = 600.0
"""Pause after a failed build of the environment before hooks start another."""


def worker_is_running(home: Home) -> bool:
    """Return whether a worker, an import, or an index pass runs, or the environment is being built."""
    locks = home.capture_lock, home.index_lock, environment.lock_file(home.root)
    return any(map(is_locked, locks))


def work_is_due(home: Home) -> bool:
    """Return whether there is new work, or failed work that may be tried again."""
    names = waiting_names(home)
    if not names:
        return False
    left, again, _ = _read_left(home)
    # A time later than any delay comes from a wrong clock.
    return not left.issuperset(names) or not 0 < again - time.time() <= LONGEST_PAUSE_SECONDS


def waiting_names(home: Home) -> list[str]:
    """Return the names of the events and marks that wait for a worker; events first, oldest first."""
    return spool.work(home) + unindexed.names(home)


def note_left(home: Home, left: set[str]) -> None:
    """Record, durably, what a worker has `left`, and when to try again. Raise `OSError`.

    `left` has names of events and roots of projects whose indexing failed. No process starts for them before
    that time: otherwise each hook would start one for an index that cannot be written.
    """
    roots = [root for root in unindexed.roots(home) if root in left]
    left = left.union(unindexed.name_of(root) for root in roots)
    names = [name for name in waiting_names(home) if name in left]
    if not names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.left)
        return
    times = [spool.not_before(item.record) for item in spool.unfinished(home) if _is_postponed(item)]
    tries = 0
    if roots:
        tries = min(_read_left(home)[2], 30) + 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1), LONGEST_PAUSE_SECONDS)
        times.append(time.time() + pause)
    make_private_directory(home.run)
    record = {"names": names, "tries": tries, "again": min(times, default=0.0)}
    write_state(home.left, LEFT_VERSION, record)


def _is_postponed(item: spool.Item) -> bool:
    try:
        return spool.not_before(item.record) > 0
    except (ValueError, TypeError):
        return False


def _read_left(home: Home) -> tuple[set[str], float, int]:
    """Return the names of what was left, when to try it again, and how often that was tried."""

    def convert(record: dict[str, Any]) -> tuple[set[str], float, int]:
        return set(map(str, record["names"])), float(record["again"]), int(record["tries"])

    try:
        return read_state(home.left, LEFT_VERSION, convert) or (set(), 0.0, 0)
    except (MemkitError, OSError):  # a damaged record: everything is due
        return set(), 0.0, 0


def hand_over(home: Home, with_service: bool) -> bool:
    """Get waiting work done; return whether that started a process. Raise `OSError`."""
    if not work_is_due(home):
        return False
    with_service = with_service and not service_is_unreachable(home)
    if with_service and (_notify_service(home) or service_is_running(home)):
        # A service that starts or stops looks into the spool; one that hangs does not.
        return _check_service(home)
    # Who holds the lock looks for more work before leaving; who only indexes captures nothing.
    lock = home.capture_lock if spool.work(home) else home.index_lock
    if is_locked(lock) or is_locked(environment.lock_file(home.root)):
        return False
    if environment_failed_lately(home):
        return False
    start(home, *(["service", "run"] if with_service else ["work"]))
    return True


def _check_service(home: Home) -> bool:
    """Start `memkit work`, which ends a hung service, if an event has waited too long."""
    left, _, _ = _read_left(home)
    new = [name for name in spool.work(home) if name not in left]
    if not new or not time.time() - spool.time_in(new[0]) > OVERDUE_SECONDS:
        return False
    if _changed_within(home.checked, CHECK_PAUSE_SECONDS):
        return False
    make_private_directory(home.run)
    create_private(home.checked).close()
    start(home, "work")
    return True


def _notify_service(home: Home) -> bool:
    from memkit.ipc import client  # only a hook that hands work over needs it

    try:
        client.notify(home, "work", {}, NOTIFY_SECONDS)
        return True
    except client.ServiceUnavailable:
        return False


def service_is_running(home: Home) -> bool:
    """Return whether a service runs, listening or about to."""
    return is_locked(home.service_lock)


def service_is_unreachable(home: Home) -> bool:
    """Return whether a service could not listen a short time ago. `home.service_problem` says why."""
    return _changed_within(home.service_problem, RETRY_LISTEN_SECONDS)


def _changed_within(path: str, seconds: float) -> bool:
    try:
        return abs(time.time() - os.path.getmtime(path)) < seconds
    except OSError:
        return False


def start_service(home: Home) -> bool:
    """Start the service for the next command if none runs; return whether it started. Raise `OSError`."""
    if service_is_running(home) or service_is_unreachable(home) or not environment_is_ready(home):
        return False
    start(home, "service", "run")
    return True


def environment_is_ready(home: Home) -> bool:
    """Return whether memkit's Python environment exists; a worker builds it otherwise.

    After an update that could not be built, the environment from before it counts.
    """
    if environment.environment_python(home.root, REPOSITORY) is not None:
        return True
    if environment.last_failure(home.root) is None:
        return False
    return environment.earlier_python(home.root, REPOSITORY) is not None


def environment_failed_lately(home: Home) -> bool:
    """Return whether building the environment failed too recently to try again."""
    if environment_is_ready(home):
        return False
    failure = environment.last_failure(home.root)  # a time in the future comes from a wrong clock
    return failure is not None and 0 <= time.time() - failure.time < RETRY_BUILD_SECONDS


def start(home: Home, *arguments: str) -> None:
    """Start `memkit ARGUMENTS…` detached; it outlives the hook and Claude Code. Raise `OSError`."""
    import subprocess  # only a hook that starts a process needs it

    make_private_directory(home.log)
    # A running service goes on to write into the renamed one; its next lines are few.
    if os.path.exists(home.worker_log) and os.path.getsize(home.worker_log) > MAX_LOG_BYTES:
        with contextlib.suppress(PermissionError):  # Windows renames no open file
            os.replace(home.worker_log, home.worker_log + ".1")
    descriptor = os.open(home.worker_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
    try:
        subprocess.Popen(
            [*memkit_command(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=descriptor, cwd=home.root, env=worker_environment(home), close_fds=True,
            **processes.detached(),
        )
    finally:
        os.close(descriptor)


def memkit_command() -> list[str]:
    """Return the command line of memkit: the plugin's `bin/memkit`, else this interpreter's package."""
    script = os.path.join(REPOSITORY, "bin", "memkit")
    if os.path.exists(script):
        return [sys.executable, "-I", script]
    return [sys.executable, "-I", "-m", "memkit"]


def worker_environment(home: Home) -> dict[str, str]:
    """Return the environment of a worker, which must not look like a part of a Claude Code session."""
    return {**outside_session(os.environ), "MEMKIT_HOME": home.root}


def outside_session(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without what marks a process as part of a Claude Code session.

    Keep the directory and login that Claude Code needs to run as the same user.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("CLAUDE") or name.startswith(_USER_VARIABLES)
    }
