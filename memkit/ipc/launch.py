"""Hand waiting work to the service, or to a worker: notify a running one, or start one.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from memkit import environment, processes
from memkit.files import PRIVATE_FILE, create_private, make_private_directory, write_durably
from memkit.ipc import spool, unindexed
from memkit.paths import Home
from memkit.processes import is_locked
from memkit.state import parse_json

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory that holds the package: the plugin's root, or site-packages."""

NOTIFY_SECONDS = 0.05
"""Longest time that a hook takes to notify the service."""

MAX_LOG_BYTES = 1024 * 1024
"""A longer `worker.log`, the stderr of these processes, becomes `worker.log.1`."""

_USER_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_",
    "CLAUDE_CODE_SKIP_",
)
"""Prefixes of Claude Code's variables that identify the user; all others belong to one session."""

FIRST_PAUSE_SECONDS = 30.0
"""First pause after an index could not be written; it doubles each time."""

LONGEST_PAUSE_SECONDS = 3600.0

OVERDUE_SECONDS = 10.0
"""A service that leaves an event for this long may hang."""

CHECK_PAUSE_SECONDS = 60.0
"""Time between checks of a service, which may be busy with a long index pass."""

RETRY_LISTEN_SECONDS = 600.0
"""Time in which hooks start workers after a service could not listen."""

RETRY_BUILD_SECONDS = 600.0
"""Pause after a failed build of the environment before hooks start another."""


def worker_is_running(home: Home) -> bool:
    """Return whether a worker, an import, or an index pass runs, or the environment is being built."""
    return is_locked(home.index_lock) or is_locked(environment.lock_file(home.root))


def work_is_due(home: Home) -> bool:
    """Return whether work waits that is new, or that failed and may be tried again."""
    names = waiting_names(home)
    if not names:
        return False
    left, again = _left(home)
    # A time later than any delay comes from a wrong clock.
    return not left.issuperset(names) or not 0 < again - time.time() <= LONGEST_PAUSE_SECONDS


def waiting_names(home: Home) -> list[str]:
    """Return the names of the events and marks that wait for a worker; events first, oldest first."""
    return spool.work(home) + unindexed.names(home)


def note_left(home: Home, left: set[str]) -> None:
    """Record, durably, what a worker has `left`, and when to try again. Raise `OSError`.

    `left` contains names of events, and roots of projects whose indexing failed. Until then, start no
    process for them: an index that cannot be written would otherwise cost a process at each hook.
    """
    roots = [root for root in unindexed.roots(home) if root in left]
    left = left.union(unindexed.name_of(home, root) for root in roots)
    names = [name for name in waiting_names(home) if name in left]
    if not names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(home.left)
        return
    times = [spool.not_before(item.record) for item in spool.unfinished(home) if _is_postponed(item)]
    tries = 0
    if roots:
        tries = _tries(home) + 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1), LONGEST_PAUSE_SECONDS)
        times.append(time.time() + pause)
    record = {"names": names, "tries": tries, "again": min(times, default=0.0)}
    make_private_directory(home.run)
    write_durably(home.left, json.dumps(record).encode("ascii"))


def _is_postponed(item: spool.Item) -> bool:
    try:
        return spool.not_before(item.record) > 0
    except (ValueError, TypeError):
        return False


def _read_left(home: Home) -> dict[str, Any]:
    try:
        with open(home.left, encoding="ascii") as file:
            record = parse_json(file.read())
    except (OSError, ValueError):  # no record, or a damaged one: everything is due
        return {}
    return record if isinstance(record, dict) else {}


def _left(home: Home) -> tuple[set[str], float]:
    """Return the names of what was left, and when to try it again."""
    record = _read_left(home)
    names, again = record.get("names"), record.get("again")
    if not isinstance(names, list) or not isinstance(again, (int, float)):
        return set(), 0.0
    return {name for name in names if isinstance(name, str)}, float(again)


def _tries(home: Home) -> int:
    tries = _read_left(home).get("tries")
    return min(tries, 30) if isinstance(tries, int) and tries > 0 else 0


def hand_over(home: Home, with_service: bool) -> bool:
    """Get waiting work done; return whether that started a process. Raise `OSError`."""
    if not work_is_due(home):
        return False
    if with_service and service_is_unreachable(home):
        with_service = False
    if with_service and (_notify_service(home) or service_is_running(home)):
        # A service that starts or stops looks into the spool; one that hangs does not.
        return _check_service(home)
    if worker_is_running(home) or environment_failed_lately(home):
        return False
    start(home, *(["service", "run"] if with_service else ["work"]))
    return True


def _check_service(home: Home) -> bool:
    """Start `memkit work`, which ends a hung service, if an event has waited too long."""
    left, _ = _left(home)
    new = [name for name in spool.work(home) if name not in left]
    if not new or not time.time() - spool.time_in(new[0]) > OVERDUE_SECONDS:
        return False
    try:
        if abs(time.time() - os.path.getmtime(home.checked)) < CHECK_PAUSE_SECONDS:
            return False
    except FileNotFoundError:
        pass
    make_private_directory(home.run)
    create_private(home.checked).close()
    start(home, "work")
    return True


def _notify_service(home: Home) -> bool:
    from memkit.ipc import client

    try:
        client.notify(home, "work", {}, NOTIFY_SECONDS)
    except client.ServiceUnavailable:
        return False
    return True


def service_is_running(home: Home) -> bool:
    """Return whether a service runs, listening or about to."""
    return is_locked(home.service_lock)


def service_is_unreachable(home: Home) -> bool:
    """Return whether a service could not listen a short time ago. `home.service_problem` says why."""
    try:
        return abs(time.time() - os.path.getmtime(home.service_problem)) < RETRY_LISTEN_SECONDS
    except OSError:
        return False


def start_service(home: Home) -> bool:
    """Start the service for those who come next, if there is none; whether it was. Raises `OSError`."""
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
    failure = environment.last_failure(home.root)
    # A time in the future comes from a wrong clock.
    return failure is not None and 0 <= time.time() - failure.time < RETRY_BUILD_SECONDS


def start(home: Home, *arguments: str) -> None:
    """Start `memkit ARGUMENTS…` detached; it outlives the hook and Claude Code. Raise `OSError`."""
    import subprocess  # only a hook that starts a process needs it

    make_private_directory(home.log)
    limit_worker_log(home)
    with open(home.worker_log, "ab", opener=_open_private) as log:
        subprocess.Popen(
            [*memkit_command(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=home.root,
            env=worker_environment(home),
            close_fds=True,
            **processes.detached(),
        )


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


def limit_worker_log(home: Home) -> None:
    """Move a `worker.log` that is too long to `worker.log.1`. Raise `OSError`.

    Copy and empty it instead of renaming it: a service writes into it as long as it runs.
    """
    path = home.worker_log
    if os.path.exists(path) and os.path.getsize(path) > MAX_LOG_BYTES:
        import shutil  # only for a log that is too long

        with open(path, "rb+") as log, create_private(path + ".1") as kept:
            log.seek(-MAX_LOG_BYTES, os.SEEK_END)
            shutil.copyfileobj(log, kept)
            log.truncate(0)


def memkit_command() -> list[str]:
    """Return the command line of memkit: the plugin's `bin/memkit`, else this interpreter's package."""
    script = os.path.join(REPOSITORY, "bin", "memkit")
    if os.path.exists(script):
        return [sys.executable, "-I", script]
    return [sys.executable, "-I", "-m", "memkit"]


def worker_environment(home: Home) -> dict[str, str]:
    """Return the environment of a worker, which must not look like a part of a Claude Code session."""
    kept = outside_session(os.environ)
    kept["MEMKIT_HOME"] = home.root
    return kept


def outside_session(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without what marks a process as part of a Claude Code session.

    Keep the directory and login that Claude Code needs to run as the same user.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("CLAUDE") or name.startswith(_USER_VARIABLES)
    }
