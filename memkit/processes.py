"""Find, start, and kill other processes, and see which locks they hold, on Windows too.

The lock files are those of the `filelock` package, which hooks and the launcher run without.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import CompletedProcess, Popen

MAX_OUTPUT_BYTES = 4_000_000
"""The longest output of a program that `run_to_end` accepts, on stdout and on stderr."""

_POLL_SECONDS = 0.02

_running: list[Popen[Any]] = []
"""The programs that `run_to_end` has started and that have not ended."""

# `subprocess` has these names on Windows only. With DETACHED_PROCESS instead, each console program that such
# a process runs (git, claude) would open a window.
_CREATE_NEW_PROCESS_GROUP = 0x00000200
_CREATE_NO_WINDOW = 0x08000000


def no_window() -> dict[str, Any]:
    """Return the `subprocess` arguments that keep a child from opening a console window."""
    return {"creationflags": _CREATE_NO_WINDOW} if sys.platform == "win32" else {}


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program on `PATH`, or on `path`, None if there is none.

    Ignore the current directory, where Windows looks first: it may be a stranger's repository.
    """
    endings = [""]
    if sys.platform == "win32":
        endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
    given = os.environ.get("PATH", os.defpath) if path is None else path
    for directory in filter(os.path.isabs, given.split(os.pathsep)):
        for ending in endings:
            found = os.path.join(directory, name + ending)
            if os.path.isfile(found) and os.access(found, os.X_OK):
                return found
    return None


def detached() -> dict[str, Any]:
    """Return the `subprocess` arguments for a child that survives Ctrl-C and the end of the terminal.

    It leads a process group, which `kill_group` kills, and may outlive this process.
    """
    if sys.platform == "win32":
        return {"creationflags": _CREATE_NO_WINDOW | _CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def kill_group(process: Popen[Any]) -> None:
    """Kill a child that was started with `detached`, and all that it started. Wait for its end."""
    if sys.platform == "win32":
        if process.poll() is None:  # its id may belong to another process by now
            _kill_tree(process.pid)
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # all gone; macOS raises the latter for zombies
            pass
    process.kill()
    process.wait()


def kill_running() -> None:
    """Kill the programs that other threads run to their end. For a process that is about to exit."""
    for process in list(_running):
        kill_group(process)


class TooMuchOutputError(Exception):
    """A program wrote more than `MAX_OUTPUT_BYTES`."""


def run_to_end(
    command: Sequence[str],
    environ: Mapping[str, str],
    directory: str,
    timeout: float,
    stdin: str = "",
) -> CompletedProcess[str]:
    """Run `command` in `directory` for at most `timeout` seconds and return its output.

    Kill its whole process group in any case, also if SIGTERM or SIGHUP ends this process: in the main thread,
    raise `SystemExit` then. A service calls `kill_running`. Raise `subprocess.TimeoutExpired` or
    `TooMuchOutputError`, and `OSError` or `ValueError` if the program cannot be started.
    """
    import subprocess
    from tempfile import TemporaryFile

    # Files, unlike pipes, never block the program, and need no thread to read them.
    with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
        given.write(stdin.encode("utf-8", "replace"))
        given.seek(0)
        with _noted_signals() as signals:
            process = subprocess.Popen(
                command,
                cwd=directory,
                env=dict(environ),
                stdin=given,
                stdout=output,
                stderr=errors,
                **detached(),
            )
            _running.append(process)
            end = time.monotonic() + timeout
            try:
                while process.poll() is None and time.monotonic() < end and not signals:
                    _check_size(output, errors)
                    time.sleep(_POLL_SECONDS)
                if process.returncode is None and not signals:
                    raise subprocess.TimeoutExpired(command, timeout)
            finally:
                kill_group(process)
                _running.remove(process)
        if signals:
            sys.exit(128 + signals[0])
        _check_size(output, errors)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return subprocess.CompletedProcess(command, process.returncode, *texts)


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """Yield a list that gets the signals that would end this process. In other threads it stays empty."""
    noted: list[int] = []
    before = {}
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        with suppress(ValueError):  # not the main thread
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, lambda which, _: noted.append(which))
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_size(*files: IO[bytes]) -> None:
    for file in files:
        if os.fstat(file.fileno()).st_size > MAX_OUTPUT_BYTES:
            raise TooMuchOutputError


def _kill_tree(number: int) -> None:
    """Kill a Windows process and its children. Without `taskkill` the children survive."""
    import subprocess

    system = os.environ.get("SYSTEMROOT") or "C:\\Windows"
    try:
        subprocess.run(
            [f"{system}\\System32\\taskkill.exe", "/F", "/T", "/PID", str(number)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            **no_window(),
        )
    except OSError:  # not on PATH
        pass


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if it is locked already. Raise `OSError`."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0, os.SEEK_SET)  # it locks the byte at the current position
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def is_locked(path: str) -> bool:
    """Return whether a process holds the lock file at `path` now."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
