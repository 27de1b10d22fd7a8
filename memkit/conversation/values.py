"""Foreign values made safe and redacted: text, times, and the nested input and results of tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from memkit.conversation.turn import Message
from memkit.privacy.secret_values import prints_secret
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


def shell_command(given: dict[str, Any]) -> str:
    """Return the command of a call of a shell, or ""."""
    command = given.get("command")
    return command if isinstance(command, str) else ""


def redacted_result(command: str, result: str, redact: Callable[[str], str]) -> str:
    """Redact the result of a tool. The shell command can show that a bare value in it is a secret."""
    if not prints_secret(command):
        return redact(result)
    line = f"$ {' '.join(command.split())}\n"
    shown = redact(line + result)
    if not shown.startswith(line) and shown.count("\n") != result.count("\n") + 1:
        return redact(result)
    return shown.partition("\n")[2]  # the command can hold a secret too


def redacted_again(message: Message, redact: Callable[[str], str]) -> Message:
    """Redact an archived message again with the current rules and patterns."""
    tools = tuple(
        replace(
            tool,
            input=redacted(tool.input, redact),
            result=None if tool.result is None else redact(tool.result),
        )
        for tool in message.tools
    )
    return replace(message, text=redact(message.text), tools=tools)


def redacted(value: Any, redact: Callable[[str], str], depth: int = 0) -> Any:
    """Redact every string in a JSON value, including the names of fields."""
    if isinstance(value, str):
        return redact(value)
    if not isinstance(value, (dict, list)):
        return value
    if depth == MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        return [redacted(item, redact, depth + 1) for item in value]
    # `{"name": "DB_PASSWORD", "value": …}`: the name of the value is a value itself.
    names = [value[key] for key in value if key.lower() in ("name", "key") and value[key]]
    name = names[0][:100] if names and isinstance(names[0], str) else "value"
    return {
        redact(key): _redacted_field(name if key.lower() == "value" else key, item, redact)
        if isinstance(item, str)
        else redacted(item, redact, depth + 1)
        for key, item in value.items()
    }


def _redacted_field(key: str, value: str, redact: Callable[[str], str]) -> str:
    """Redact a field of a tool's input, whose name can show that its value is a secret."""
    name = f"{key}="
    named = redact(name + value)
    return named.removeprefix(name) if named.startswith(name) else redact(value)
