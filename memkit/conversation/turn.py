"""Turns: a user's prompt and everything that followed until the next one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from memkit.privacy.redact import redact, skips, visible

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


EXCERPT_CHARACTERS = 2000
"""Characters kept of each end of a tool's input and output; the digest shows a line of either."""

_CUT_CONTEXT = 1000
"""Characters behind a cut that redaction needs to recognize a secret before it."""

INTERRUPTED = re.compile(r"^\[Request interrupted by user(?: for tool use)?\]\s*$")
_UUID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
# A question to the memory is not memory: it would be the best match of the same question next time.
_OWN_SKILL = re.compile(r"^/(?:memkit:)?memory-recall\b")
SLASH_COMMAND = re.compile(r"^/[A-Za-z][\w:-]*(?:\s|$)")
_CLIENT_COMMAND = re.compile(r"^! /[A-Za-z][\w:-]*$")
"""A command of the agent, such as `/exit`, that was typed after `!`."""
_OWN_COMMAND = re.compile(r"^! (?:[\w./~-]{0,200}/)?memkit(?:\s(?:[^;&|`$\n]|\$(?!\()|\|(?!\|))*)?$")
"""One command of memkit, at most with its output piped."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary of all turns of a session so far. `uuid` is that of its entry."""

    uuid: str
    time: datetime | None
    text: str


@dataclass(slots=True)
class ToolCall:
    """One tool call: its input and its result (None until there is one). Long text is excerpted.

    `is_recall` marks a call that asked memkit. Its result is memory already, so it is not stored again.
    """

    name: str
    input: dict[str, Any]
    result: str | None = None
    is_error: bool = False
    by_agent: bool = False
    is_recall: bool = False


@dataclass(slots=True)
class Turn:
    """One prompt and what followed.

    Attributes:
        start, end: byte offsets in the transcript.
        commit: the start of the commit hash at the turn's end; transcripts lack it, so "" for imports.
        worked_since: whether tools ran after the text that is the answer so far.
        is_compacted: whether the agent compacted the conversation during the turn.
        compactions: the summaries that it wrote then. They cover all earlier turns of the session.
        is_private: whether the user left a `<private>` tag open.
        other_prompt_ids: those of prompts that the agent itself sent during the turn, such as the
            notification that a background task has finished.
        entries: the byte offsets of all entries, each once.
        messages: those of a turn that has no transcript, already redacted.
        origin: the session that a fork copied it from, if its transcript is gone and its ID there unknown.
        gap: the number of broken lines before it that may have been prompts.
    """

    id: str
    session: str
    prompt: str
    time: datetime | None
    start: int
    end: int
    prompt_id: str = ""
    uuid: str = ""
    cwd: str = ""
    branch: str = ""
    commit: str = ""
    answer: str = ""
    tools: list[ToolCall] = field(default_factory=list)
    finished: datetime | None = None
    interrupted: bool = False
    is_command: bool = False
    worked_since: bool = False
    is_compacted: bool = False
    compactions: list[Compaction] = field(default_factory=list)
    is_private: bool = False
    other_prompt_ids: set[str] = field(default_factory=set)
    entries: list[int] = field(default_factory=list)
    messages: tuple[Message, ...] = ()
    origin: str = ""
    gap: int = field(default=0, compare=False)

    @property
    def is_memory(self) -> bool:
        """Whether there is something to remember, and the user did not skip it."""
        if self.is_private or skips(self.prompt) or _OWN_SKILL.match(self.prompt):
            return False
        if _CLIENT_COMMAND.match(self.prompt) and all(call.is_error for call in self.tools):
            return False
        if _OWN_COMMAND.match(self.prompt):
            # The client has the model reply to the output, which is memory already.
            return not all(call.is_recall for call in self.tools[1:])
        if self.answer or self.tools:
            return True
        # A prompt without an answer (a crash, an API error) is still worth remembering. One that was
        # interrupted, or a command that Claude Code handled itself, is not.
        is_command = self.is_command or SLASH_COMMAND.match(self.prompt)
        return bool(self.prompt) and not self.interrupted and not is_command


def turn_id(session: str, prompt_id: str, uuid: str, fallback: str) -> str:
    """Return the id of a turn: 8 hex characters, the same whenever and from wherever it is read.

    It comes from the prompt's id, or in old transcripts from the entry's uuid. A resumed session repeats
    both, so a repeated turn keeps its id. A fork can rewrite the prompts' ids (2.1.330); `read_turns` looks
    up the former ones. A command after `!` that has the id of an earlier prompt (Claude Code 2.1.197) gets
    its own from the uuid. Ids that are not UUIDs are unique in their session, and so are those of other
    agents (`ID@AGENT`): no file of theirs can replace a turn of Claude Code.
    """
    key = prompt_id or uuid
    if not _UUID.match(key) or "@" in session:
        key = f"{session}\0{key or fallback}"
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def excerpt(text: str) -> str:
    """Return the start and end of a long input or result: a turn may have read a hundred files, and stays in
    memory.

    Redact before cutting, including some text beyond the cut: redaction would not recognize half a key, or a
    value without its name.
    """
    text = visible(text)
    if len(text) <= 2 * EXCERPT_CHARACTERS:
        return text
    near = EXCERPT_CHARACTERS + _CUT_CONTEXT
    head = redact(re.sub(r"\S{1,200}\Z", "", text[:near]))[:EXCERPT_CHARACTERS]
    tail = redact(re.sub(r"\A\S{1,200}", "", text[-near:]))[-EXCERPT_CHARACTERS:]
    head = head[:-200] + re.sub(r"\S+\Z", "", head[-200:])  # searching all of it would be slow
    tail = re.sub(r"\A\S{1,200}", "", tail)
    return f"{head}\n…\n{tail}"
