"""Read untrusted JSON values, and return an empty value for a wrong type; what all readers look for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from memkit.conversation.values import clean
from memkit.files import read_head
from memkit.state import parse_json

Fields = dict[str, Any]

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INTERRUPTED = "[Request interrupted by user]"
"""What a turn says that the user broke off, as Claude Code writes it."""

HEAD_BYTES = 400


def string(value: object) -> str:
    """Return `value`, clean, if it is text."""
    return clean(value) if isinstance(value, str) else ""


def fields(value: object) -> Fields:
    """Return `value` if it is an object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Fields]:
    """Return the objects in `value` if it is a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(content: object) -> list[str]:
    """Return the texts of a message: of a string, or of the parts in a list that are no thoughts."""
    parts = content if isinstance(content, list) else [content]
    said = [one.get("text") if isinstance(one, dict) and not one.get("thought") else one for one in parts]
    return [text for text in map(string, said) if text]


def parsed(data: object) -> Fields:
    """Return the object that is written in `data`."""
    try:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return fields(parse_json(text)) if isinstance(text, str) else {}
    except ValueError:
        return {}


def head_of(path: Path) -> bytes:
    """Return the first bytes of a regular file, which tell the agent; none if it cannot be read."""
    try:
        return read_head(os.path.realpath(path), HEAD_BYTES)
    except OSError:
        return b""
