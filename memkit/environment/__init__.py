"""memkit's own Python environment: where it is, and whether it can be used.

`bin/memkit` runs memkit in a virtual environment under `MEMKIT_HOME/env/`, named by a stamp of what
it has to hold, so that a change of the dependencies makes a new one (`memkit.environment.build`).
A memkit that was installed as a package has no `pyproject.toml` beside it and none of this: it runs
in the interpreter it was installed into.

Standard library only, Python 3.9 syntax: the hooks import this module, and `bin/memkit` pays for it
at every start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

FORMAT = "1"
"""Part of every stamp; raised when environments made so far can no longer be used."""

PYTHON_VARIABLE = "MEMKIT_PYTHON"
"""Names an interpreter that has the dependencies already; memkit then makes no environment."""


BUILDING = ".building-"
"""How the names of environments begin that are incomplete or no longer wanted, and their markers."""


class Failure:
    """Why the environment could not be made: one line for people, and when (epoch seconds)."""

    def __init__(self, time: float, message: str) -> None:
        self.time = time
        self.message = message

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def environment_python(home_root: str, repository_root: str) -> str | None:
    """The interpreter to run memkit with, or None while its environment has still to be made.

    `home_root` is the memory home, `repository_root` the directory that holds the package. An
    interpreter named by `MEMKIT_PYTHON` is returned unseen. Reads one file and looks at a few
    names; raises `ValueError` if `pyproject.toml` is not as `declared_requirements` wants it.
    """
    given = os.environ.get(PYTHON_VARIABLE)
    if given:
        return given
    if not os.path.exists(os.path.join(repository_root, "pyproject.toml")):
        return sys.executable
    directory = environment_directory(home_root, repository_root)
    return interpreter(directory) if is_usable(directory) else None


def environment_directory(home_root: str, repository_root: str) -> str:
    """Where the environment for the dependencies declared in `repository_root` belongs.

    The version of Python is no part of the name: whichever `python3` is first on PATH today (a
    project's own environment, say), memkit keeps to the one environment it has.
    """
    return os.path.join(environments(home_root), stamp(contents(repository_root)))


def contents(repository_root: str) -> list[str]:
    """What decides the name of the environment: the declared requirements and the lock."""
    requirements = declared_requirements(repository_root, "project", "dependencies")
    return [*requirements, *digests([lock_path(repository_root)])]


def lock_path(repository_root: str) -> str:
    """The lock: every package of the environment by version and hash. `bin/lock` writes it."""
    return os.path.join(repository_root, "memkit", "environment", "requirements.lock")


def digests(paths: Sequence[str]) -> list[str]:
    """The SHA-256 of each file; "" for one that is missing."""
    import hashlib

    found = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                found.append(hashlib.sha256(file.read()).hexdigest())
        except FileNotFoundError:
            found.append("")
    return found


def environments(home_root: str) -> str:
    """The directory of all environments of a memory home."""
    return os.path.join(home_root, "env")


def interpreter(directory: str) -> str:
    """The interpreter of the virtual environment in `directory`."""
    if os.name == "nt":
        return os.path.join(directory, "Scripts", "python.exe")
    return os.path.join(directory, "bin", "python")


def building_marker(directory: str) -> str:
    """A directory that exists while the environment in `directory` is incomplete."""
    parent, name = os.path.split(directory)
    return os.path.join(parent, BUILDING + name)


def is_usable(directory: str) -> bool:
    """Whether the environment in `directory` is there and complete, with the Python it was made for.

    An upgrade of the system can remove the Python that an environment links to, or put another
    version in its place, which then finds none of the packages.
    """
    python = os.path.realpath(interpreter(directory))
    if not os.path.exists(python) or os.path.lexists(building_marker(directory)):
        return False
    name = os.path.basename(python)
    if name.startswith("python3.") and name[len("python3.") :].isdigit():
        return os.path.isdir(os.path.join(directory, "lib", name))
    return True


def stamp(parts: list[str]) -> str:
    """A name for an environment made of `parts`: 16 hex characters of their SHA-256."""
    import hashlib  # an interpreter given by the user needs no stamp, so no import either

    return hashlib.sha256("\n".join([FORMAT, *parts]).encode()).hexdigest()[:16]


def declared_requirements(repository_root: str, table: str, key: str) -> list[str]:
    """The list `key` in a table of `pyproject.toml`; Python 3.9 and 3.10 have no reader of TOML.

    Understands what that file uses and nothing more: one double-quoted requirement a line, each
    with a comma and perhaps a comment, or a single one on the key's own line. Raises `ValueError`
    for anything else, or if the list is not there.
    """
    path = os.path.join(repository_root, "pyproject.toml")
    found: list[str] | None = None
    current_table = ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if found is None:
                if line.startswith("[") and line.endswith("]"):
                    current_table = line[1:-1]
                elif current_table == table and line.startswith(key + " = ["):
                    rest = line[len(key + " = [") :]
                    if rest:
                        return [_requirement(rest[:-1], path, number)]
                    found = []
            elif line == "]":
                return found
            elif line and not line.startswith("#"):
                found.append(_requirement(line, path, number))
    raise ValueError(f"{path} has no complete list {key} in [{table}]")


def _requirement(line: str, path: str, number: int) -> str:
    value, quote, rest = line[1:].partition('"')
    rest = rest.partition("#")[0].strip()
    if line[:1] != '"' or not quote or "\\" in value or rest not in ("", ","):
        raise ValueError(f"{path}, line {number}: expected one quoted requirement and a comma")
    return value


def install_command(*arguments: str) -> str:
    """The shell command that installs packages into the environment that runs this."""
    import importlib.util
    import shlex

    if importlib.util.find_spec("pip") is None:  # uv makes environments without it
        command = ["uv", "pip", "install", "--python", sys.executable, *arguments]
    else:
        # Without -I a `pip.py` in the working directory would run.
        command = [sys.executable, "-I", "-m", "pip", "install", *arguments]
    if os.name == "nt":
        return " ".join(f'"{part}"' if " " in part else part for part in command)
    return " ".join(map(shlex.quote, command))


def lock_file(home_root: str) -> str:
    """The file whose lock is held while an environment is being made."""
    return os.path.join(environments(home_root), ".lock")


def failure_file(home_root: str) -> str:
    """Where the reason of the last failure to make an environment is kept."""
    return os.path.join(environments(home_root), "failed.json")


def last_failure(home_root: str) -> Failure | None:
    """Why the last try to make the environment failed; None if it did not, or none was made."""
    from memkit.state import parse_json  # needed only where something went wrong

    try:
        with open(failure_file(home_root), encoding="utf-8") as file:
            record = parse_json(file.read())
        return Failure(float(record["time"]), str(record["message"]))
    except (OSError, ValueError, KeyError, TypeError):  # absent, or cut short by a full disk
        return None


def earlier_python(home_root: str, repository_root: str) -> str | None:
    """The interpreter of the newest whole environment from before an update, if it has every package by name.

    For when the environment of this version cannot be made, as without a network. None if there is none.
    """
    import re

    from memkit.environment.install import installed_versions, normalized

    if os.environ.get(PYTHON_VARIABLE):
        return None
    try:
        declared = declared_requirements(repository_root, "project", "dependencies")
        # Those that only some platforms need are left out.
        bare = [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in declared if ";" not in line]
        required = set(map(normalized, bare))
        names = os.listdir(environments(home_root))
    except (OSError, ValueError):
        return None
    # A name with a dash is of another kind, one with a dot is not whole.
    places = [os.path.join(environments(home_root), n) for n in names if n.isalnum()]
    usable = [place for place in places if is_usable(place) and required <= installed_versions(place).keys()]
    return interpreter(max(usable, key=os.path.getmtime)) if usable else None
