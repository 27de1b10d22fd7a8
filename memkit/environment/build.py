"""Makes a private Python environment: in its place, because scripts in it name their interpreter.

A marker next to it says that it is incomplete, so nobody uses half an environment. Of two processes
that want the same one, the second waits and uses what the first made; what a killed one left behind
is removed by the next.

Standard library only, Python 3.9 syntax: run by whatever `python3` the user has.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from memkit import environment
from memkit.environment.commands import CommandRunner
from memkit.environment.install import ADDED, add_again, install, installed_versions
from memkit.environment.interpreters import EnvironmentBuildError
from memkit.environment.progress import Progress, say
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.locks import try_lock
from memkit.paths import Home

NEEDED_BYTES = 700_000_000
"""What memkit's environment takes on disk: 0.63 GB measured (Python 3.11, Linux), and a margin."""


def ensure_environment(home_root: str, repository_root: str) -> str:
    """The interpreter of memkit's own environment, which is made if it is not there.

    Says on stderr what it does. Raises `EnvironmentBuildError`, and keeps the reason for
    `memkit.environment.last_failure`; raises `ValueError` as `environment_python` does.
    """
    python = environment.environment_python(home_root, repository_root)
    if python is not None:
        return python
    requirements = environment.declared_requirements(repository_root, "project", "dependencies")
    return make_environment(
        home_root,
        environment.stamp(environment.contents(repository_root)),
        [requirements],
        f"making its own Python environment in {home_root} (once; about a minute, 0.7 GB)",
        locks=[environment.lock_path(repository_root)],
    )


def make_environment(
    home_root: str,
    name: str,
    steps: list[list[str]],
    purpose: str,
    needed_bytes: int = NEEDED_BYTES,
    locks: Sequence[str] = (),
) -> str:
    """Make the environment `env/<name>` in `home_root` unless it is there; return its interpreter.

    `locks` are installed with their hashes; where they cannot be, and without any, `steps` are the
    arguments of successive `pip install` runs. `purpose` is said on stderr before
    the work begins. Older environments of the same kind (a name is `stamp` or `kind-stamp`) are
    removed then, but the youngest of them: a process started before the update may still run in it.
    Raises `EnvironmentBuildError`; after a failure or a signal nothing is left behind.
    """
    target = Path(environment.environments(home_root), name)
    python = environment.interpreter(str(target))
    known_failure = environment.last_failure(home_root)
    with _explained(home_root), _unwound_by_signals():
        make_private_directory(str(target.parent))
        with _locked(environment.lock_file(home_root)) as lock:
            if environment.is_usable(str(target)):
                return python
            failure = environment.last_failure(home_root)
            if failure is not None and failure != known_failure:  # of the builder we waited for
                raise EnvironmentBuildError(failure.message)
            _remove_leftovers(target.parent)
            _forget_failure(home_root)
            try:
                with _explained(home_root):
                    _build(home_root, target, steps, list(locks), Progress(purpose), needed_bytes, lock)
            except EnvironmentBuildError as error:
                _record_failure(home_root, str(error))
                raise
            _remove_older(target)
    return python


def _build(
    home_root: str,
    target: Path,
    steps: list[list[str]],
    locks: list[str],
    progress: Progress,
    needed_bytes: int,
    lock: int,
) -> None:
    if shutil.disk_usage(target.parent).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    log_path = Path(make_private_directory(Home(home_root).log), "environment.log")
    added, versions = _added(target)
    if os.path.lexists(target):  # its Python is gone
        _discard(target)
    marker = Path(environment.building_marker(str(target)))
    try:
        make_private_directory(str(marker))
        with open(log_path, "w", encoding="utf-8", opener=_open_private) as log:
            runner = CommandRunner(marker, progress, log, lock)
            way = install(str(target), steps, locks, runner)
            if locks:
                add_again(way, added, versions, locks[0], runner)
    except BaseException:
        if os.path.lexists(target):
            _discard(target)  # before its marker
        raise
    finally:
        progress.clear()
        if marker.exists():
            _discard(marker)
    say(f"the environment is ready ({progress.seconds} s)")


def _added(target: Path) -> tuple[dict[str, str], dict[str, str]]:
    """What was added to the environment before this one, and all it holds; versions by name."""
    for old in (target, *_others(target)):
        versions = installed_versions(str(old))
        if versions:
            return {name: versions[name] for name in ADDED if name in versions}, versions
    return {}, {}


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


@contextlib.contextmanager
def _locked(path: str) -> Iterator[int]:
    """Hold the lock file at `path`, waiting for another holder; yields its descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        if not try_lock(descriptor):
            say("another process is making the environment; waiting for it")
            while not try_lock(descriptor):
                time.sleep(0.2)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _unwound_by_signals() -> Iterator[None]:
    """Let the signals that end a process unwind it first, as Ctrl-C does."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    caught = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def _explained(home_root: str) -> Iterator[None]:
    """Turn what the file system refuses into a line for people."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = (
                f"memkit's environment needs 0.7 GB in {home_root}, where the disk is full: "
                "make room, or set MEMKIT_HOME to another disk."
            )
        else:
            message = (
                f"memkit cannot write to {error.filename or home_root} ({error.strerror}): "
                "make it writable, or set MEMKIT_HOME to a directory that is."
            )
        raise EnvironmentBuildError(message) from error


def _record_failure(home_root: str, message: str) -> None:
    record = json.dumps({"time": time.time(), "message": message})
    try:
        write_durably(environment.failure_file(home_root), record.encode())
    except OSError:  # the disk is full or read-only, which the person is being told
        pass


def _forget_failure(home_root: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        Path(environment.failure_file(home_root)).unlink()


def _leftover_name(parent: Path) -> Path:
    return parent / (environment.BUILDING + secrets.token_hex(4))


def _remove_leftovers(parent: Path) -> None:
    """Remove what killed builders left; the caller holds the lock, so none of it is in use."""
    for path in list(parent.glob(environment.BUILDING + "*")):
        incomplete = parent / path.name[len(environment.BUILDING) :]
        if os.path.lexists(incomplete):
            _discard(incomplete)  # before its marker
        shutil.rmtree(path, ignore_errors=True)


def _remove_older(target: Path) -> None:
    for path in _others(target)[1:]:
        _discard(path)


def _others(target: Path) -> list[Path]:
    """The other environments of the kind of `target`, the newest first."""
    kind = target.name.rpartition("-")[0]
    others = [
        path
        for path in target.parent.glob("[!.]*")
        if path != target and path.is_dir() and path.name.rpartition("-")[0] == kind
    ]
    return sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)


def _discard(path: Path) -> None:
    """Remove an environment; killed half-way, it is a leftover and never looks usable."""
    doomed = path.rename(_leftover_name(path.parent))
    shutil.rmtree(doomed, ignore_errors=True)
