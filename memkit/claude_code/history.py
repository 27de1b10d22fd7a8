"""Claude Code's `history.jsonl`: what users typed, kept for longer than the transcripts.

A line holds `display` (the prompt, pasted text as `[Pasted text #1 +20 lines]`), `pastedContents`,
`timestamp` (ms), `project` (the working directory) and, in newer versions, `sessionId`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memkit.claude_code.transcript import clean, parse_time
from memkit.claude_code.turn import Turn, turn_id
from memkit.errors import TranscriptError
from memkit.privacy.redact import leaves_open, without_private
from memkit.state import parse_json

SESSION_PREFIX = "history-"
"""Begins the name of a session made of a day's prompts, where the history names no session."""

_PASTED = re.compile(r"\[Pasted text #(\d+)[^\]\n]*\]")


@dataclass(frozen=True, slots=True)
class TypedPrompt:
    """One prompt that a user typed in `cwd`. `session` is "" if the history does not name it."""

    text: str
    time: datetime
    cwd: str
    session: str

    @property
    def day(self) -> str:
        """The local ISO date."""
        return self.time.astimezone().date().isoformat()

    @property
    def turn(self) -> Turn:
        """The prompt as a turn without an answer."""
        directory = hashlib.sha256(self.cwd.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        session = self.session or f"{SESSION_PREFIX}{self.day}-{directory}"
        return Turn(
            id=turn_id(session, "", "", f"{self.time.isoformat()}\0{self.text}"),
            session=session,
            prompt=without_private(self.text),
            time=self.time,
            start=0,
            end=0,
            cwd=self.cwd,
            is_private=leaves_open(self.text),
        )


def read_history(path: Path) -> Iterator[TypedPrompt]:
    """Yield the prompts in Claude Code's history, in order. Skip lines of any other form.

    A missing history is empty. Raise `TranscriptError` if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            for line in file:
                prompt = _prompt(line)
                if prompt is not None:
                    yield prompt
    except FileNotFoundError:
        return
    except OSError as error:
        raise TranscriptError(f"cannot read the history {path}: {error.strerror}") from error


def _prompt(line: bytes) -> TypedPrompt | None:
    try:
        value = parse_json(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    display, cwd, session = (value.get(name) for name in ("display", "project", "sessionId"))
    time = _time(value.get("timestamp"))
    if not isinstance(display, str) or not isinstance(cwd, str) or time is None:
        return None
    text = clean(_with_pasted(display, value.get("pastedContents"))).strip()
    if not text or text.startswith("!"):  # `!` runs a command, which is not a turn
        return None
    return TypedPrompt(text, time, clean(cwd), clean(session) if isinstance(session, str) else "")


def _time(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return parse_time(datetime.fromtimestamp(value / 1000, timezone.utc).isoformat())
    except (ValueError, OverflowError, OSError):
        return None


def _with_pasted(display: str, pasted: Any) -> str:
    """Return `display` with the pasted text that the line itself holds."""

    def content(match: re.Match[str]) -> str:
        found = pasted.get(match[1])
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) else match[0]

    return _PASTED.sub(content, display) if isinstance(pasted, dict) else display
