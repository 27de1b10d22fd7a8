"""The original exchange, message by message: depth L3 of the memory.

It comes from the transcript while that exists, and from memkit's archive later.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memkit.agents.registry import open_transcript
from memkit.conversation.entry import Hide, TranscriptEntry
from memkit.conversation.turn import Message, ToolUse, Turn
from memkit.conversation.values import redacted, redacted_result, shell_command
from memkit.privacy.redact import without_private, without_unopened


def messages_of(
    turn: Turn,
    path: Path,
    redact: Callable[[str], str],
    hide: Hide | None = None,
) -> list[Message]:
    """Return the redacted messages of a turn that was read from the transcript at `path`.

    A turn from the history of prompts has its prompt only, one of another agent its `messages`. `hide` is as
    for `SessionFile`. Raise `TranscriptError`.
    """
    messages = []
    if turn.entries:
        names: dict[str, tuple[str, str]] = {}
        wanted = frozenset(turn.entries)
        for entry in open_transcript(path, turn.entries[0], hide):
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
    typed = entry.typed
    if typed is not None:
        typed = without_private(without_unopened(typed) if entry.queued else typed)
    is_silent = entry.is_meta or (entry.role == "user" and typed is None)
    text = "" if is_silent and not tools else redact(entry.text if typed is None else typed)
    role = "tool" if entry.role == "user" and tools and typed is None else entry.role
    return Message(role, entry.time, text, tuple(tools), turn)
