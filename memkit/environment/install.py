"""Creates a virtual environment and installs into it, with whatever the machine has for that.

Standard library only, Python 3.9 syntax: run by whatever `python3` the user has.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memkit.environment import interpreter
from memkit.environment.commands import CommandRunner
from memkit.environment.interpreters import (
    MINIMUM,
    NEWEST_MINOR,
    EnvironmentBuildError,
    find_interpreter,
    has_locked_wheels,
)
from memkit.environment.progress import say
from memkit.processes import find_program

_PIP_INDEX_VARIABLES = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"}

ADDED = ("openai", "google-genai", "voyageai", "ollama", "sentence-transformers", "matplotlib")
"""Packages that memkit tells people to install; a new environment gets those the old one had."""

_LOCKED_OPTIONS = ["--require-hashes", "--only-binary", ":all:"]


class Way(NamedTuple):
    """Commands that create a virtual environment, and how the one that installs into it begins."""

    create: list[list[str]]
    pip_install: list[str]


def install(
    directory: str, steps: list[list[str]], locks: list[str], runner: CommandRunner
) -> Way:
    """Make a virtual environment in `directory`, and install the packages of `locks`, by their hashes.

    Where these have no wheels for the Python, and without locks, `pip install` is run with each of
    `steps`. uv is used if there is one, else venv and pip, else virtualenv; when one of them fails,
    the next is tried. Returns the way that succeeded. Raises `EnvironmentBuildError`, and `OSError`
    if a disk is full; then, and on a signal, something may be left in `directory`.
    """
    failure: EnvironmentBuildError | None = None
    for way in _ways(directory):
        try:
            for command in way.create:
                runner.run(command)
            _install_packages(directory, way.pip_install, steps, locks, runner)
            return way
        except EnvironmentBuildError as error:  # uv, say, knows nothing of an index set in pip.conf
            failure = error
            shutil.rmtree(directory, ignore_errors=True)
    assert failure is not None
    raise failure


def _install_packages(
    directory: str,
    pip_install: list[str],
    steps: list[list[str]],
    locks: list[str],
    runner: CommandRunner,
) -> None:
    if locks and all(map(os.path.exists, locks)) and has_locked_wheels(interpreter(directory)):
        files = [part for lock in locks for part in ("-r", lock)]
        runner.run([*pip_install, *_LOCKED_OPTIONS, *files])
        return
    if locks:
        say(
            "there are no locked packages for this Python or platform: installing the versions that "
            "pyproject.toml allows, unverified; index settings in environment variables are ignored"
        )
    for step in steps:
        runner.run([*pip_install, *step], without_index_variables=bool(locks))


def add_again(
    way: Way, added: dict[str, str], versions: dict[str, str], lock: str, runner: CommandRunner
) -> None:
    """Install `added` (versions by name) again, with the versions of `lock` and, else, `versions`.

    A failure is said and logged: the environment is complete without them.
    """
    if not added:
        return
    names = ", ".join(f"{name}=={version}" for name, version in added.items())
    say(f"installing again what was added to the environment before: {names}")
    locked = locked_versions(lock)
    lines = list(locked.values())
    lines += [f"{name}=={version}" for name, version in versions.items() if name not in locked]
    constraints = os.path.join(runner.directory, "constraints.txt")
    with open(constraints, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    command = [*way.pip_install, "--only-binary", ":all:", "--constraint", constraints, *added]
    try:
        runner.run(command, without_index_variables=True)
    except EnvironmentBuildError as error:
        say(f"{names} could not be installed again; what needs it names the command. {error}")


def installed_versions(directory: str) -> dict[str, str]:
    """The packages in the virtual environment `directory`: versions by normalized names."""
    pattern = ("Lib",) if os.name == "nt" else ("lib", "python3.*")
    found = {}
    for path in Path(directory).glob(os.path.join(*pattern, "site-packages", "*.dist-info")):
        name, _, version = path.name[: -len(".dist-info")].rpartition("-")
        if re.fullmatch(r"[A-Za-z0-9._]+", name) and re.fullmatch(r"[A-Za-z0-9.+!_]+", version):
            found[normalized(name)] = version
    return found


def locked_versions(lock: str) -> dict[str, str]:
    """What `lock` pins, by normalized names: lines of requirements, without hashes."""
    found: dict[str, str] = {}
    if os.path.exists(lock):
        with open(lock, encoding="utf-8") as file:
            for line in file:
                name, pinned, _ = line.partition("==")
                if pinned and not line.startswith((" ", "#")):
                    key, one = normalized(name), line.rstrip().rstrip("\\").rstrip()
                    found[key] = f"{found[key]}\n{one}" if key in found else one
    return found


def normalized(name: str) -> str:
    """The name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _ways(directory: str) -> Iterator[Way]:
    """For each tool there is, how it makes the environment; raises if there is none."""
    uv, virtualenv = find_program("uv"), find_program("virtualenv")
    python = find_interpreter(may_be_managed=uv is not None)
    target = interpreter(directory)
    pip_install = [target, "-I", "-m", "pip", "install", "--no-input", "--prefer-binary"]
    pip_install += ["--progress-bar=off", "--no-warn-script-location"]
    # uv reads none of pip's settings, and whoever set an index for pip wants that one.
    if uv and (python is None or _PIP_INDEX_VARIABLES.isdisjoint(os.environ)):
        request = python.path if python else ">={}.{},<3.{}".format(*MINIMUM, NEWEST_MINOR + 1)
        create = [uv, "venv", "--no-project", "--python", request, directory]
        yield Way([create], [uv, "pip", "install", "--compile-bytecode", "--python", target])
    if python and python.has_venv:
        # In two steps, because venv keeps to itself what ensurepip says when it fails.
        venv = [python.path, "-I", "-m", "venv", "--without-pip", directory]
        yield Way([venv, [target, "-I", "-m", "ensurepip", "--default-pip"]], pip_install)
    elif python and virtualenv:
        yield Way([[virtualenv, "--python", python.path, directory]], pip_install)
    elif python and not uv:
        raise EnvironmentBuildError(
            f"memkit needs a virtual environment, and {python.path} cannot make one: install the "
            "package python{}.{}-venv (or uv, or virtualenv).".format(*python.version)
        )
