"""memkit's own Python environment: its path, whether it can be used, and the command that runs it.

`bin/memkit` runs memkit in a virtual environment under `MEMKIT_HOME/env/`. Its name is a stamp of its
content, so a change of the dependencies makes a new one (`memkit.environment.build`). A memkit that was
installed as a package has no `pyproject.toml` next to it. It runs in the interpreter it was installed into.

Standard library only, Python 3.9 syntax: hooks import this module, and `bin/memkit` does at every start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "1"
"""Part of every stamp. Increase it when environments of earlier versions can no longer be used."""

PYTHON_VARIABLE = "MEMKIT_PYTHON"
"""Names an interpreter that has the dependencies; then memkit builds no environment."""

LAUNCHER_MARK = "# made by `memkit setup`; `memkit uninstall` removes it"

BUILDING = ".building-"
"""The prefix of the names of incomplete or discarded environments, and of their markers."""


class Failure(NamedTuple):
    """Why the environment could not be built: one line for users, and when (seconds since the epoch)."""

    time: float
    message: str


def environment_python(home_root: str, repository_root: str) -> str | None:
    """Return the interpreter to run memkit with, or None if its environment has to be built first.

    `home_root` is the memory home, `repository_root` the directory of the package. An interpreter named by
    `MEMKIT_PYTHON` is returned without a check. Raise `ValueError` if `declared_requirements` cannot read
    `pyproject.toml`.
    """
    given = os.environ.get(PYTHON_VARIABLE)
    if given:
        return given
    if not os.path.exists(os.path.join(repository_root, "pyproject.toml")):
        return sys.executable
    directory = environment_directory(home_root, repository_root)
    return interpreter(directory) if is_usable(directory) else None


def environment_directory(home_root: str, repository_root: str) -> str:
    """The path of the environment for the dependencies declared in `repository_root`.

    The version of Python is not part of the name. memkit keeps one environment, whichever `python3` is first
    on PATH today (it may belong to a project).
    """
    requirements = declared_requirements(repository_root, "project", "dependencies")
    content = [*requirements, *digests([lock_path(repository_root)])]
    return os.path.join(environments(home_root), stamp(content))


def lock_path(repository_root: str) -> str:
    """The path of the lock: every package of the environment by version and hash. `tools/lock` writes it."""
    return os.path.join(repository_root, "memkit", "environment", "requirements.lock")


def digests(paths: Sequence[str]) -> list[str]:
    """Return the SHA-256 of each file; "" for a missing one."""
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


def is_own(home_root: str) -> bool:
    """Return whether this process runs in an environment that memkit made for this home."""
    own = os.path.realpath(environments(home_root)) + os.sep
    return os.path.realpath(sys.prefix).startswith(own)


def interpreter(directory: str) -> str:
    """The path of the interpreter of the virtual environment in `directory`."""
    if os.name == "nt":
        return os.path.join(directory, "Scripts", "python.exe")
    return os.path.join(directory, "bin", "python")


def building_marker(directory: str) -> str:
    """The path of a directory that exists while the environment in `directory` is incomplete."""
    parent, name = os.path.split(directory)
    return os.path.join(parent, BUILDING + name)


def is_usable(directory: str) -> bool:
    """Return whether the environment in `directory` is complete and still has the Python it was built for.

    An upgrade of the system can remove the Python that an environment links to. It can also replace it by
    another version, which finds none of the packages.
    """
    python = os.path.realpath(interpreter(directory))
    if not os.path.exists(python) or os.path.lexists(building_marker(directory)):
        return False
    name = os.path.basename(python)
    if name.startswith("python3.") and name[len("python3.") :].isdigit():
        return os.path.isdir(os.path.join(directory, "lib", name))
    return True


def stamp(parts: list[str]) -> str:
    """Return a name for an environment with the content `parts`: 16 hex characters of their SHA-256."""
    import hashlib  # not needed with an interpreter given by the user

    return hashlib.sha256("\n".join([FORMAT, *parts]).encode()).hexdigest()[:16]


def declared_requirements(repository_root: str, table: str, key: str) -> list[str]:
    """Return the list `key` in a table of `pyproject.toml`; Python 3.9 and 3.10 cannot parse TOML.

    Reads only the style of that file: one double-quoted requirement per line, with a comma and perhaps a
    comment, or a single one on the key's own line. Raise `ValueError` for anything else, or without the list.
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
    """Return the shell command that installs packages into the environment of this process."""
    import importlib.util
    import shlex

    if importlib.util.find_spec("pip") is None:  # uv makes environments without pip
        command = ["uv", "pip", "install", "--python", sys.executable, *arguments]
    else:
        # Without -I a `pip.py` in the working directory would run.
        command = [sys.executable, "-I", "-m", "pip", "install", *arguments]
    if os.name == "nt":
        return " ".join(f'"{part}"' if " " in part else part for part in command)
    return " ".join(map(shlex.quote, command))


def lock_file(home_root: str) -> str:
    """The path of the lock of a build."""
    return os.path.join(environments(home_root), ".lock")


def failure_file(home_root: str) -> str:
    """The path of the record of the last failed build."""
    return os.path.join(environments(home_root), "failed.json")


def last_failure(home_root: str) -> Failure | None:
    """Return why the last build failed; None if it succeeded or there was none."""
    from memkit.errors import MemkitError  # only needed after a failure
    from memkit.state import read_state

    try:
        return read_state(
            failure_file(home_root), 1, lambda value: Failure(float(value["time"]), str(value["message"]))
        )
    except (MemkitError, OSError):  # a full disk cut it short
        return None


def earlier_python(home_root: str, repository_root: str) -> str | None:
    """Return the interpreter of the newest usable environment from before an update, or None.

    For when this version's environment cannot be built, for example without a network. The earlier
    environment must have every declared package, in any version.
    """
    import re

    if os.environ.get(PYTHON_VARIABLE):
        return None
    try:
        declared = declared_requirements(repository_root, "project", "dependencies")
        names = os.listdir(environments(home_root))
    except (OSError, ValueError):
        return None
    # Skip requirements that apply to some platforms only.
    bare = [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in declared if ";" not in line]
    required = set(map(normalized, bare))
    # A name with a dash is of another kind, one with a dot is incomplete.
    directories = [os.path.join(environments(home_root), name) for name in names if name.isalnum()]
    usable = [d for d in directories if is_usable(d) and required <= installed_versions(d).keys()]
    return interpreter(max(usable, key=os.path.getmtime)) if usable else None


def installed_versions(directory: str) -> dict[str, str]:
    """Return the packages in the virtual environment `directory`: versions by normalized names."""
    import re
    from pathlib import Path

    pattern = ("Lib",) if os.name == "nt" else ("lib", "python3.*")
    found = {}
    for path in Path(directory).glob(os.path.join(*pattern, "site-packages", "*.dist-info")):
        name, _, version = path.name[: -len(".dist-info")].rpartition("-")
        if re.fullmatch(r"[A-Za-z0-9._]+", name) and re.fullmatch(r"[A-Za-z0-9.+!_]+", version):
            found[normalized(name)] = version
    return found


def normalized(name: str) -> str:
    """Return the name of a package as PEP 503 compares it."""
    import re

    return re.sub(r"[-_.]+", "-", name).lower()


def launcher_path() -> Path:
    """The path of the command `memkit` for terminals, which runs the plugin's `bin/memkit`."""
    from pathlib import Path

    return Path(os.path.expanduser("~"), ".local", "bin", "memkit")


def installed_launcher() -> list[Path]:
    """Return the path of the launcher if it exists and memkit wrote it, else an empty list."""
    from memkit.files import read_head

    path = launcher_path()
    try:
        return [path] if LAUNCHER_MARK.encode() in read_head(str(path), 10_000) else []
    except OSError:
        return []


def launcher_text(repository_root: str, version: str) -> str:
    """Return the script that runs the memkit in `repository_root`.

    Claude Code installs each version of a plugin in a directory named by it. A launcher for such a directory
    runs the newest version there.
    """
    import shlex

    if os.path.basename(repository_root) == version:
        parent = shlex.quote(os.path.dirname(repository_root))
        program = f'"$(ls -td {parent}/*/bin/memkit | head -n 1)"'
    else:
        program = shlex.quote(os.path.join(repository_root, "bin", "memkit"))
    return f'#!/bin/sh\nexec {program} "$@" {LAUNCHER_MARK}\n'


def write_launcher(text: str) -> None:
    """Write the launcher, replacing an earlier one. Raise `OSError`."""
    from memkit.files import write_durably

    path = launcher_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(str(path), text.encode(), mode=0o755)
