"""The versions of the formats of memkit's own files: a file of a newer one is neither read nor written.

A file says its version as `version`; one that says none was written before there was more than one.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from memkit.errors import NewerFileError

FIELD = "version"


def release(version: str) -> tuple[int, ...]:
    """A version of memkit as numbers that compare in its order: `0.10.1` as (0, 10, 1)."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        numbers.append(int(digits or "0"))
        if digits != part:
            break
    return tuple(numbers)


def check_version(path: str | PathLike[str], value: Mapping[str, Any], known: int) -> None:
    """Raise `NewerFileError` if `value`, which was read from `path`, is of a version above `known`."""
    version = value.get(FIELD, 1)
    if isinstance(version, int) and version > known:
        raise NewerFileError(
            f"{path} was written by a newer memkit (version {version} of its format, this one knows "
            f"{known}); update memkit"
        )
