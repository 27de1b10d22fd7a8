"""Create a virtual environment and install into it, with the tools that the machine has.

Standard library only, Python 3.9 syntax: runs in the user's `python3`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from memkit.environment import interpreter
from memkit.environment.commands import CommandRunner, report
from memkit.environment.interpreters import (
    MINIMUM,
    NEWEST_MINOR,
    EnvironmentBuildError,
    find_interpreter,
    has_locked_wheels,
)
from memkit.processes import find_program

_PIP_INDEX_VARIABLES = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"}

EXTRA_PACKAGES = ("openai", "google-genai", "voyageai", "ollama", "sentence-transformers", "matplotlib")
"""Packages that memkit advises users to install; a new environment gets those of the old one."""

_LOCKED_OPTIONS = ["--require-hashes", "--only-binary", ":all:"]


def install(
    directory: str, steps: list[list[str]], locks: list[str], runner: CommandRunner
) -> list[str]:
    """Create a virtual environment in `directory` and install the packages of `locks` by their hashes.

    Without locks, or without wheels for this Python in them, run `pip install` with each of `steps`. Use uv
    if there is one; if that is missing or fails, use venv and pip. Return the command that installs
    packages. Raise `EnvironmentBuildError`, and `OSError` if a disk is full. After an error or a signal there
    may be remains in `directory`.
    """
    failure: EnvironmentBuildError | None = None
    for create, pip_install in _tools(directory):
        try:
            for command in create:
                runner.run(command)
            _install_packages(directory, pip_install, steps, locks, runner)
            return pip_install
        except EnvironmentBuildError as error:  # uv, for example, ignores an index set in pip.conf
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
        report(
            "there are no locked packages for this Python or platform: installing the versions that "
            "pyproject.toml allows, unverified; index settings in environment variables are ignored"
        )
    for step in steps:
        runner.run([*pip_install, *step], without_index_variables=bool(locks))


def install_extra(
    pip_install: list[str],
    names: list[str],
    versions: dict[str, str],
    lock: str,
    runner: CommandRunner,
) -> None:
    """Install `names`, with the versions of `lock` or, for packages that are not in it, of `versions`.

    Report and log a failure; the environment is complete without them.
    """
    wanted = ", ".join(f"{name}=={versions[name]}" for name in names)
    report(f"installing again what was added to the environment before: {wanted}")
    locked = locked_versions(lock)
    lines = list(locked.values())
    lines += [f"{name}=={version}" for name, version in versions.items() if name not in locked]
    constraints = os.path.join(runner.directory, "constraints.txt")
    with open(constraints, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    command = [*pip_install, "--only-binary", ":all:", "--constraint", constraints, *names]
    try:
        runner.run(command, without_index_variables=True)
    except EnvironmentBuildError as error:
        report(f"{wanted} could not be installed again; features that need it print the command. {error}")


def installed_versions(directory: str) -> dict[str, str]:
    """Return the packages in the virtual environment `directory`: versions by normalized names."""
    pattern = ("Lib",) if os.name == "nt" else ("lib", "python3.*")
    found = {}
    for path in Path(directory).glob(os.path.join(*pattern, "site-packages", "*.dist-info")):
        name, _, version = path.name[: -len(".dist-info")].rpartition("-")
        if re.fullmatch(r"[A-Za-z0-9._]+", name) and re.fullmatch(r"[A-Za-z0-9.+!_]+", version):
            found[normalized(name)] = version
    return found


def locked_versions(lock: str) -> dict[str, str]:
    """Return the pins of `lock`, by normalized names: lines of requirements, without hashes."""
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
    """Return the name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _tools(directory: str) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield, for each tool, the commands to create an environment and the command to install into it.

    None compiles the packages: that would take 0.15 GB more on disk, and memkit imports a small part of them.
    Raise `EnvironmentBuildError` if there is no tool.
    """
    uv = find_program("uv")
    python = find_interpreter(may_be_managed=uv is not None)
    target = interpreter(directory)
    # uv ignores pip's settings, and a user who set an index for pip wants that index.
    if uv and (python is None or _PIP_INDEX_VARIABLES.isdisjoint(os.environ)):
        request = python.path if python else ">={}.{},<3.{}".format(*MINIMUM, NEWEST_MINOR + 1)
        create = [uv, "venv", "--no-project", "--python", request, directory]
        yield [create], [uv, "pip", "install", "--python", target]
    if python and python.has_venv:
        # In two steps, because venv hides the output of a failed ensurepip.
        venv = [python.path, "-I", "-m", "venv", "--without-pip", directory]
        pip_install = [target, "-I", "-m", "pip", "install", "--no-input", "--prefer-binary"]
        pip_install += ["--no-compile", "--progress-bar=off", "--no-warn-script-location"]
        yield [venv, [target, "-I", "-m", "ensurepip", "--default-pip"]], pip_install
    elif python and not uv:
        raise EnvironmentBuildError(
            f"memkit needs a virtual environment, and {python.path} cannot make one: install the "
            "package python{}.{}-venv (or uv).".format(*python.version)
        )
