"""What memkit runs in: its Python, its packages, and whether there is one version of it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import memkit
from memkit import environment
from memkit.doctor.claude_code import installed_plugins, plugin_version
from memkit.doctor.finding import Finding, Subject
from memkit.ipc.launch import REPOSITORY
from memkit.processes import find_program, no_window

OLDEST_PYTHON = (3, 9)
"""What the hooks need."""

ASK_SECONDS = 10.0

_ASK_VERSION = "import sys; print(*sys.version_info[:2])"


def check_packages(subject: Subject) -> Iterator[Finding]:
    """The packages that memkit needs, in the interpreter that runs it."""
    missing = sorted(name for name in _required() if not _is_installed(name))
    if not missing:
        return
    own = environment.environments(subject.home.root)
    is_own = os.path.realpath(sys.prefix).startswith(os.path.realpath(own) + os.sep)
    install = f"`{environment.install_command(*missing)}`"
    yield Finding(
        "packages-missing",
        "error",
        f"the Python environment {sys.prefix} lacks {', '.join(missing)}",
        "commands and the service fail where they need it",
        f"`mv {sys.prefix} {sys.prefix}.old`; the next memkit makes it again" if is_own else install,
    )


def _required() -> Iterator[str]:
    """The names of the packages that this memkit declares; environment markers are left to pip."""
    try:
        declared = environment.declared_requirements(REPOSITORY, "project", "dependencies")
    except FileNotFoundError:  # installed as a package
        declared = importlib.metadata.requires("memkit") or []
    for requirement in declared:
        if ";" not in requirement:
            yield re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def check_hook_python(subject: Subject) -> Iterator[Finding]:
    """The `python3` that the client runs the hooks with."""
    python = find_program("python3")
    meaning = "hooks cannot run: no session is remembered"
    if python is None:
        fix = "install Python 3.9 or newer as `python3`"
        if sys.platform == "win32":
            fix += ": that of the Microsoft Store, or a copy of another's python.exe beside it"
        yield Finding("python-missing", "error", "there is no `python3` on PATH", meaning, fix)
        return
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _ASK_VERSION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=True,
            **no_window(),
        )
        version = tuple(map(int, done.stdout.split()))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        fix = f"mend {python}, or put another `python3` before it on PATH"
        yield Finding("python-broken", "error", f"{python} cannot be run: {error}", meaning, fix)
        return
    if version < OLDEST_PYTHON:
        named = ".".join(map(str, version))
        fix = "put Python 3.9 or newer as `python3` first on PATH"
        yield Finding("python-old", "error", f"{python} is Python {named}", meaning, fix)


def check_versions(subject: Subject) -> Iterator[Finding]:
    """Whether plugin, package and command are of one version."""
    found = _installations()
    if len(set(found.values())) < 2:
        return
    shown = ", ".join(f"{version} in {place}" for place, version in sorted(found.items()))
    yield Finding(
        "versions-differ",
        "warning",
        f"several versions of memkit are installed: {shown}",
        "the newest one's service answers all of them, and ends an older one's",
        "`claude plugin update memkit@memkit`, and remove or update the others",
    )


def _installations() -> dict[str, str]:
    """The version of each memkit on this machine, by where it is."""
    found = {str(Path(memkit.__file__).parent): memkit.__version__}
    scripts = (os.path.join(place, "memkit") for place in os.get_exec_path())
    programs = {Path(script).resolve() for script in scripts if os.access(script, os.X_OK)}
    # A program in the directory `bin` of a plugin; others are not run to be asked.
    beside = {program.parent.parent for program in programs}
    for directory in {Path(REPOSITORY), *beside, *installed_plugins()}:
        version = plugin_version(directory)
        if version:
            found[str(directory)] = version
    for distribution in importlib.metadata.distributions(name="memkit"):
        found[str(distribution.locate_file(""))] = distribution.version
    return found
