"""Values of JSON that anybody may have written: each of the kind that the reader wants, else an empty one."""

from __future__ import annotations

from typing import Any

from memkit.conversation.values import clean
from memkit.state import parse_json

Fields = dict[str, Any]


def string(value: object) -> str:
    """Return `value`, clean, if it is text."""
    return clean(value) if isinstance(value, str) else ""


def fields(value: object) -> Fields:
    """Return `value` if it is an object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Fields]:
    """Return the objects in `value` if it is a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def parsed(data: object) -> Fields:
    """Return the object that is written in `data`."""
    try:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return fields(parse_json(text)) if isinstance(text, str) else {}
    except ValueError:
        return {}
