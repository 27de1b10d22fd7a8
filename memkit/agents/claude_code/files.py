"""Find and read what Claude Code stores: transcripts, and `history.jsonl` with the prompts users typed.

Claude Code keeps the history for longer than transcripts. A line holds `display` (the prompt, pasted text as
`[Pasted text #1 +20 lines]`), `pastedContents`, `timestamp` (ms), `project` (the working directory) and, in
newer versions, `sessionId`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from memkit.agents.claude_code.places import claude_directory, folder_of, transcripts_directory
from memkit.conversation.turn import Turn, turn_id
from memkit.conversation.values import clean, parse_time
from memkit.errors import NotFoundError, TranscriptError
from memkit.files import files_below
from memkit.privacy.redact import leaves_open, without_private
from memkit.projects.project import Project
from memkit.state import parse_json

SESSION_PREFIX = "history-"
"""Begins the name of a session made of a day's prompts, where the history names no session."""

_PASTED = re.compile(r"\[Pasted text #(\d+)[^\]\n]*\]")


class TranscriptFile(NamedTuple):
    """A transcript: the ID of its session, its path, and when it last changed (seconds since the epoch)."""

    session: str
    path: Path
    changed: float


def all_transcripts() -> list[str]:
    """Return the transcripts of all sessions on this machine."""
    directory = transcripts_directory()
    return list(map(str, transcripts_in(directory))) if directory.is_dir() else []


def history_file() -> Path:
    """Return the file of typed prompts."""
    return claude_directory() / "history.jsonl"


def session_transcripts(project: Project | None = None) -> Iterator[TranscriptFile]:
    """Yield the transcripts of sessions that began in the root of `project`, or of all sessions."""
    directory = transcripts_directory()
    name = "*" if project is None else folder_of(project.root)
    for path in sorted(directory.glob(f"{name}/*.jsonl")) if directory.is_dir() else ():
        if path.name.startswith("agent-"):  # a sub-agent's; older versions put them next to sessions
            continue
        try:
            yield TranscriptFile(path.stem, path, path.stat().st_mtime)
        except OSError:  # deleted since the listing
            continue


def transcripts_in(path: Path) -> list[Path]:
    """Return the session transcripts at or below `path`, sorted, without those of sub-agents.

    Raise `NotFoundError` if there is no such file or directory.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFoundError(f"no such file or directory: {path}")
    found = map(Path, files_below(str(path), "*.jsonl"))
    return sorted(one for one in found if "subagents" not in one.relative_to(path).parts)


class TypedPrompt(NamedTuple):
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
            yield from filter(None, map(_typed_prompt, file))
    except FileNotFoundError:
        return
    except OSError as error:
        raise TranscriptError(
            f"cannot read the prompt history {path}: {error.strerror}; make it readable"
        ) from error


def _typed_prompt(line: bytes) -> TypedPrompt | None:
    try:
        value = parse_json(line.decode("utf-8", "replace"))
        display, cwd, session = value["display"], value["project"], value.get("sessionId")
        typed = datetime.fromtimestamp(value["timestamp"] / 1000, timezone.utc)
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        return None
    time = None if value["timestamp"] is True else parse_time(typed.isoformat())
    if not isinstance(display, str) or not isinstance(cwd, str) or time is None:
        return None
    text = clean(_with_pasted(display, value.get("pastedContents"))).strip()
    if not text or text.startswith("!"):  # `!` runs a command, which is not a turn
        return None
    return TypedPrompt(text, time, clean(cwd), clean(session) if isinstance(session, str) else "")


def _with_pasted(display: str, pasted: Any) -> str:
    def content(match: re.Match[str]) -> str:
        found = pasted.get(match[1])
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) else match[0]

    return _PASTED.sub(content, display) if isinstance(pasted, dict) else display
