"""Entries: what a session file records of one message, as every reader of an agent's files yields them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

BlockKind = Literal["text", "thinking", "tool_use", "tool_result", "image"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a message. `text` is empty for a tool call, and the output for a result."""

    kind: BlockKind
    text: str = ""
    tool_id: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One entry of a session file by the user or the agent.

    Attributes:
        start, end: byte offsets in the file; `end` is where the next line begins.
        typed: what a user typed in it; None if no user typed it.
        summary: what it says if it is the summary of a compaction.
        is_api_error: whether the client wrote it in the agent's place, usually about an error.
        queued: whether the user typed it while the agent was still working.
        is_progress: whether it is a sub-agent's, inside a `progress` entry of the session (2.1.12 to 2.1.49).
        is_narration: whether it says what the agent does next, and so is no answer.
        origin: the session that a fork has copied it from; only Claude's entries name it (2.1.330).
        gap: the number of broken lines before it that may have been prompts, since reading began.
    """

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    uuid: str
    session: str
    time: datetime | None
    start: int
    end: int
    typed: str | None = None
    summary: str = ""
    prompt_id: str = ""
    cwd: str = ""
    branch: str = ""
    agent: str = ""
    is_meta: bool = False
    is_sidechain: bool = False
    is_compact_summary: bool = False
    is_api_error: bool = False
    queued: bool = False
    is_progress: bool = False
    is_narration: bool = False
    origin: str = ""
    gap: int = field(default=0, compare=False)

    @property
    def is_command(self) -> bool:
        """Whether it is a command that the user ran with `!`."""
        return self.role == "user" and any(block.kind == "tool_use" for block in self.blocks)

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks if block.kind == "text")


Hide = Callable[[TranscriptEntry], TranscriptEntry]
"""Removes from an entry what must not be read; see `memkit.agents.omitted`."""
