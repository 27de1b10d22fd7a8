"""The structure in an answer: an object with the keys that the schema requires."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def as_structure(value: object, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """`value`, if it is an object that has all the keys `schema` requires; what they hold is not checked."""
    if isinstance(value, dict) and all(key in value for key in schema.get("required", ())):
        return value
    return None


def structure_in(text: object, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The structure that `text` is the JSON of, maybe in a code fence; None for any other text."""
    if not isinstance(text, str):
        return None
    fenced = _FENCED.match(text)
    try:
        return as_structure(json.loads(fenced[1] if fenced else text), schema)
    except (ValueError, RecursionError):
        return None


def count(value: object) -> int:
    """A number of tokens as providers give it; 0 for what is none."""
    return value if isinstance(value, int) and value > 0 else 0
