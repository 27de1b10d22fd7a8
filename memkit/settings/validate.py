"""Turn values into settings. An error names the setting, where it is set, its value, and what is allowed."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from memkit.errors import ConfigError, SettingError
from memkit.settings import Settings
from memkit.state import parse_json
from memkit.text import printable, shorten

SHOWN_CHARACTERS = 80
"""A longer name or value is cut in messages."""

Key = tuple[str, str]
"""A setting, as (section, name)."""

_SECTIONS = {section.name: section.type for section in msgspec.structs.fields(Settings)}

_MASK = "********"

_PLAIN_NAME = re.compile("[a-z_]{0,20}")
"""Any other name in `keys` may be a key itself, as in `sk-123 = "openai"`."""

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}


class Value(NamedTuple):
    """A setting's raw value and its origin: a file's path, a variable's name, or `--set`."""

    value: Any
    origin: str


class UnknownSettingError(ConfigError):
    """There is no setting of that name."""


def every_key() -> Iterator[Key]:
    """Yield the key of every setting."""
    for section, made in _SECTIONS.items():
        for name in made.__struct_fields__:
            yield section, name


def name_of(key: Key) -> str:
    """Return the name of a setting, or of any other entry in a settings file, to show to the user."""
    return _shown(".".join(filter(None, key)))


def check_known(key: Key, origin: str = "") -> None:
    """Raise `UnknownSettingError` if `key` is not a setting."""
    if _is_known(key):
        return
    name = name_of(key)
    if is_secret(key) and not _PLAIN_NAME.fullmatch(key[1]):
        name = f"{key[0]}.…"
    problem = f"unknown setting {name}; `memkit config list --all` shows all"
    raise UnknownSettingError(f"{origin}: {problem}" if origin else problem)


def describe(key: Key) -> str:
    """Return the one-line description of a setting."""
    section, name = key
    return next(part for part in _annotations(section)[name].__metadata__ if isinstance(part, str))


def is_secret(key: Key) -> bool:
    """Return whether a setting's value must not be shown."""
    return key[0] == "keys"


def masked(key: Key, value: Any) -> Any:
    """Return a setting's value as it may be shown."""
    return _MASK if value and is_secret(key) else value


def allowed(key: Key) -> str:
    """Return the values that a setting allows, in words: `a whole number from 1 to 1000`."""
    return _allowed(_type_of(key))


def validate(found: Mapping[Key, Value]) -> Settings:
    """Return settings with the values of `found` over the defaults.

    Text is converted where the setting wants a number or a truth value. Raise `UnknownSettingError`, or
    `SettingError` for the first bad value.
    """
    sections: dict[str, dict[str, Any]] = {}
    for key, value in found.items():
        check_known(key, value.origin)
        sections.setdefault(key[0], {})[key[1]] = _convert(key, value)
    made = {}
    for section, values in sections.items():
        try:
            made[section] = _SECTIONS[section](**values)
        except SettingError as error:
            if error.name:
                key = (section, error.name)
                raise _bad_value(key, found[key], str(error)) from error
            origins = dict.fromkeys(found[section, name].origin for name in values)
            raise SettingError(f"{', '.join(origins)}: {section}: {error}") from error
    return Settings(**made)


def parse_text(key: Key, text: str) -> Any:
    """Return the value that `text` stands for: a list from JSON or commas, any other text as it is."""
    if not _is_known(key) or not isinstance(_type_of(key), inspect.VarTupleType):
        return text
    if text.lstrip().startswith("["):
        try:
            return parse_json(text)
        except ValueError:
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _shown(text: str) -> str:
    """Return `text`, which may come from a stranger's file, shortened and without control characters."""
    return shorten(printable(text, "\ufffd"), SHOWN_CHARACTERS)


def _is_known(key: Key) -> bool:
    section, name = key
    return section in _SECTIONS and name in _SECTIONS[section].__struct_fields__


@functools.cache  # by section: reading the types of all takes 2 ms
def _annotations(section: str) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(_SECTIONS[section])}


def _type_of(key: Key) -> inspect.Type:
    section, name = key
    return inspect.type_info(_annotations(section)[name])


def _convert(key: Key, value: Value) -> Any:
    section, name = key
    raw, kind = value.value, _type_of(key)
    if isinstance(raw, str):
        raw = _from_text(raw, kind)
    try:
        return msgspec.convert(raw, _annotations(section)[name], strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter for lone surrogates
        raise _bad_value(key, value, f"must be {_allowed(kind)}") from error


def _from_text(text: str, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.BoolType):
        return _WORDS.get(text.strip().lower(), text)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
    return text


def _allowed(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"a whole number {_range(kind)}"
        case inspect.FloatType():
            return f"a number {_range(kind)}"
        case inspect.LiteralType():
            *others, last = map(str, kind.values)
            return f"{', '.join(others)} or {last}"
        case inspect.VarTupleType(item_type=item):
            return f"a list of {'strings' if isinstance(item, inspect.StrType) else _allowed(item)}"
        case inspect.StrType(max_length=int(most)):
            return f"text of at most {most} characters"
    return "text"


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    return f"of at least {kind.ge}" if kind.le is None else f"from {kind.ge} to {kind.le}"


def _bad_value(key: Key, value: Value, reason: str) -> SettingError:
    what = f"{name_of(key)} = {_shown(repr(masked(key, value.value)))}"
    return SettingError(f"{value.origin}: {what}: {reason}", key[1])
