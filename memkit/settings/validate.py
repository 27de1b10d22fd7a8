"""Values as they were found become settings, or one line saying where a bad one stands and what may."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from memkit.errors import ConfigError
from memkit.settings import SettingError, Settings
from memkit.state import parse_json

SHOWN_CHARACTERS = 80
"""How much of a wrong name or value a message shows."""

Key = tuple[str, str]
"""A setting, as (section, field)."""

_SECTIONS = {section.name: section.type for section in msgspec.structs.fields(Settings)}

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "0"), False),
}


class Value(NamedTuple):
    """A setting as found: the raw value and where it stands (`file:line`, a variable, `a flag`)."""

    value: Any
    origin: str


class BadValueError(ConfigError):
    """A value that does not fit its setting; `name` is the field's, "" if several do not go together."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class UnknownSettingError(ConfigError):
    """There is no setting of that name."""


def every_key() -> Iterator[Key]:
    """Every setting there is."""
    for section, made in _SECTIONS.items():
        for name in made.__struct_fields__:
            yield section, name


def describe(key: Key) -> str:
    """The one-line description of a setting."""
    return str((_type_info(key).extra_json_schema or {}).get("description", ""))


def allowed(key: Key) -> str:
    """What a setting can be, in words: `a whole number from 1 to 1000`."""
    return _allowed(_type_info(key).type)


def validate(found: Mapping[Key, Value]) -> Settings:
    """Settings made of `found` over the defaults; text is taken for the number or word it stands for.

    Raises `ConfigError` for an unknown setting, `BadValueError` for the first bad value.
    """
    _check_known(found)
    sections: dict[str, dict[str, Any]] = {}
    for key, value in found.items():
        sections.setdefault(key[0], {})[key[1]] = _converted(key, value)
    made = {}
    for section, values in sections.items():
        try:
            made[section] = _SECTIONS[section](**values)
        except SettingError as error:
            if error.name:
                key = (section, error.name)
                raise _bad_value(key, found[key], str(error)) from error
            origins = ", ".join(value.origin for key, value in found.items() if key[0] == section)
            raise BadValueError(f"{origins}: {section}: {error}", "") from error
    return Settings(**made)


def parse_text(key: Key, text: str) -> Any:
    """A value written as text: lists as JSON or separated by commas; the rest is left to `validate`."""
    if key not in set(every_key()) or not isinstance(_type_info(key).type, inspect.ListType):
        return text
    if text.lstrip().startswith("["):
        try:
            return parse_json(text)
        except ValueError:
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def name_of(key: Key) -> str:
    """The name of a setting, or of what stands in its place, to be shown to a person."""
    return _shown(".".join(filter(None, key)))


def _check_known(found: Mapping[Key, Value]) -> None:
    """Raise `ConfigError` for the first of `found` that is no setting."""
    known = set(every_key())
    for key, value in found.items():
        if key not in known:
            raise UnknownSettingError(
                f"{value.origin}: unknown setting {name_of(key)}; "
                "`memkit config list` shows those there are"
            )


def _shown(text: str) -> str:
    """`text`, which may be a stranger's, cut short and without control characters."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return plain if len(plain) <= SHOWN_CHARACTERS else plain[:SHOWN_CHARACTERS] + "…"


@functools.cache
def _annotations(section: str) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(_SECTIONS[section])}


def _type_info(key: Key) -> inspect.Metadata:
    """What the annotation of a setting says; all of them carry a description."""
    section, name = key
    found = inspect.type_info(_annotations(section)[name])
    assert isinstance(found, inspect.Metadata)
    return found


def _converted(key: Key, value: Value) -> Any:
    section, name = key
    raw, kind = value.value, _type_info(key).type
    if isinstance(raw, str):
        raw = _from_text(raw, kind)
    try:
        return msgspec.convert(raw, _annotations(section)[name], strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: no UTF-8
        raise _bad_value(key, value, f"must be {_allowed(kind)}") from error


def _from_text(text: str, kind: inspect.Type) -> Any:
    """What `text` stands for in a setting of this kind; itself if it stands for nothing."""
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
    """What a setting of this kind can be, in words."""
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
        case inspect.ListType():
            return "a list of texts"
        case inspect.StrType(max_length=int(most)):
            return f"text of at most {most} characters"
    return "text"


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    return f"from {kind.ge} on" if kind.le is None else f"from {kind.ge} to {kind.le}"


def _bad_value(key: Key, value: Value, reason: str) -> BadValueError:
    what = f"{name_of(key)} = {_shown(repr(value.value))}"
    return BadValueError(f"{value.origin}: {what}: {reason}", key[1])
