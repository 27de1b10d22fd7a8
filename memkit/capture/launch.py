"""Hands work over: to the service, which is told or started, or to a worker that is started for it.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Dict, List, Mapping

from memkit import environment, pending, processes
from memkit.capture import spool
from memkit.file_lock import is_locked
from memkit.paths import PRIVATE_FILE, Home, create_private, make_private_directory

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory that holds the package: the plugin's root, or site-packages."""

NOTIFY_SECONDS = 0.05
"""What telling the service may cost a hook."""

MAX_LOG_BYTES = 1024 * 1024
"""A `worker.log`, which holds what these processes said, becomes `worker.log.1` when it is longer."""

_OF_THE_USER = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_",
    "CLAUDE_CODE_SKIP_",
)
"""How the client's variables begin that say who the user is; all others are of one session."""

RETRY_BUILD_SECONDS = 600.0
"""Hooks do not start another build of the environment so soon after a failed one."""


def worker_is_running(home: Home) -> bool:
    """Whether a worker, an import or an index pass is at it, or its environment is being built."""
    return is_locked(home.index_lock) or is_locked(environment.lock_file(home.root))


def work_waits(home: Home) -> bool:
    """Whether events wait in the spool, or changed memory waits to be indexed."""
    return spool.has_work(home) or pending.exists(home)


def hand_over(home: Home, with_service: bool) -> bool:
    """See to it that waiting work is done; whether a process was started for it. Raises `OSError`."""
    if not work_waits(home) or (with_service and _is_told(home)):
        return False
    if worker_is_running(home) or environment_failed_lately(home):
        return False
    if with_service and service_is_running(home):
        return False  # it begins, and looks into the spool first, or ends, and looks into it last
    start(home, *(["service", "run"] if with_service else ["work"]))
    return True


def _is_told(home: Home) -> bool:
    from memkit.service import client

    try:
        client.notify(home, "work", {}, NOTIFY_SECONDS)
    except client.ServiceUnavailable:
        return False
    return True


def service_is_running(home: Home) -> bool:
    """Whether there is a service, listening or about to."""
    return is_locked(home.service_lock)


def start_service(home: Home) -> bool:
    """Start the service for those who come next, if there is none; whether it was. Raises `OSError`."""
    if service_is_running(home) or not environment_is_ready(home):
        return False
    start(home, "service", "run")
    return True


def environment_is_ready(home: Home) -> bool:
    """Whether memkit's own Python environment is there; a worker builds it otherwise."""
    return environment.environment_python(home.root, REPOSITORY) is not None


def environment_failed_lately(home: Home) -> bool:
    """Whether building the environment failed so recently that another try would be a nuisance."""
    if environment_is_ready(home):
        return False
    failure = environment.last_failure(home.root)
    return failure is not None and time.time() - failure.time < RETRY_BUILD_SECONDS


def start(home: Home, *arguments: str) -> None:
    """Start `memkit ARGUMENTS…` detached; it outlives the hook and the client. Raises `OSError`."""
    import subprocess  # only a hook that starts something pays for this import

    make_private_directory(home.log)
    bound_worker_log(home)
    with open(home.worker_log, "ab", opener=_open_private) as log:
        subprocess.Popen(
            [*memkit_command(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=home.root,
            env=worker_environment(home),
            close_fds=True,
            **processes.apart(),
        )


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


def bound_worker_log(home: Home) -> None:
    """Begin `worker.log` anew if it is too long; the last one is kept as `worker.log.1`. Raises `OSError`.

    It is copied and emptied, not renamed: a service writes into it as long as it lives.
    """
    path = home.worker_log
    if os.path.exists(path) and os.path.getsize(path) > MAX_LOG_BYTES:
        import shutil  # only for a log that is too long

        with open(path, "rb+") as log, create_private(path + ".1") as kept:
            log.seek(-MAX_LOG_BYTES, os.SEEK_END)
            shutil.copyfileobj(log, kept)
            log.truncate(0)


def memkit_command() -> List[str]:
    """The command line of memkit: the plugin's `bin/memkit`, else this interpreter's package."""
    script = os.path.join(REPOSITORY, "bin", "memkit")
    if os.path.exists(script):
        return [sys.executable, "-I", script]
    return [sys.executable, "-I", "-m", "memkit"]


def worker_environment(home: Home) -> Dict[str, str]:
    """The environment of a worker, which must not look like a part of the client's session."""
    kept = outside_session(os.environ)
    kept["MEMKIT_HOME"] = home.root
    return kept


def outside_session(environ: Mapping[str, str]) -> Dict[str, str]:
    """`environ` without what marks a process as part of the client's session.

    What a client started from there needs to be the same user's stays: its directory and log-in.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("CLAUDE") or name.startswith(_OF_THE_USER)
    }
