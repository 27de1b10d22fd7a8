"""The original exchange, message by message: depth L3 of the memory.

It comes from the transcript while that exists, and from memkit's archive later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from memkit.claude_code.transcript import MAX_DEPTH, Transcript, TranscriptEntry
from memkit.claude_code.turn import Turn, human_text
from memkit.conversation import Message, ToolUse
from memkit.privacy.redact import without_private, without_unopened
from memkit.privacy.secret_values import prints_secret


def messages_of(
    turn: Turn,
    path: Path,
    redact: Callable[[str], str],
    hide: Callable[[TranscriptEntry], TranscriptEntry] | None = None,
) -> list[Message]:
    """Return the redacted messages of a turn that was read from the transcript at `path`.

    A turn from the history of prompts has its prompt only, one of another agent its `messages`. `hide` is as
    for `Transcript`. Raise `TranscriptError`.
    """
    messages = []
    if turn.entries:
        names: dict[str, tuple[str, str]] = {}
        wanted = frozenset(turn.entries)
        for entry in Transcript(path, turn.entries[0], hide):
            if entry.start in wanted:
                messages.append(message_of(entry, turn.id, names, redact))
            if entry.start >= turn.entries[-1]:
                break
    elif turn.messages:
        messages = list(turn.messages)
    elif turn.prompt:
        messages.append(Message("user", turn.time, redact(turn.prompt), (), turn.id))
    return [message for message in messages if message.text or message.tools]


def message_of(
    entry: TranscriptEntry, turn: str, names: dict[str, tuple[str, str]], redact: Callable[[str], str]
) -> Message:
    """Return what an entry contains, redacted.

    `names` maps the IDs of tool calls to their tools and shell commands, from one entry to the next.
    """
    tools = []
    for block in entry.blocks:
        if block.kind == "tool_use":
            names[block.tool_id] = redact(block.tool_name), shell_command(block.tool_input)
            tools.append(ToolUse(names[block.tool_id][0], redacted(block.tool_input, redact)))
        elif block.kind == "tool_result":
            name, command = names.get(block.tool_id, ("tool", ""))
            result = redacted_result(command, block.text, redact)
            tools.append(ToolUse(name, result=result, is_error=block.is_error))
    typed = human_text(entry)
    if typed is not None:
        typed = without_private(without_unopened(typed) if entry.queued else typed)
    is_silent = entry.is_meta or (entry.role == "user" and typed is None)
    text = "" if is_silent and not tools else redact(entry.text if typed is None else typed)
    role = "tool" if entry.role == "user" and tools and typed is None else entry.role
    return Message(role, entry.time, text, tuple(tools), turn)


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
