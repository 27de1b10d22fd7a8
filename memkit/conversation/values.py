"""Foreign values made safe: text, times, and the nested input of tools."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from memkit.text import encodable

MAX_DEPTH = 20
"""Depth of lists and objects in a tool's input; deeper ones are left out."""

_YEARS = (1970, 9000)  # beyond these, converting a time zone or subtracting a day may overflow


def cleaned(value: Any, depth: int = 0) -> Any:
    """Return `value` with clean text, down to `MAX_DEPTH`: later recursion must not run out of stack."""
    if isinstance(value, str):
        return clean(value)
    if not isinstance(value, (dict, list)):
        return value
    if depth == MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        return [cleaned(item, depth + 1) for item in value]
    return {clean(key): cleaned(item, depth + 1) for key, item in value.items()}


def clean(text: str) -> str:
    """Return `text` as a UTF-8 file can hold it: replace lone surrogates, and remove NUL.

    NUL leaves nothing in its place, so that it cannot hide a secret from redaction.
    """
    return encodable(text).replace("\x00", "")


def parse_time(value: object) -> datetime | None:
    """Parse an ISO 8601 time; UTC if it has no zone. Return None if it is invalid or absurd."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    if not _YEARS[0] <= parsed.year <= _YEARS[1]:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)
