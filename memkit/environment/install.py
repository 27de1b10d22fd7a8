"""Find a Python, create a virtual environment, and install into it, with uv or with venv and pip.

The commands are logged, a terminal shows their progress, and a failure is explained in one line.

Standard library only, Python 3.9 syntax: runs in the user's `python3`.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TextIO

from memkit.environment import interpreter
from memkit.errors import MemkitError
from memkit.processes import detached, find_program, kill_group, no_window

MINIMUM = (3, 10)
"""The oldest Python that memkit itself runs on."""

NEWEST_MINOR = 14
"""The newest 3.x with locked packages."""

_PROBE = """
import importlib.util, sys
has_venv = all(map(importlib.util.find_spec, ("venv", "ensurepip")))
print(*sys.version_info[:3], int(has_venv))
"""

FULL_BYTES = 20_000_000
"""With less free space than this, a failed command failed because the disk is full."""

_PIP_INDEX_VARIABLES = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"}

UV_LOCK = os.path.join(os.path.dirname(__file__), "uv.lock")
"""The lock of uv alone, which installs the other packages and goes with the build."""

# The locks are complete. pip would look for `uvicorn[standard]` beyond them, and refuse a newer release.
_LOCKED = ("--no-deps", "--require-hashes", "--only-binary", ":all:")

_UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
_PIP_ONLY = frozenset(["client-cert", "keyring-provider", "proxy"])

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
_TRUST_VARIABLES = frozenset("PIP_CERT SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE".split())
_SYSTEM_PATHS = ("/etc/", "/usr/", "/opt/", "/private/etc/", "/Library/")
"""Directories whose certificates are trusted without hashes: no repository can write there."""

_SETTINGS_VARIABLES = frozenset(["XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"])
"""Paths of settings files, which may name an index."""

_TOOL_PREFIXES = ("PIP_", "UV_", "PYTHON")


class EnvironmentBuildError(MemkitError):
    """A private Python environment cannot be built."""


class StillBuildingError(EnvironmentBuildError):
    """Another process is still building the environment."""


class Interpreter(NamedTuple):
    """A Python on this machine."""

    path: str
    version: tuple[int, int, int]
    has_venv: bool
    """Whether it can create environments; some distributions have that in another package."""


def install(directory: str, locks: Sequence[str], runner: CommandRunner) -> list[str]:
    """Create a virtual environment in `directory` and install the packages of `locks` by their hashes.

    Return the command that installs more packages. Raise `EnvironmentBuildError`, and `OSError` if the disk
    is full; then there may be remains in `directory`.
    """
    create, uv = _tool(directory)
    for command in create:
        runner.run(command)
    target, variables = interpreter(directory), dict[str, str]()
    pip_install = installs = pip_command(target, uv)
    # uv takes a fifth of pip's time, with its own download.
    if not uv and (found := _uv_variables(target, runner.directory)) is not None:
        tools, variables = runner.directory / "tools", found
        runner.run([*pip_install, *_LOCKED, "--target", str(tools), "-r", UV_LOCK])
        installs = pip_command(target, str(tools / "bin" / ("uv.exe" if os.name == "nt" else "uv")))
        installs += ["--no-cache", "--index-strategy", "unsafe-best-match"]  # safe: hashes name the packages
    files = [part for lock in locks for part in ("-r", lock)]
    runner.run([*installs, *_LOCKED, *files], variables=variables)
    return pip_install


def _tool(directory: str) -> tuple[list[list[str]], str]:
    """Return the commands that create the environment, and the uv on PATH if that shall install into it.

    Nothing compiles the packages: that takes 0.15 GB more. Raise `EnvironmentBuildError` without a tool.
    """
    uv = find_program("uv")
    python = find_interpreter(may_be_managed=uv is not None)
    target = interpreter(directory)
    has_venv = python is not None and python.has_venv
    if uv and not (has_venv and _has_pip_settings()):
        request = python.path if python else ">={}.{},<3.{}".format(*MINIMUM, NEWEST_MINOR + 1)
        return [[uv, "venv", "--no-project", "--python", request, directory]], uv
    assert python is not None
    if not has_venv:
        raise EnvironmentBuildError(
            f"memkit needs a virtual environment, and {python.path} cannot make one: install the "
            "package python{}.{}-venv (or uv).".format(*python.version)
        )
    # In two steps, because venv hides the output of a failed ensurepip.
    venv = [python.path, "-I", "-m", "venv", "--without-pip", directory]
    return [venv, [target, "-I", "-m", "ensurepip", "--default-pip"]], ""


def find_interpreter(may_be_managed: bool = False) -> Interpreter | None:
    """Return the running Python if the lock has packages for it, else the newest on PATH.

    Prefer one that has venv. If there is none, return None if uv may install one (`may_be_managed`), else
    raise `EnvironmentBuildError`.
    """
    usable, refused = [], []
    for path in _candidates():
        found = _probe(path)
        if found is None:
            continue
        if not MINIMUM <= found.version[:2] <= (3, NEWEST_MINOR):
            refused.append("{}.{}.{} ({})".format(*found.version, found.path))
        elif found.has_venv:
            return found
        else:
            usable.append(found)
    if usable:
        return usable[0]
    if may_be_managed:
        return None
    raise EnvironmentBuildError(
        "memkit needs Python {}.{} to 3.{}; found {}. Install one, or set MEMKIT_PYTHON to one that "
        "has memkit's dependencies.".format(*MINIMUM, NEWEST_MINOR, ", ".join(refused) or "none")
    )


def _candidates() -> Iterator[str]:
    if sys.executable:
        yield sys.executable
    for minor in range(NEWEST_MINOR, MINIMUM[1] - 1, -1):
        path = find_program(f"python3.{minor}")
        if path is not None:
            yield path
    if sys.platform == "win32":  # names have no version there; the launcher `py` finds the newest
        python, launcher = find_program("python"), find_program("py")
        if python is not None:
            yield python
        if launcher is not None:
            yield from _ask([launcher, "-3", "-I", "-c", "import sys; print(sys.executable)"]).splitlines()


def _probe(path: str) -> Interpreter | None:
    """Return the Python at `path`, or None if it does not work, like a version manager's empty launcher."""
    try:
        major, minor, micro, has_venv = map(int, _ask([path, "-I", "-c", _PROBE]).split())
    except ValueError:
        return None
    return Interpreter(path, (major, minor, micro), bool(has_venv))


def _ask(command: list[str], variables: dict[str, str] | None = None) -> str:
    try:
        answer: subprocess.CompletedProcess[bytes] = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20,
            check=True, env=variables, **no_window(),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(answer.stdout).strip()


def _has_pip_settings() -> bool:
    """uv does not read pip's settings, and a user who set an index for pip wants that index."""
    if _PIP_INDEX_VARIABLES.intersection(os.environ):
        return True
    if os.environ.get("PIP_CONFIG_FILE") == os.devnull:  # it disables all settings files
        return False
    user = os.path.expanduser("~")
    folders = ["/etc", "/etc/xdg/pip", "/Library/Application Support/pip", os.path.join(user, ".pip")]
    folders += [os.path.join(user, ".config", "pip"), os.path.join(user, "Library/Application Support/pip")]
    files = [os.path.join(folder, "pip.conf") for folder in folders]
    files += [os.path.join(os.environ.get(name, ""), "pip", "pip.ini") for name in ("APPDATA", "ProgramData")]
    return any(map(os.path.isfile, filter(os.path.isabs, files)))


def _uv_variables(python: str, directory: Path) -> dict[str, str] | None:
    """Return pip's settings of the index as uv's variables, or None if only pip can follow them."""
    variables = {}
    listing = _ask([python, "-I", "-m", "pip", "config", "list"], _variables(directory, False))
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in _PIP_ONLY:
            return None
        if name in _UV_NAMES:
            separator = "," if name == "find-links" else " "
            variables[_UV_NAMES[name]] = separator.join(value.strip("'\"").replace("\\n", " ").split())
    return variables


def pip_command(python: str, uv: str = "") -> list[str]:
    """Return the command that installs packages for the interpreter `python`: pip's, or that of `uv`."""
    if uv:
        return [uv, "pip", "install", "--python", python]
    options = ["--no-input", "--prefer-binary", "--no-compile", "--progress-bar=off"]
    return [python, "-I", "-m", "pip", "install", *options, "--no-warn-script-location"]


def report(message: str) -> None:
    """Write one line to stderr."""
    _write(f"memkit: {message}\n")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the reader is gone; the environment is wanted all the same
        sys.stderr.write(text)
        sys.stderr.flush()


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
        """Seconds since the first command."""
        return int(time.monotonic() - self._begun)

    @contextlib.contextmanager
    def signs_of_life(self, seconds: float) -> Iterator[None]:
        """Report at this interval that the commands still run, unless a terminal shows their output."""
        ended = threading.Event()

        def report_on() -> None:
            while not ended.wait(seconds):
                report(f"still building the environment ({self.seconds} s)")

        if not self._on_terminal:
            threading.Thread(target=report_on, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def run(
        self, command: list[str], without_index_variables: bool = False, seconds: float = math.inf,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Run one command to its end, but no longer than `seconds`; it is never left running.

        `without_index_variables` is for packages without hashes: then only the user's settings files name
        the index. `variables` are added. Raise `EnvironmentBuildError`, and `OSError` if a disk is full.
        """
        self._log.write("$ " + " ".join(command) + "\n")
        process = self._start(command, {**_variables(self.directory, without_index_variables), **variables})
        tail: collections.deque[str] = collections.deque(maxlen=20)
        expired = threading.Event()

        def stop() -> None:
            if process.poll() is None:
                expired.set()
                kill_group(process)

        limit = threading.Timer(max(0.0, min(seconds, threading.TIMEOUT_MAX)), stop)
        limit.daemon = True
        limit.start()
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
            limit.cancel()
            if self._on_terminal:
                _write("\r\x1b[K")
        if expired.is_set():
            raise EnvironmentBuildError(f"the installation took too long (details: {self._log.name}).")
        if status:
            self._raise_cause([f"exit status {status}", *tail])

    def _show(self, line: str) -> None:
        if self._on_terminal:
            width = shutil.get_terminal_size().columns - 1
            _write(f"\r{f'memkit: {self.seconds:3} s  {line}'[:width]}\x1b[K")

    def _start(self, command: list[str], variables: dict[str, str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                cwd=self.directory,  # tools read settings and modules from the working directory
                env=variables, encoding="utf-8", errors="replace",
                pass_fds=(self._lock,) if os.name == "posix" else (),
                **detached(),  # Ctrl-C reaches only us, and we end the whole group
            )  # fmt: skip
        except OSError as error:
            message = f"memkit cannot run {command[0]}: {error.strerror}."
            raise EnvironmentBuildError(message) from error

    def _raise_cause(self, output: list[str]) -> None:
        if shutil.disk_usage(self.directory).free < FULL_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        lines = [line for line in output if line]
        cause = [*lines, *(line for line in lines if line.lower().startswith("error"))][-1]
        raise EnvironmentBuildError(
            f"memkit could not install its dependencies: {cause}; check the network and the package index "
            f"(details: {self._log.name})."
        )


def _variables(directory: Path, without_index_variables: bool) -> dict[str, str]:
    variables = {
        name: value for name, value in os.environ.items() if _is_kept(name, value, without_index_variables)
    }
    if os.environ.get("PIP_CONFIG_FILE") == os.devnull:  # it disables all settings files
        variables["PIP_CONFIG_FILE"] = os.devnull
    variables.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(directory)))
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
