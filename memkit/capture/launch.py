"""Starts the detached worker, when there is work and none runs.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import sys
import time
from types import ModuleType
from typing import Dict, List, Optional

from memkit import environment, pending
from memkit.capture import spool
from memkit.paths import Home, make_private_directory

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory that holds the package: the plugin's root, or site-packages."""

RETRY_BUILD_SECONDS = 600.0
"""Hooks do not start another build of the environment so soon after a failed one."""

fcntl: Optional[ModuleType]
try:
    import fcntl
except ImportError:  # Windows: the worker itself finds the lock taken and leaves
    fcntl = None


def is_locked(path: str) -> bool:
    """Whether some process holds the lock file at `path` at this moment."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def worker_is_running(home: Home) -> bool:
    """Whether a worker, an import or an index pass is at it, or its environment is being built."""
    return is_locked(home.index_lock) or is_locked(environment.lock_file(home.root))


def work_waits(home: Home) -> bool:
    """Whether events wait in the spool, or changed memory waits to be indexed."""
    return spool.has_work(home) or pending.exists(home)


def start_worker_if_needed(home: Home) -> bool:
    """Start `memkit work` in a session of its own if work waits, none runs, and it can run."""
    if not work_waits(home) or worker_is_running(home) or environment_failed_lately(home):
        return False
    start_worker(home)
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


def start_worker(home: Home) -> None:
    """Start `memkit work` detached; it outlives the hook and the client. Raises `OSError`."""
    import subprocess  # only a hook that starts a worker pays for this import

    make_private_directory(home.log)
    with open(os.path.join(home.log, "worker.log"), "ab") as log:
        subprocess.Popen(
            worker_command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=home.root,
            env=worker_environment(home),
            start_new_session=True,
            close_fds=True,
        )


def worker_command() -> List[str]:
    """The command line of a worker: through the plugin's `bin/memkit`, else this interpreter's package."""
    script = os.path.join(REPOSITORY, "bin", "memkit")
    if os.path.exists(script):
        return [sys.executable, script, "work"]
    return [sys.executable, "-m", "memkit", "work"]


def worker_environment(home: Home) -> Dict[str, str]:
    """The environment of a worker, which must not look like a part of the client's session."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CLAUDE")}
    kept["MEMKIT_HOME"] = home.root
    return kept
