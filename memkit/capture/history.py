"""Reads the client's `history.jsonl`: what was typed, kept for longer than the transcripts are.

A line holds `display` (the prompt, pasted text as `[Pasted text #1 +20 lines]`), `pastedContents`,
`timestamp` (ms), `project` (the working directory) and, in newer clients, `sessionId`. It fills in the
prompts of sessions whose transcript the client has deleted; nothing else of these is left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.sessions import Sessions
from memkit.claude_code.transcript import clean, parse_time
from memkit.claude_code.turn import Turn, turn_id
from memkit.errors import ArchiveError, TranscriptError
from memkit.hook.project import Project
from memkit.journal.digest import local_time
from memkit.paths import Home
from memkit.privacy.redact import leaves_open, without_private
from memkit.state import parse_json

SESSION_PREFIX = "history-"
"""Begins the name of a session that is made of a day's prompts, because the client named none."""

_PASTED = re.compile(r"\[Pasted text #(\d+)[^\]\n]*\]")


@dataclass(frozen=True, slots=True)
class TypedPrompt:
    """One prompt a person typed: in which session (empty if the client did not say) and directory."""

    text: str
    time: datetime
    cwd: str
    session: str

    @property
    def turn(self) -> Turn:
        """The prompt as a turn to which there is no answer."""
        session = self.session or self._made_session
        key = f"{self.time.isoformat()}\0{self.text}"
        return Turn(
            id=turn_id(session, "", "", key),
            session=session,
            prompt=without_private(self.text),
            time=self.time,
            start=0,
            end=0,
            cwd=self.cwd,
            is_private=leaves_open(self.text),
        )

    @property
    def _made_session(self) -> str:
        day = local_time(self.time).date().isoformat()
        digest = hashlib.sha256(self.cwd.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        return f"{SESSION_PREFIX}{day}-{digest}"


def read_history(path: Path) -> Iterator[TypedPrompt]:
    """The prompts in the client's history, in order; lines of any other form are passed over.

    No history is an empty one. Raises `TranscriptError` if it cannot be read.
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


class SweptSessions:
    """Tells which prompts of the history belong to sessions of which there is no more than these.

    `transcripts` are the names of the transcripts that there are. To be asked after these were
    imported; asked again after the prompts were, it says the same.
    """

    def __init__(self, home: Home, transcripts: set[str]) -> None:
        self._sessions = Sessions(home)
        self._archive = Archive(home)
        self._known = dict.fromkeys(transcripts, True)
        self._days: dict[tuple[str, str], bool] = {}

    def has(self, prompt: TypedPrompt, project: Project) -> bool:
        """Whether nothing but the history holds `prompt`, which was typed in `project`.

        An older client did not say in which session: then the day must hold no session at all.
        """
        if prompt.session:
            if prompt.session not in self._known:
                self._known[prompt.session] = self._is_remembered(prompt.session)
            return not self._known[prompt.session]
        day = local_time(prompt.time).date().isoformat()
        key = (project.root, day)
        if key not in self._days:
            self._days[key] = _holds_sessions(Path(project.memory, f"{day}.md"))
        return not self._days[key]

    def _is_remembered(self, session: str) -> bool:
        if self._sessions.load(session).transcript:
            return True
        try:  # what came from the history itself has neither of the client's ids
            return any(turn.prompt_id or turn.uuid for turn in self._archive.turns(session))
        except ArchiveError:
            return True  # there is something of it, which is more than its prompts


def _holds_sessions(day: Path) -> bool:
    """Whether a day file holds a session that was not made from the history."""
    try:
        text = day.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    sessions = [
        anchors.parse(line).get("session") for line in text.splitlines() if line.startswith("## ")
    ]
    return any(session and not session.startswith(SESSION_PREFIX) for session in sessions)


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
    if not text or text.startswith(
        "!"
    ):  # `!` runs a command: the transcript's turns have none of these
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
    """`display` with what was pasted, as far as the line itself holds it."""

    def content(match: re.Match[str]) -> str:
        found = pasted.get(match[1])
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) else match[0]

    return _PASTED.sub(content, display) if isinstance(pasted, dict) else display
