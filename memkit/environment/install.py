"""Creates a virtual environment and installs into it, with whatever the machine has for that.

Standard library only, Python 3.9 syntax: run by whatever `python3` the user has.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from memkit.environment import interpreter
from memkit.environment.commands import CommandRunner
from memkit.environment.interpreters import MINIMUM, EnvironmentBuildError, find_interpreter
from memkit.processes import find_program

_PIP_INDEX_VARIABLES = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"}


def install(directory: str, steps: list[list[str]], runner: CommandRunner) -> None:
    """Make a virtual environment in `directory`, then `pip install` with each of `steps`.

    uv is used if there is one, else venv and pip, else virtualenv; when one of them fails, the next
    is tried. Raises `EnvironmentBuildError`, and `OSError` if a disk is full; then, and on a
    signal, something may be left in `directory`.
    """
    failure: EnvironmentBuildError | None = None
    for commands in _ways(directory, steps):
        try:
            for command in commands:
                runner.run(command)
            return
        except EnvironmentBuildError as error:  # uv, say, knows nothing of an index set in pip.conf
            failure = error
            shutil.rmtree(directory, ignore_errors=True)
    if failure is not None:
        raise failure


def _ways(directory: str, steps: list[list[str]]) -> Iterator[list[list[str]]]:
    """For each tool there is, the commands that make the environment; raises if there is none."""
    uv, virtualenv = find_program("uv"), find_program("virtualenv")
    python = find_interpreter(may_be_managed=uv is not None)
    target = interpreter(directory)
    pip_install = [target, "-I", "-m", "pip", "install", "--no-input", "--prefer-binary"]
    pip_install += ["--progress-bar=off", "--no-warn-script-location"]
    with_pip = [pip_install + step for step in steps]
    # uv reads none of pip's settings, and whoever set an index for pip wants that one.
    if uv and (python is None or _PIP_INDEX_VARIABLES.isdisjoint(os.environ)):
        request = python.path if python else ">={}.{}".format(*MINIMUM)
        uv_install = [uv, "pip", "install", "--compile-bytecode", "--python", target]
        with_uv = [uv_install + step for step in steps]
        yield [[uv, "venv", "--no-project", "--python", request, directory], *with_uv]
    if python and python.has_venv:
        # In two steps, because venv keeps to itself what ensurepip says when it fails.
        venv = [python.path, "-I", "-m", "venv", "--without-pip", directory]
        yield [venv, [target, "-I", "-m", "ensurepip", "--default-pip"], *with_pip]
    elif python and virtualenv:
        yield [[virtualenv, "--python", python.path, directory], *with_pip]
    elif python and not uv:
        raise EnvironmentBuildError(
            f"memkit needs a virtual environment, and {python.path} cannot make one: install the "
            "package python{}.{}-venv (or uv, or virtualenv).".format(*python.version)
        )
