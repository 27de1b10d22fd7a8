"""Load and save settings.

There are five layers, and later ones win: defaults, `MEMKIT_HOME/config.toml`, `<project>/.memkit.toml`,
environment variables `MEMKIT_SECTION_NAME`, and the `--set` options of this call. A project's file comes with
the repository, maybe from strangers. It may set only harmless settings; the rest is ignored and reported.
In a Claude Code session neither variables nor `--set` count: they may come from strangers, too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memkit.errors import ConfigError, MemkitError, SettingError
from memkit.files import RefusedFileError, inside, make_private_directory, read_regular, write_durably
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.projects.trust import in_session
from memkit.settings import AUTO, NO_KEY, SearchSettings, Settings, is_key
from memkit.settings.validate import (
    Key,
    Value,
    check_known,
    every_key,
    is_secret,
    masked,
    name_of,
    parse_text,
    validate,
)
from memkit.state import parse_json

__all__ = ["Key", "SearchSettings", "Settings", "Value"]

PROJECT_FILE = ".memkit.toml"

MOST_BYTES = 1_000_000
"""A larger settings file is refused."""

PROVIDER = ("summarize", "provider")
"""The setting that turns summaries on or off."""

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "voyage": ("VOYAGE_API_KEY",),
    "chroma": ("CHROMA_API_KEY",),
}
"""The variables of each setting in `keys`. The first one that is set counts.

A session, and what it starts in the background, have none: `memkit.projects.trust` removes them.
"""

_HARMLESS = frozenset({("memory", "exclude")})
_HARMLESS_SECTIONS = frozenset({"chunking", "search"})

_COSMETIC_SECTIONS = frozenset({"recall", "service", "watch"})
"""Sections that decide neither what is kept, nor where it goes, nor what is spent."""

_OTHER_VARIABLES = frozenset({"MEMKIT_HOME", "MEMKIT_PYTHON", "MEMKIT_CHILD", "MEMKIT_DISABLE"})
"""memkit's variables that are no settings. Those that begin with `MEMKIT_TEST_` belong to the tests."""

_SET = "--set"
_of_this_call: dict[Key, Value] = {}


@dataclass(frozen=True)
class Loaded:
    """Settings, the origin of each that is not a default, and a line for each value that is ignored."""

    settings: Settings
    origins: dict[Key, str]
    refused: list[str]


def load(home: Home, project: Project | None = None, environ: Mapping[str, str] | None = None) -> Loaded:
    """Return the settings from all layers. Raise `ConfigError`, but not for the project's file.

    With `environ`, use these variables instead of this process's own variables and `--set` options.
    """
    user = _file_values(Path(home.config_file))
    stronger = dict(_environment_values(os.environ if environ is None else environ))
    if environ is None:
        stronger |= _of_this_call
    refused: list[str] = []
    theirs = {} if project is None else _project_values(Path(project.root), user, stronger, refused)
    found = {**user, **theirs, **stronger}
    origins = {key: value.origin for key, value in found.items()}
    return Loaded(validate(found), origins, refused)


@contextmanager
def set_for_this_call(assignments: Sequence[str]) -> Iterator[None]:
    """Have `load` use these texts, each `section.name=value`, over all other layers until the block ends.

    They count in this process only: no process that it starts gets them, and the service keeps its own
    settings. Values are checked when settings are loaded, together with those of the other layers. Raise
    `ConfigError` for text of another form, an unknown setting, a key, and in a Claude Code session.
    """
    if in_session():
        raise ConfigError(
            f"{_SET} does nothing in a Claude Code session, as variables do; run the command in your own "
            "terminal, or change the setting with `memkit config set`"
        )
    given: dict[Key, Value] = {}
    for assignment in assignments:
        full_name, equals, text = assignment.partition("=")
        section, dot, name = full_name.strip().partition(".")
        key = (section, name)
        if not (equals and dot):  # the text may be a key: do not show it
            raise ConfigError(f"{_SET}: write section.name=value, as in {_SET} search.k=10")
        check_known(key, _SET)
        if is_secret(key):
            raise ConfigError(
                f"{_SET}: {name_of(key)} is a key, and the shell's history would keep it; run "
                f"`memkit config set {name_of(key)}`, which asks for it"
            )
        given[key] = Value(parse_text(key, text), _SET)
    before = dict(_of_this_call)
    _of_this_call.update(given)
    try:
        yield
    finally:
        _of_this_call.clear()
        _of_this_call.update(before)


def is_harmless(key: Key) -> bool:
    """Return whether a project's own file, which may come from strangers, may set `key`."""
    return key in _HARMLESS or key[0] in _HARMLESS_SECTIONS


def _file_values(path: Path) -> dict[Key, Value]:
    """Return the values in a settings file, none if it is missing. Values outside sections have the name "".
    """
    try:
        # Links are followed: users keep their settings among their dotfiles.
        data = read_regular(os.path.realpath(path), MOST_BYTES)
        parsed = _parse(data.decode("utf-8-sig"))  # editors on Windows write a byte order mark
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read: it is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigError(f"{path}: not valid TOML: {reason}") from error
    found = {}
    for section, values in parsed.items():
        if isinstance(values, dict):
            for name, value in values.items():
                found[section, name] = Value(value, str(path))
        else:
            found[section, ""] = Value(values, str(path))
    return found


def _parse(text: str) -> dict[str, Any]:
    if not text:  # usual for projects; importing the parser takes 3 ms
        return {}
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    parsed: dict[str, Any] = tomllib.loads(text)
    return parsed


def _environment_values(environ: Mapping[str, str]) -> Iterator[tuple[Key, Value]]:
    for variable, text in sorted(environ.items()):
        is_other = variable in _OTHER_VARIABLES or variable.startswith("MEMKIT_TEST_")
        if variable.startswith("MEMKIT_") and not is_other:
            section, _, name = variable.removeprefix("MEMKIT_").lower().partition("_")
            yield (section, name), Value(parse_text((section, name), text), variable)


def _project_values(
    root: Path, user: Mapping[Key, Value], stronger: Mapping[Key, Value], refused: list[str]
) -> dict[Key, Value]:
    try:
        found = _file_values(Path(inside(str(root / PROJECT_FILE), str(root))))
    except ConfigError as error:
        refused.append(str(error))
        return {}
    except RefusedFileError as error:
        refused.append(f"{error.filename}: cannot be read: {error.strerror}")
        return {}
    kept: dict[Key, Value] = {}
    for key, value in found.items():
        try:
            check_known(key, value.origin)
        except ConfigError as error:
            refused.append(str(error))
            continue
        if is_harmless(key):
            kept[key] = value
        else:
            refused.append(
                f"{value.origin}: {name_of(key)} is refused: a project's file may set only chunking, "
                "search, and memory.exclude; set it in your own config.toml"
            )
    for section in dict.fromkeys(section for section, _ in kept):
        kept, problems = _fitting(section, kept, user, stronger)
        refused += problems
    return kept


def _fitting(
    section: str, values: Mapping[Key, Value], weaker: Mapping[Key, Value] | None = None,
    stronger: Mapping[Key, Value] | None = None,
) -> tuple[dict[Key, Value], list[str]]:
    kept, problems = dict(values), []
    while any(key[0] == section for key in kept):
        layers = {**(weaker or {}), **kept, **(stronger or {})}
        try:
            validate({key: value for key, value in layers.items() if key[0] == section})
        except ConfigError as error:
            problems.append(str(error))
            bad = (section, error.name if isinstance(error, SettingError) else "")
            dropped = [bad] if bad in kept else [key for key in kept if key[0] == section]
            for key in dropped:
                del kept[key]
        else:
            break
    return kept, problems


def decisive_changes(home: Home, path: Path) -> list[str]:
    """Return how the settings file at `path` would change what is kept, redacted, sent, or spent.

    One line for each setting, compared with the user's file. Raise `ConfigError` if `path` is invalid.
    """
    new = validate(_file_values(path))
    try:
        now = validate(_file_values(Path(home.config_file)))
    except ConfigError:  # a broken file stays unless the user asks to replace it
        now = Settings()
    lines = []
    for key in every_key():
        section, name = key
        is_decisive = section not in _COSMETIC_SECTIONS and not is_harmless(key)
        old, other = (getattr(getattr(one, section), name) for one in (now, new))
        if is_decisive and old != other:
            new_value, old_value = (json.dumps(masked(key, one)) for one in (other, old))
            lines.append(f"{name_of(key)} = {new_value}, now {old_value}")
    return lines


def save(home: Home, key: Key, text: str) -> Any:
    """Set one setting in `MEMKIT_HOME/config.toml`, keeping its comments; return its new value.

    Other bad values in the file stay as they are. Raise `ConfigError`, `OSError`; then nothing is changed.
    """
    import tomlkit  # only for writing

    check_known(key)
    section, name = key
    path = Path(home.config_file)
    before = _file_values(path)
    if (section, "") in before:
        raise ConfigError(f"{path}: {section} is not a table of settings; write [{section}]")
    known = set(every_key()) - {key}
    others, _ = _fitting(section, {k: v for k, v in before.items() if k[0] == section and k in known})
    settings = validate({**others, key: Value(parse_text(key, text), str(path))})
    content = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    document = tomlkit.parse(content)
    new = getattr(getattr(settings, section), name)
    document.setdefault(section, tomlkit.table())[name] = new
    make_private_directory(home.root)
    # A link, as users keep it for their dotfiles, stays one.
    write_durably(os.path.realpath(path), tomlkit.dumps(document).encode("utf-8"))
    return new


def may_summarize(home: Home, settings: Settings) -> bool:
    """Return whether rounds may start on their own.

    They may if the user chose a provider, a session has announced them, or no model is used.
    """
    chosen = settings.summarize
    if chosen.provider != AUTO or not chosen.is_on or os.path.exists(home.announced):
        return True
    return PROVIDER in load(home).origins


def publish_hook_settings(home: Home) -> None:
    """Write the few settings that hooks need as JSON: their Python may be too old to read TOML.

    Only the user's file counts here, not the variables of this process. Raise `ConfigError`, `OSError`.
    """
    loaded = load(home, environ={})
    settings = loaded.settings
    is_decided = PROVIDER in loaded.origins or settings.summarize.mode == "off"
    wanted = {
        "session_start": settings.recall.session_start,
        "inject": settings.recall.inject,
        "on_failure": settings.recall.on_failure,
        "on_edit": settings.recall.on_edit,
        "on_agent": settings.recall.on_agent,
        "service": settings.service.enabled,
        "summary_tokens": 0 if is_decided else settings.summarize.daily_tokens,
    }
    path = Path(home.hook_settings)
    try:
        if parse_json(path.read_bytes()) == wanted:
            return
    except (OSError, ValueError):  # missing or damaged: it is written below
        pass
    make_private_directory(home.run)
    write_durably(str(path), json.dumps(wanted).encode("ascii"))


def with_keys(environ: Mapping[str, str], home: Home) -> dict[str, str]:
    """Return `environ` with the user's keys from the settings, each in its provider's first variable.

    A provider that has a variable in `environ` keeps it. Raise `ConfigError`.
    """
    keys = load(home, environ=environ).settings.keys
    found = dict(environ)
    for name, variables in KEY_VARIABLES.items():
        if not any(environ.get(variable, "").strip() for variable in variables):
            found[variables[0]] = getattr(keys, name)
    return found


def find_key(environ: Mapping[str, str], variables: Sequence[str], failure: type[MemkitError]) -> str:
    """Return the value of the first of these variables that is set, or "".

    Raise a `failure` if the value cannot be a key.
    """
    for variable in variables:
        if key := environ.get(variable, "").strip():
            if not is_key(key):
                raise failure(f"{variable} {NO_KEY}")
            return key
    return ""


def how_to_set(name: str) -> str:
    """Return advice on how the user sets a key. An agent that follows it sees no key."""
    variables = " or ".join(KEY_VARIABLES[name])
    return f"run `memkit config set keys.{name}` in your own terminal, or set {variables} there"
