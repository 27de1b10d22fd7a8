"""Transcript lines as the client writes them, turns made of them, and where they are kept."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memkit.conversation.turn import ToolCall, Turn
from memkit.ipc import spool
from memkit.journal.day_file import DayFile
from memkit.journal.digest import Note, note_text
from memkit.journal.extracts import is_overview, remaining
from memkit.paths import Home
from memkit.projects.project import Project

SESSION = "3f2a9c10-7d4e-4b8a-9f15-0c6d2e8b7a44"


class Lines:
    """A transcript under construction; times go up by a second a line."""

    def __init__(self, session: str = SESSION) -> None:
        self.session = session
        self.entries: list[dict[str, Any]] = []

    def add(self, kind: str, content: Any = None, **fields: Any) -> Lines:
        number = len(self.entries)
        entry: dict[str, Any] = {
            "type": kind,
            "uuid": f"{number:08x}-aaaa-4bbb-8ccc-{self.session[:12].replace('-', '0')}",
            "sessionId": self.session,
            "timestamp": f"2026-03-04T10:{number // 60:02d}:{number % 60:02d}.000Z",
            "isSidechain": False,
            "cwd": "/home/shop",
            "gitBranch": "main",
        }
        if content is not None:
            entry["message"] = {"role": kind, "content": content}
        entry.update(fields)
        self.entries.append(entry)
        return self

    def prompt(self, text: str, prompt_id: str = "", **fields: Any) -> Lines:
        named = {"promptId": prompt_id} if prompt_id else {}
        return self.add("user", text, **named, **fields)

    def answer(self, text: str, **fields: Any) -> Lines:
        return self.add("assistant", [{"type": "text", "text": text}], **fields)

    def call(self, name: str, call_id: str, **given: Any) -> Lines:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": given}
        return self.add("assistant", [block])

    def result(self, call_id: str, output: str, *, is_error: bool = False, **fields: Any) -> Lines:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": output, "is_error": is_error}
        return self.add("user", [block], **fields)

    def fork(self, session: str, prompt_id: str) -> Lines:
        """What `--fork-session` writes (2.1.330): all copied prompts share an ID, answers name their session."""
        forked = Lines(session)
        for one in self.entries:
            copied = {**one, "sessionId": session}
            if one["type"] == "assistant":
                copied.setdefault("requestSessionId", self.session)
            else:
                copied["promptId"] = prompt_id
            forked.entries.append(copied)
        return forked

    def interrupt(self) -> Lines:
        return self.add("user", [{"type": "text", "text": "[Request interrupted by user]"}])

    @property
    def text(self) -> str:
        return "".join(json.dumps(entry) + "\n" for entry in self.entries)

    def write(self, directory: Path) -> Path:
        path = directory / f"{self.session}.jsonl"
        path.write_text(self.text)
        return path


def turn_of(prompt: str = "", answer: str = "", *calls: ToolCall, **fields: object) -> Turn:
    """A turn of 14:02 on 2026-11-20."""
    values: dict[str, object] = {
        "id": "8ad3df7f",
        "session": "fd0aee29",
        "prompt": prompt,
        "time": datetime(2026, 11, 20, 14, 2, tzinfo=timezone.utc),
        "start": 0,
        "end": 1,
        "answer": answer,
        "tools": list(calls),
        **fields,
    }
    return Turn(**values)  # type: ignore[arg-type]


def day(project: Project, name: str = "2026-11-20") -> Path:
    """The journal's file of a day."""
    return Path(project.memory) / f"{name}.md"


def entries(text: str) -> str:
    """The entries of a day: without its overview, and with both headings where a session shares its turn's."""
    lines = DayFile(text).lines
    left = remaining(lines, [n for n, line in enumerate(lines) if is_overview(line)])
    return "\n".join(lines[number] for number in left) + "\n"


def spool_turn(
    home: Home, root: str, answer: str, *, prompt: str = "What eats a zebra?", session: str = "5e55aaaa",
    prompt_id: str = "p1", **more: object,
) -> None:  # fmt: skip
    """Add a turn to a session's transcript, and spool its Stop event as a hook does."""
    path = Path(home.root).parent / "transcripts" / f"{session}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = Lines(session)
    if path.exists():
        lines.entries = [json.loads(line) for line in path.read_text().splitlines()]
    lines.prompt(prompt, prompt_id).answer(answer).write(path.parent)
    event = {"event": "Stop", "session": session, "prompt_id": prompt_id, "transcript": str(path)}
    spool.put(home, {**event, "project": root, "cwd": root, "time": 1e9, **more})


def make_note(text: str, tags: Sequence[str], now: datetime, redact: Callable[[str], str]) -> Note:
    return note_text(text, tags, redact).note(now)


def git(directory: Path | str, *arguments: str, day: str = "2026-11-01") -> str:
    """What git prints, run as somebody at noon of this day."""
    time = {f"GIT_{who}_DATE": f"{day}T12:00:00" for who in ("AUTHOR", "COMMITTER")}
    settings = ("user.name=a", "user.email=a@example.com", "protocol.file.allow=always", "init.defaultBranch=main")
    command = ["git", "-C", str(directory), *(word for one in settings for word in ("-c", one)), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | time)
    return done.stdout.strip()
