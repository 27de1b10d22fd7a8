"""Messages and tool calls, and what a tool is for, whatever its agent calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

Role = Literal["shell", "edit", "read", "list", "search", "agent", "skill", "other"]
"""`list` shows a directory; `search` looks for files or in them; `agent` starts a sub-agent."""

NAMES_FILE: frozenset[Role] = frozenset({"edit", "read", "list"})
"""The roles of tools whose main input is a path."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call, or the result of one (`result` is None for the call itself)."""

    name: str
    input: dict[str, Any] = field(default_factory=dict)
    result: str | None = None
    is_error: bool = False


class _ToolName(TypedDict):
    name: str


class ToolView(_ToolName, total=False):
    """A tool call with its input, or the result of one."""

    input: dict[str, Any]
    result: str
    is_error: bool


class MessageView(TypedDict):
    """A message as JSON. `time` is in ISO 8601."""

    role: str
    time: str | None
    turn: str | None
    text: str
    tools: list[ToolView]


@dataclass(frozen=True, slots=True)
class Message:
    """The content of one entry of the transcript; `turn` is the id of its turn."""

    role: str
    time: datetime | None
    text: str
    tools: tuple[ToolUse, ...]
    turn: str

    def texts(self) -> Iterator[str]:
        """Yield its text, and the input and results of its tools."""
        if self.text:
            yield self.text
        for tool in self.tools:
            if tool.result is not None:
                yield tool.result
            else:
                yield f"{tool.name} {json.dumps(tool.input, ensure_ascii=False)}"

    def as_dict(self) -> MessageView:
        """Return the message as `memkit transcript --json` prints it."""
        return {
            "role": self.role,
            "time": self.time.isoformat() if self.time else None,
            "turn": self.turn or None,
            "text": self.text,
            "tools": [
                {"name": t.name, "input": t.input}
                if t.result is None
                else {"name": t.name, "result": t.result, "is_error": t.is_error}
                for t in self.tools
            ],
        }
