"""Depth L3: the original exchange, from Claude Code's own transcript."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memkit import anchors
from memkit.capture.prompt import human_text
from memkit.capture.sessions import Sessions
from memkit.capture.transcript import Entry, Transcript
from memkit.capture.turn import Turn, read_turns
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.paths import Home


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call, or the result of one (`result` is None for the call itself)."""

    name: str
    input: dict[str, Any] = field(default_factory=dict)
    result: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """What one entry of the transcript says; `turn` is the id of the turn it belongs to."""

    role: str
    time: datetime | None
    text: str
    tools: tuple[ToolUse, ...]
    turn: str

    def as_dict(self) -> dict[str, Any]:
        """As `memkit transcript --json` prints it."""
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


def client_projects() -> Path:
    """Where Claude Code keeps its transcripts."""
    base = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    return Path(base).expanduser() / "projects"


def find_transcript(home: Home, session: str) -> Path | None:
    """The transcript of the session whose id is, or begins with, `session`; None if it is gone.

    Looks where memkit saw the session, then in the client's own folder. Raises `AmbiguousIdError`.
    """
    if not session:
        return None
    known = {
        Path(state.transcript)
        for state in Sessions(home)
        if state.transcript and anchors.safe(state.id).startswith(session)
    }
    found = {path for path in known if path.is_file()}
    if not found and "/" not in session:
        pattern = f"*/{_escape(session)}*.jsonl"
        found = set(client_projects().glob(pattern)) if client_projects().is_dir() else set()
    exact = {path for path in found if path.stem == session}
    found = exact or found
    if len({path.stem for path in found}) > 1:
        shown = ", ".join(sorted(path.stem for path in found)[:5])
        raise AmbiguousIdError(f"the session {session!r} fits several: {shown}")
    return min(found) if found else None


def _escape(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


def find_turn(path: Path, turn: str) -> Turn:
    """The turn of a transcript whose id, prompt id or uuid is, or begins with, `turn`.

    Raises `NotFoundError` or `AmbiguousIdError`.
    """
    found: dict[str, Turn] = {}
    for candidate in read_turns(Transcript(path)):
        names = (candidate.id, candidate.prompt_id, candidate.uuid)
        if turn in names:
            return candidate
        if any(name.startswith(turn) for name in names if name):
            found.setdefault(candidate.id, candidate)
    if not found:
        raise NotFoundError(f"{path} has no turn {turn!r}")
    if len(found) > 1:
        raise AmbiguousIdError(f"the turn {turn!r} fits several: {', '.join(list(found)[:5])}")
    return next(iter(found.values()))


def read_messages(path: Path, redact: Callable[[str], str]) -> Iterator[Message]:
    """All that was said in a transcript, in order, redacted; entries repeated by a resume once.

    Raises `TranscriptError`.
    """
    turns = iter(read_turns(Transcript(path)))
    current: Turn | None = None
    upcoming = next(turns, None)
    names: dict[str, str] = {}
    seen: set[str] = set()
    for entry in Transcript(path):
        if entry.uuid in seen:
            continue
        if entry.uuid:
            seen.add(entry.uuid)
        while upcoming is not None and entry.start >= upcoming.start:
            current, upcoming = upcoming, next(turns, None)
        message = _message(entry, current.id if current else "", names, redact)
        if message.text or message.tools:
            yield message


def around(messages: Iterator[Message], turn: str, context: int) -> list[Message]:
    """The messages of a turn with `context` messages before and after it."""
    before: list[Message] = []
    own: list[Message] = []
    after = 0
    for message in messages:
        if message.turn == turn:
            own.append(message)
        elif own:
            if after == context:
                break
            own.append(message)
            after += 1
        else:
            before = [*before, message][-context:] if context else []
    return before + own


def _message(
    entry: Entry, turn: str, names: dict[str, str], redact: Callable[[str], str]
) -> Message:
    tools = []
    for block in entry.blocks:
        if block.kind == "tool_use":
            names[block.tool_id] = block.tool_name
            tools.append(ToolUse(block.tool_name, _redacted(block.tool_input, redact)))
        elif block.kind == "tool_result":
            name = names.get(block.tool_id, "tool")
            tools.append(ToolUse(name, result=redact(block.text), is_error=block.is_error))
    typed = human_text(entry)
    is_silent = entry.is_meta or (entry.role == "user" and typed is None)
    text = "" if is_silent and not tools else redact(typed or entry.text)
    role = "tool" if entry.role == "user" and tools else entry.role
    return Message(role, entry.time, text, tuple(tools), turn)


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted_item(key, item, redact) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, redact) for item in value]
    return value


def _redacted_item(key: str, value: Any, redact: Callable[[str], str]) -> Any:
    """A field of a tool's input, whose name can tell that its value is a secret."""
    if not isinstance(value, str):
        return _redacted(value, redact)
    name = f"{key}="
    named = redact(name + value)
    return named.removeprefix(name) if named.startswith(name) else redact(value)
