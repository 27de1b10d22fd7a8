"""Run the commands that build an environment: log them, show progress, explain failures.

Standard library only, Python 3.9 syntax: runs in the user's `python3`.
"""

from __future__ import annotations

import collections
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from memkit.environment.interpreters import EnvironmentBuildError
from memkit.processes import detached, kill_group

NO_NETWORK_SECONDS = 10
"""The time limit for one connection. With its one retry, a missing network takes half a minute."""

# A repository can set variables for its sessions, and pip and uv read every option from variables: more
# packages, a prepared cache, no verification. The variables below are harmless where hashes are verified.
_INDEX_VARIABLES = frozenset(
    "PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX PIP_TRUSTED_HOST PIP_CERT "
    "PIP_CLIENT_CERT PIP_PROXY UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL "
    "UV_FIND_LINKS UV_NO_INDEX UV_INSECURE_HOST UV_OFFLINE UV_NATIVE_TLS UV_SYSTEM_CERTS".split()
)
_NETWORK_VARIABLES = frozenset(
    "PIP_DEFAULT_TIMEOUT PIP_TIMEOUT PIP_RETRIES UV_HTTP_TIMEOUT UV_HTTP_RETRIES".split()
)
_TRUST_VARIABLES = frozenset(
    "PIP_CERT SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE".split()
)
_SYSTEM_PATHS = ("/etc/", "/usr/", "/opt/", "/private/etc/", "/Library/")
"""Directories whose certificates are trusted without hashes: no repository can write there."""

_SETTINGS_VARIABLES = frozenset(["XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"])
"""Paths of settings files, which may name an index."""

_TOOL_PREFIXES = ("PIP_", "UV_", "PYTHON")
_WRONG_HASH = ("do not match the hashes", "hash mismatch")
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


def report(message: str) -> None:
    """Write one line to stderr."""
    _write(f"memkit: {message}\n")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:  # the reader is gone; the environment is wanted all the same
        pass


class CommandRunner:
    """Runs commands in a directory that is removed afterwards. A terminal shows their last line of output."""

    def __init__(self, directory: Path, log: TextIO, lock: int) -> None:
        """`lock` is a descriptor that the commands inherit: it is held as long as an orphan still writes."""
        self.directory = directory
        self._log = log
        self._lock = lock
        self._begun = time.monotonic()
        self._on_terminal = sys.stderr.isatty()

    @property
    def seconds(self) -> int:
        """Whole seconds since the first command."""
        return int(time.monotonic() - self._begun)

    def run(self, command: list[str], without_index_variables: bool = False) -> None:
        """Run one command to its end.

        `without_index_variables` is for packages without hashes: then only the user's settings files name
        the index. Raise `EnvironmentBuildError` if the command fails or cannot be started, and `OSError` if
        a disk is full. The command is never left running.
        """
        self._log.write("$ " + " ".join(command) + "\n")
        process = self._start(command, _variables(self.directory, without_index_variables))
        tail: collections.deque[str] = collections.deque(maxlen=20)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                self._log.write(line)
                tail.append(line.strip())
                self._show(line.strip())
            self._log.flush()
            status = process.wait()
        except BaseException:
            kill_group(process)
            raise
        finally:
            if self._on_terminal:
                _write("\r\x1b[K")
        if status:
            self._raise_cause([f"exit status {status}", *tail])

    def _show(self, line: str) -> None:
        if self._on_terminal:
            width = shutil.get_terminal_size().columns - 1
            _write(f"\r{f'memkit: {self.seconds:3} s  {line}'[:width]}\x1b[K")

    def _start(self, command: list[str], variables: dict[str, str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.directory,  # tools read settings and modules from the working directory
                env=variables,
                encoding="utf-8",
                errors="replace",
                pass_fds=(self._lock,) if os.name == "posix" else (),
                **detached(),  # Ctrl-C reaches only us, and we end the whole group
            )
        except OSError as error:
            message = f"memkit cannot run {command[0]}: {error.strerror}."
            raise EnvironmentBuildError(message) from error

    def _raise_cause(self, output: list[str]) -> None:
        if _mentions(output, _DISK_FULL):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if _mentions(output, _WRONG_HASH):
            cause = (
                "a downloaded package is not the tested one (its hash differs), so memkit did not install "
                "it; check which package index pip and uv use"
            )
        elif _mentions(output, _NO_NETWORK):
            cause = "the package index cannot be reached; check the network and proxy"
        else:
            lines = [line for line in output if line]
            cause = [*lines, *(line for line in lines if line.lower().startswith("error"))][-1]
        raise EnvironmentBuildError(
            f"memkit could not install its dependencies: {cause} (details: {self._log.name})."
        )


def _mentions(lines: Iterable[str], signs: Iterable[str]) -> bool:
    text = "\n".join(lines).lower()
    return any(sign in text for sign in signs)


def _variables(directory: Path, without_index_variables: bool) -> dict[str, str]:
    """Return the environment variables, without those that change the packages or their place."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if _is_kept(name, value, without_index_variables)
    }
    if os.environ.get("PIP_CONFIG_FILE") == os.devnull:  # it disables all settings files
        variables["PIP_CONFIG_FILE"] = os.devnull
    for name in ("TMPDIR", "TEMP", "TMP"):
        variables[name] = str(directory)
    variables.update(PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore")
    for name in ("PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT"):
        variables.setdefault(name, str(NO_NETWORK_SECONDS))
    for name in ("PIP_RETRIES", "UV_HTTP_RETRIES"):
        variables.setdefault(name, "1")
    return variables


def _is_kept(name: str, value: str, without_index_variables: bool) -> bool:
    if name == "XDG_CACHE_HOME":  # uv trusts its cache
        return False
    if without_index_variables:
        if name in _TRUST_VARIABLES:
            return os.path.realpath(value).startswith(_SYSTEM_PATHS)
        if name in _INDEX_VARIABLES or name in _SETTINGS_VARIABLES:
            return False
    known = name in _NETWORK_VARIABLES or name in _INDEX_VARIABLES
    return known or not name.startswith(_TOOL_PREFIXES)
