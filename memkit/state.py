"""Read and write memkit's own small JSON files. Each one states the version of its format.

A file of a newer format is neither read nor written. A file without a version is version 1.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, TypeVar

from memkit.errors import DamagedFileError, NewerFileError
from memkit.files import write_durably

T = TypeVar("T")

FIELD = "version"


def parse_json(data: str | bytes, **options: Any) -> Any:
    """Return what `json.loads` returns. Raise `ValueError` also for JSON that is nested too deep."""
    try:
        return json.loads(data, **options)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def read_json_lines(path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file of JSON lines, if it exists. Skip lines cut off. Raise `OSError`."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            value = parse_json(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def read_state(
    path: str | PathLike[str], version: int, convert: Callable[[dict[str, Any]], T]
) -> T | None:
    """Return the content of a state file as `convert` makes it, or None if there is no file.

    `convert` takes the JSON object and may raise `ValueError`, `TypeError`, `KeyError`, or
    `AttributeError` for a value that it cannot use. Raise `NewerFileError` for a format above `version`,
    `DamagedFileError` for anything else that cannot be read, `OSError` if the file cannot be opened.
    """
    try:
        with open(path, "rb") as file:
            value = parse_json(file.read())
        if not isinstance(value, dict):
            raise ValueError("it holds no JSON object")
        check_version(path, value, version)
        return convert(value)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFileError(f"{path} is damaged: {reason}") from error


def read_state_or_none(
    path: str | PathLike[str], version: int, convert: Callable[[dict[str, Any]], T]
) -> T | None:
    """Return what `read_state` returns; log a damaged or unreadable file and return None for it.

    For state that can be rebuilt. Raise `NewerFileError`.
    """
    try:
        return read_state(path, version, convert)
    except (DamagedFileError, OSError) as error:
        import logging  # hooks rarely need it

        logging.getLogger(__name__).warning("%s; it is read as empty", error)
        return None


def write_state(path: str | PathLike[str], version: int, value: Mapping[str, Any]) -> None:
    """Replace a state file durably. The directory must exist. Raise `OSError`."""
    data = json.dumps({FIELD: version, **value}, indent=1).encode("ascii")
    write_durably(str(path), data)


def check_version(path: str | PathLike[str], value: Mapping[str, Any], known: int) -> None:
    """Raise `NewerFileError` if `value`, read from `path`, has a format version above `known`."""
    version = value.get(FIELD, 1)
    if isinstance(version, int) and version > known:
        raise NewerFileError(
            f"{path} was written by a newer memkit (version {version} of its format, this one knows "
            f"{known}); update memkit"
        )


def release(version: str) -> tuple[int, ...]:
    """Return a release of memkit as comparable numbers: `0.10.1` as (0, 10, 1)."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        numbers.append(int(digits or "0"))
        if digits != part:
            break
    return tuple(numbers)
