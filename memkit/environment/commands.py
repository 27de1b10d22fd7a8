"""Runs the commands that make an environment: logged, shown, explained when they fail.

Standard library only, Python 3.9 syntax: run by whatever `python3` the user has.
"""

from __future__ import annotations

import collections
import errno
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from memkit.environment.interpreters import EnvironmentBuildError
from memkit.environment.progress import Progress
from memkit.processes import apart, kill_group

NO_NETWORK_SECONDS = 10
"""For one connection, and again for its one retry: half a minute without a network."""

_INSTALLS_ELSEWHERE = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
_DISK_FULL = ("no space left on device", "disk quota exceeded")
_NO_NETWORK = (
    "newconnectionerror",
    "failed to establish a new connection",
    "connecttimeout",
    "read timed out",
    "name resolution",
    "dns error",
    "proxyerror",
    "sslerror",
    "error sending request",
)


class CommandRunner:
    """Runs commands in a directory that is removed afterwards, temporary files and all."""

    def __init__(self, directory: Path, progress: Progress, log: TextIO, lock: int) -> None:
        """`lock` is a descriptor the commands inherit: it is held while an orphan still writes."""
        self._directory = directory
        self._progress = progress
        self._log = log
        self._lock = lock

    def run(self, command: list[str]) -> None:
        """Run one command to its end.

        Raises `EnvironmentBuildError` if it fails or cannot be started, and `OSError` if a disk is
        full; a command is never left running.
        """
        self._log.write("$ " + " ".join(command) + "\n")
        process = self._start(command)
        tail: collections.deque[str] = collections.deque(maxlen=20)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                self._log.write(line)
                tail.append(line.strip())
                self._progress.show(line.strip())
            self._log.flush()
            status = process.wait()
        except BaseException:
            kill_group(process)
            raise
        if status:
            self._raise_cause([f"exit status {status}", *tail])

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._directory,  # not the user's: tools read settings and modules from there
                env=_variables(self._directory),
                encoding="utf-8",
                errors="replace",
                pass_fds=(self._lock,) if os.name == "posix" else (),
                **apart(),  # Ctrl-C reaches us alone, and we end the whole group
            )
        except OSError as error:
            message = f"memkit cannot run {command[0]}: {error.strerror}."
            raise EnvironmentBuildError(message) from error

    def _raise_cause(self, said: list[str]) -> None:
        if _mentions(said, _DISK_FULL):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if _mentions(said, _NO_NETWORK):
            cause = "the package index cannot be reached; check the network and proxy"
        else:
            lines = [line for line in said if line]
            cause = [*lines, *(line for line in lines if line.lower().startswith("error"))][-1]
        raise EnvironmentBuildError(
            f"memkit could not install its dependencies: {cause} (details: {self._log.name})."
        )


def _mentions(lines: Iterable[str], signs: Iterable[str]) -> bool:
    text = "\n".join(lines).lower()
    return any(sign in text for sign in signs)


def _variables(directory: Path) -> dict[str, str]:
    """The user's environment variables, without those that would install elsewhere."""
    variables = {k: v for k, v in os.environ.items() if k not in _INSTALLS_ELSEWHERE}
    for name in ("TMPDIR", "TEMP", "TMP"):
        variables[name] = str(directory)
    variables.update(PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore")
    for name in ("PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT"):
        variables.setdefault(name, str(NO_NETWORK_SECONDS))
    for name in ("PIP_RETRIES", "UV_HTTP_RETRIES"):
        variables.setdefault(name, "1")
    return variables
