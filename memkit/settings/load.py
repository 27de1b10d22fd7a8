"""Settings: what there is, where it comes from, and what is wrong with it.

Five layers, later ones winning: defaults, `MEMKIT_HOME/config.toml`, `<project>/.memkit.toml`,
environment variables `MEMKIT_SECTION_FIELD`, and flags of a command. A project's file comes with the
repository, maybe from strangers, so it may set harmless keys only; anything else in it is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memkit.errors import ConfigError
from memkit.files import (
    RefusedFileError,
    inside,
    make_private_directory,
    write_durably,
)
from memkit.hook.project import Project
from memkit.paths import Home
from memkit.settings import SearchSettings, Settings
from memkit.settings.toml_file import read_settings
from memkit.settings.validate import (
    BadValueError,
    Key,
    Value,
    allowed,
    describe,
    every_key,
    name_of,
    parse_text,
    validate,
)
from memkit.state import parse_json

__all__ = [
    "Key",
    "SearchSettings",
    "Settings",
    "Value",
    "allowed",
    "describe",
    "every_key",
    "parse_text",
    "validate",
]

PROJECT_FILE = ".memkit.toml"

_HARMLESS = frozenset({("memory", "exclude")})
_HARMLESS_SECTIONS = frozenset({"chunking", "search"})

_COSMETIC_SECTIONS = frozenset({"recall", "service"})
"""Their settings change nothing about what is kept, where it goes, or what is spent."""

_OTHER_VARIABLES = frozenset({"MEMKIT_HOME", "MEMKIT_PYTHON", "MEMKIT_CHILD", "MEMKIT_DISABLE"})
"""Variables of memkit's that are no settings; those beginning with `MEMKIT_TEST_` are the tests'."""


@dataclass(frozen=True)
class Loaded:
    """Settings with the origin of each that is not a default, and what was refused of a project's file."""

    settings: Settings
    origins: dict[Key, str]
    refused: list[str]


def load(
    home: Home,
    project: Project | None = None,
    flags: Mapping[Key, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """The settings in force. Raises `ConfigError` naming file and line, or the variable."""
    found = _file_values(Path(home.config_file))
    stronger = dict(_environment_values(environ))
    stronger |= {key: Value(value, "a flag") for key, value in (flags or {}).items()}
    refused: list[str] = []
    if project is not None:
        given = _project_values(Path(project.root), refused)
        found |= _harmless(_allowed(given, refused), found, stronger, refused)
    found |= stronger
    settings = validate(found)
    return Loaded(settings, {key: value.origin for key, value in found.items()}, refused)


def _file_values(path: Path) -> dict[Key, Value]:
    return {
        (setting.section, setting.name): Value(setting.value, f"{path}:{setting.line}")
        for setting in read_settings(path)
    }


def _project_values(root: Path, refused: list[str]) -> dict[Key, Value]:
    try:
        return _file_values(Path(inside(str(root / PROJECT_FILE), str(root))))
    except ConfigError as error:
        refused.append(str(error))
    except RefusedFileError as error:
        refused.append(f"{error.filename}: cannot be read: {error.strerror}")
    return {}


def _allowed(found: dict[Key, Value], refused: list[str]) -> dict[Key, Value]:
    """The keys a repository may set; the others are named in `refused`."""
    known = set(every_key())
    kept = {}
    for key, value in found.items():
        if key not in known:
            refused.append(f"{value.origin}: unknown setting {name_of(key)}")
        elif is_harmless(key):
            kept[key] = value
        else:
            refused.append(
                f"{value.origin}: {name_of(key)} is refused: a project's file may set only chunking, "
                "search and memory.exclude; set it in your own config.toml"
            )
    return kept


def is_harmless(key: Key) -> bool:
    """Whether a project's own file may set this, which may come from strangers."""
    return key in _HARMLESS or key[0] in _HARMLESS_SECTIONS


def _harmless(
    found: dict[Key, Value],
    weaker: Mapping[Key, Value],
    stronger: Mapping[Key, Value],
    refused: list[str],
) -> dict[Key, Value]:
    """The values a repository sets that fit with those below and above; the rest is in `refused`."""

    def fits(values: Mapping[Key, Value], section: str) -> ConfigError | None:
        layers = {**weaker, **values, **stronger}
        try:
            validate({key: value for key, value in layers.items() if key[0] == section})
        except ConfigError as error:
            return error
        return None

    kept: dict[Key, Value] = {}
    for section in dict.fromkeys(section for section, _ in found):
        own = {key: value for key, value in found.items() if key[0] == section}
        if fits(own, section) is None:
            kept |= own
            continue
        for key, value in own.items():
            problem = fits({**kept, key: value}, section)
            if problem is None:
                kept[key] = value
            else:
                refused.append(str(problem))
    return kept


def decisive_changes(home: Home, path: Path) -> list[str]:
    """How the settings file at `path` differs from the one in force in what decides where data goes.

    One line a setting: what is kept, redacted, sent, or spent. Raises `ConfigError` if `path` is invalid.
    """
    new = validate(_file_values(path))
    try:
        now = validate(_file_values(Path(home.config_file)))
    except ConfigError:  # replaced only on demand
        now = Settings()
    lines = []
    for key in every_key():
        section, name = key
        is_decisive = section not in _COSMETIC_SECTIONS and not is_harmless(key)
        old, other = (getattr(getattr(one, section), name) for one in (now, new))
        if is_decisive and old != other:
            lines.append(f"{name_of(key)} = {json.dumps(other)}, now {json.dumps(old)}")
    return lines


def _environment_values(environ: Mapping[str, str]) -> Iterator[tuple[Key, Value]]:
    for variable, text in sorted(environ.items()):
        if not variable.startswith("MEMKIT_") or variable in _OTHER_VARIABLES:
            continue
        if variable.startswith("MEMKIT_TEST_"):
            continue
        section, _, name = variable.removeprefix("MEMKIT_").lower().partition("_")
        yield (section, name), Value(parse_text((section, name), text), variable)


def save(home: Home, key: Key, text: str) -> Any:
    """Set one key in `MEMKIT_HOME/config.toml`, keeping its comments; return the value it now has.

    Raises `ConfigError`, `OSError`; then the file is as it was.
    """
    import tomlkit  # only for writing

    path = Path(home.config_file)
    value = Value(parse_text(key, text), name_of(key))
    before = _file_values(path)
    settings = _validate_change(before, key, value)
    section, name = key
    if (section, "") in before:
        raise ConfigError(f"{before[section, ''].origin}: {section} is no table of settings")
    text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    document = tomlkit.parse(text)
    new = getattr(getattr(settings, section), name)
    document.setdefault(section, tomlkit.table())[name] = new
    make_private_directory(home.root)
    # A link, as keepers of dotfiles make it, stays one.
    write_durably(os.path.realpath(path), tomlkit.dumps(document).encode("utf-8"))
    return new


def _validate_change(before: Mapping[Key, Value], key: Key, value: Value) -> Settings:
    """Settings with `key` as it will be. What else is wrong in the file does not stand in the way."""
    known = set(every_key())
    section = {k: v for k, v in before.items() if k[0] == key[0] and k in known}
    while True:
        try:
            validate(section)
        except BadValueError as error:
            if error.name:
                del section[key[0], error.name]
                continue
        return validate({**section, key: value})


def publish_hook_settings(home: Home) -> None:
    """Write the few settings the hooks need as JSON: their Python may be too old to read TOML.

    Only from the user's file: environment variables of this process do not affect other sessions.
    Raise `ConfigError`, `OSError`.
    """
    settings = load(home, environ={}).settings
    wanted = {
        "session_characters": settings.recall.session_characters,
        "inject": settings.recall.inject,
        "service": settings.service.enabled,
    }
    path = Path(home.hook_settings)
    try:
        if parse_json(path.read_bytes()) == wanted:
            return
    except (OSError, ValueError):  # missing or damaged: written below
        pass
    make_private_directory(home.run)
    write_durably(str(path), json.dumps(wanted).encode("ascii"))
