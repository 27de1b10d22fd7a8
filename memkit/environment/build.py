"""Build a private Python environment, in its final directory because its scripts name their interpreter.

A marker next to it keeps processes from using half an environment. Of two processes that want the same one,
the second waits and uses the result of the first. The next build removes what a killed one left.

Standard library only, Python 3.9 syntax: runs in the user's `python3`.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import math
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from memkit import environment
from memkit.environment.extras import install_extras, packages, wish, wished
from memkit.environment.install import (
    CommandRunner,
    EnvironmentBuildError,
    StillBuildingError,
    install,
    pip_command,
    report,
)
from memkit.errors import NewerFileError
from memkit.files import PRIVATE_FILE, create_private, make_private_directory
from memkit.paths import Home
from memkit.processes import find_program, try_lock
from memkit.state import write_state

NEEDED_BYTES = 500_000_000
"""The free disk space to build memkit's environment: 0.35 GB measured (Python 3.11, Linux), and downloads."""

SIGN_SECONDS = 10.0
"""Time between two lines of progress where no terminal shows each step."""


def ensure_environment(home_root: str, repository_root: str, wait_seconds: float = math.inf) -> str:
    """Return the interpreter of memkit's own environment; build it if it is missing.

    Report progress on stderr. Wait at most `wait_seconds` for another process that builds it; then raise
    `StillBuildingError`. Raise `EnvironmentBuildError`, and record the reason for
    `memkit.environment.last_failure`. Raise `ValueError` as `environment_python` does.
    """
    python = environment.environment_python(home_root, repository_root)
    if python is not None:
        return python
    return make_environment(
        home_root,
        os.path.basename(environment.environment_directory(home_root, repository_root)),
        f"building its Python environment in {home_root} (once; about a minute, 0.35 GB)",
        [environment.lock_path(repository_root)],
        wait_seconds,
    )


def add_extras(home_root: str, extras: Sequence[str]) -> None:
    """Install extras into the environment of this process, which memkit made, and record the wish.

    Raise `EnvironmentBuildError`, `NewerFileError`.
    """
    parent = Path(environment.environments(home_root))
    with _explained(home_root), _unwound_by_signals():
        make_private_directory(str(parent))
        with _locked(environment.lock_file(home_root), math.inf) as lock:
            wish(home_root, extras)  # first: the doctor reports what is still missing then
            uv = "" if importlib.util.find_spec("pip") else find_program("uv")
            if uv is None:
                raise EnvironmentBuildError(f"{sys.prefix} was made with uv, which is gone: install it.")
            with _commands(home_root, parent / f"{environment.BUILDING}extras", lock) as runner:
                report(f"installing {_names(extras)}")
                pip_install = pip_command(sys.executable, uv)
                failed = install_extras(
                    sys.prefix, extras, pip_install, runner, without_index_variables=False
                )
    if failed:
        raise EnvironmentBuildError(next(iter(failed.values())))


def make_environment(
    home_root: str, name: str, purpose: str, locks: Sequence[str], wait_seconds: float = math.inf
) -> str:
    """Build the environment `env/<name>` in `home_root` unless it exists; return its interpreter.

    Then remove older environments of the same kind (a name is `stamp` or `kind-stamp`), except the youngest:
    a process started before the update may still use it. `locks` are as for `install`; `purpose` is reported
    first. Also install the extras that the user wants; those that cannot be had now stay out. Raise
    `EnvironmentBuildError`. A failure or a signal leaves nothing.
    """
    target = Path(environment.environments(home_root), name)
    python = environment.interpreter(str(target))
    known_failure = environment.last_failure(home_root)
    with _explained(home_root), _unwound_by_signals():
        make_private_directory(str(target.parent))
        with _locked(environment.lock_file(home_root), wait_seconds) as lock:
            if environment.is_usable(str(target)):
                return python
            failure = environment.last_failure(home_root)
            if failure and failure != known_failure:
                raise EnvironmentBuildError(failure.message)  # the process that we waited for failed
            _remove_leftovers(target.parent)
            Path(environment.failure_file(home_root)).unlink(missing_ok=True)
            report(purpose)
            try:
                with _explained(home_root):
                    _build(home_root, target, locks, lock)
            except EnvironmentBuildError as error:
                with contextlib.suppress(OSError):  # the disk is full or read-only, as the error says
                    record = {"time": time.time(), "message": str(error)}
                    write_state(environment.failure_file(home_root), 1, record)
                raise
            for path in _others(target)[1:]:
                _discard(path)
    return python


def _build(home_root: str, target: Path, locks: Sequence[str], lock: int) -> None:
    if shutil.disk_usage(target.parent).free < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    extras: list[str] = []
    with contextlib.suppress(NewerFileError):  # the update matters more
        extras = wished(home_root)
    if os.path.lexists(target):  # its Python is gone
        _discard(target)
    marker = Path(environment.building_marker(str(target)))
    with _commands(home_root, marker, lock) as runner:
        try:
            pip_install = install(str(target), locks, runner)
            if extras:
                report(f"installing {_names(extras)} again")
            for extra in install_extras(str(target), extras, pip_install, runner):
                report(f"could not install {extra} again; you can run `memkit setup --with {extra}`")
        except BaseException:
            if os.path.lexists(target):
                _discard(target)  # before its marker
            raise
    report(f"the environment is ready ({runner.seconds} s)")


@contextlib.contextmanager
def _commands(home_root: str, directory: Path, lock: int) -> Iterator[CommandRunner]:
    log_path = Path(make_private_directory(Home(home_root).log), "environment.log")
    try:
        make_private_directory(str(directory))
        create_private(str(log_path)).close()
        with open(log_path, "w", encoding="utf-8") as log:
            runner = CommandRunner(directory, log, lock)
            with runner.signs_of_life(SIGN_SECONDS):
                yield runner
    finally:
        if directory.exists():
            _discard(directory)


def _names(extras: Sequence[str]) -> str:
    return ", ".join(name for extra in extras for name in packages(extra))


@contextlib.contextmanager
def _locked(path: str, wait_seconds: float) -> Iterator[int]:
    """Hold the lock file at `path`; yield its descriptor. Raise `StillBuildingError` after `wait_seconds`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        if not try_lock(descriptor):
            report("waiting for another process that is building the environment (once; about a minute)")
            begun = signed = time.monotonic()
            while not try_lock(descriptor):
                now = time.monotonic()
                if now - begun >= wait_seconds:
                    raise StillBuildingError(
                        "memkit is still building its Python environment (once; about a minute): "
                        "it cannot search or write yet."
                    )
                if now - signed >= SIGN_SECONDS:
                    report(f"still building the environment ({now - begun:.0f} s)")
                    signed = now
                time.sleep(0.2)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _unwound_by_signals() -> Iterator[None]:
    """Turn the signals that end a process into `SystemExit`, so that it cleans up first."""

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
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = (
                f"memkit's environment needs 0.5 GB in {home_root}, where the disk is full: "
                "free some space; or move that directory to another disk, and set MEMKIT_HOME to it."
            )
        else:
            message = (
                f"memkit cannot write to {error.filename or home_root} ({error.strerror}): "
                "make it writable, or set MEMKIT_HOME to a directory that is."
            )
        raise EnvironmentBuildError(message) from error


def _remove_leftovers(parent: Path) -> None:
    """Remove what killed builds left. The caller holds the lock, so none of it is in use."""
    for path in list(parent.glob(environment.BUILDING + "*")):
        incomplete = parent / path.name[len(environment.BUILDING) :]
        if os.path.lexists(incomplete):
            _discard(incomplete)  # before its marker
        shutil.rmtree(path, ignore_errors=True)


def _others(target: Path) -> list[Path]:
    kind = target.name.rpartition("-")[0]
    found = (path for path in target.parent.glob("[!.]*") if path != target and path.is_dir())
    others = [path for path in found if path.name.rpartition("-")[0] == kind]
    return sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)


def _discard(path: Path) -> None:
    """Remove an environment. If it is killed half-way, the rest is a leftover and never looks usable."""
    discarded = path.rename(path.parent / (environment.BUILDING + secrets.token_hex(4)))
    shutil.rmtree(discarded, ignore_errors=True)
