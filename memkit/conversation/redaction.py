"""Redact messages, tools' input, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memkit.conversation.message import Message
from memkit.conversation.values import MAX_DEPTH
from memkit.privacy.secret_values import prints_secret


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
    return shown.removeprefix(line) if shown.startswith(line) else redact(result)


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
