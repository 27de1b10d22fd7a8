"""A model call: the task, the reply, and the protocol that every provider follows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memkit.llm.errors import NotConfiguredError, TokenUsage
from memkit.state import parse_json

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Task:
    """One call of a model.

    Attributes:
        instructions: the model's job, from memkit or the user's own prompt file. Many calls share them,
            so a provider can cache them.
        material: the text to work on. It is data, never instructions.
        tool: name of the structure to answer in.
        schema: JSON schema of that structure, an object.
        max_tokens: the longest answer.
    """

    instructions: str
    material: str
    tool: str
    schema: dict[str, Any]
    max_tokens: int = 4_000


@dataclass(frozen=True, slots=True)
class Reply:
    """The structure a model answered with, not checked against the schema, and the tokens it used."""

    value: dict[str, Any]
    usage: TokenUsage
    model: str


class Provider(Protocol):
    """A way to reach a model."""

    name: str
    """As in `summarize.provider`, never `auto`."""

    model: str
    """The model that is requested."""

    def ask(self, task: Task) -> Reply:
        """Make one call. Raise `ModelError`."""
        ...


def find_key(environ: Mapping[str, str], *variables: str) -> str:
    """Return the value of the first of these variables that is set, or "".

    Raise `NotConfiguredError` if the value cannot be a key.
    """
    for variable in variables:
        if key := environ.get(variable, "").strip():
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise NotConfiguredError(
                    f"{variable} holds more than a key (a blank, a line end, …); set it to the key alone"
                )
            return key
    return ""


def as_structure(value: object, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `value` if it is an object with all keys that `schema` requires. Values are not checked."""
    if isinstance(value, dict) and all(key in value for key in schema.get("required", ())):
        return value
    return None


def structure_in(text: object, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the structure whose JSON is `text`, maybe in a code fence, or None for any other text."""
    if not isinstance(text, str):
        return None
    fenced = _FENCED.match(text)
    try:
        return as_structure(parse_json(fenced[1] if fenced else text), schema)
    except ValueError:
        return None


def token_count(value: object) -> int:
    """Return a number of tokens as providers report it, or 0 for any other value."""
    return value if isinstance(value, int) and value > 0 else 0
