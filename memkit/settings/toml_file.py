"""A settings file in TOML: the values in it, and the line on which each stands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memkit.errors import ConfigError
from memkit.files import read_regular

MOST_BYTES = 1_000_000
"""A larger file holds no settings. A project's file comes with the repository, maybe from strangers."""

MOST_LINES = 200
"""Of one value; the lines of settings behind a longer one are not looked for."""


class Setting(NamedTuple):
    """A value as it stands in a file: `name` is empty for what is in no table."""

    section: str
    name: str
    value: Any
    line: int


def read_settings(path: Path) -> list[Setting]:
    """All settings in the file at `path`, none if there is no file.

    Raises `ConfigError`, naming the line if the file is not valid TOML.
    """
    text = _read(path)
    if not text:  # as in most projects; importing the parser takes 3 ms
        return []
    lines = _lines(text)
    found = []
    for section, values in _parse(text, path).items():
        if not isinstance(values, dict):
            found.append(Setting(section, "", values, lines.get((section,), 1)))
            continue
        for name, value in values.items():
            found.append(Setting(section, name, value, lines.get((section, name), 1)))
    return found


def _read(path: Path) -> str:
    try:
        # A link, as keepers of dotfiles make it, is followed; reading a device or a pipe might never end.
        data = read_regular(os.path.realpath(path), MOST_BYTES)
        return data.decode("utf-8-sig")  # editors on Windows begin a file with a byte order mark
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: cannot be read: it is not UTF-8") from error


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return _loads(text)
    except ValueError as error:
        match = re.search(r"at line (\d+)", str(error))
        line = match[1] if match else text.count("\n") + 1
        raise ConfigError(f"{path}:{line}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}:1: not valid TOML: nested too deeply") from error


def _loads(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    parsed: dict[str, Any] = tomllib.loads(text)
    return parsed


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The line, from 1, on which each table, and each value in a table, begins.

    A parser of TOML does not tell. But a statement ends with the line that makes it valid, so the
    lines are read one statement at a time.
    """
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    statement: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        statement.append(line)
        try:
            parsed = _loads("\n".join(statement))
        except (ValueError, RecursionError):
            if len(statement) == MOST_LINES:
                break
            continue
        first = number - len(statement) + 1
        if statement[0].lstrip().startswith("["):
            table = next(_paths(parsed))
            found.setdefault(table[:2], first)
        else:
            for path in _paths(parsed):
                found.setdefault((*table, *path)[:2], first)
        statement = []
    return found


def _paths(parsed: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The keys of each value in `parsed`, from the outside in; of an empty table its own."""
    for key, value in parsed.items():
        if isinstance(value, list) and value == [{}]:  # the header of an array of tables
            yield (key,)
        elif isinstance(value, dict) and value:
            for path in _paths(value):
                yield (key, *path)
        else:
            yield (key,)
