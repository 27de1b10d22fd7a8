"""Events handled in a memory home and a project of their own."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memkit.capture.capture import Capture, project_of_event
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines, entries
from tests.capture.places import RECORDED


def prompt_id(number: int) -> str:
    return f"{number:08x}-99f1-4f0e-8a51-3f1f1a2b3c4d"


NOW = datetime(2026, 3, 4, 10, 30, tzinfo=timezone.utc).timestamp()


class Stage:
    """A memory home and a project; events are handled at once, `late` ones without more patience."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(str(root / "home"))
        self.project = Project(str(root / "project"))
        Path(self.project.root).mkdir()
        self.transcript = root / f"{SESSION}.jsonl"

    def record(self, name: str, **fields: Any) -> dict[str, Any]:
        return {
            "event": name,
            "session": SESSION,
            "transcript": str(self.transcript),
            "project": self.project.root,
            "cwd": self.project.root,
            "time": NOW,
            **fields,
        }

    def handle(
        self, name: str, *, late: bool = False, prompt: str = "", message: str = "", **fields: Any
    ) -> None:
        """Handle an event. First let Claude Code write `prompt` and `message` to the transcript, if new."""
        record = self.record(name, **fields)
        if prompt:
            self.append(lambda lines: lines.prompt(prompt, str(fields.get("prompt_id", ""))))
        if message and json.dumps(message)[1:-1] not in self.text:
            self.append(lambda lines: lines.answer(message))
        project = project_of_event(record, self.home)
        now = record["time"] + (60 if late else 0)
        Capture(self.home, Settings()).handle(record, project, now)

    @property
    def text(self) -> str:
        """The transcript's content."""
        return self.transcript.read_text() if self.transcript.is_file() else ""

    def append(self, add: Callable[[Lines], object]) -> None:
        """Let `add` add lines to the transcript."""
        lines = Lines(self.transcript.stem)
        lines.entries = [json.loads(line) for line in self.text.splitlines()]
        before = len(lines.entries)
        add(lines)
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in lines.entries[before:])

    def write(self, lines: Lines) -> None:
        self.transcript.write_text(lines.text)

    def use(self, name: str) -> Path:
        self.transcript = self.root / f"{SESSION}.jsonl"
        self.transcript.write_bytes((RECORDED / f"{name}.jsonl").read_bytes())
        return self.transcript

    @property
    def journal(self) -> str:
        """All entries of the journal."""
        return "\n".join(self.days)

    @property
    def days(self) -> list[str]:
        return [entries(path.read_text()) for path in sorted(Path(self.project.memory).glob("*.md"))]

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Title and answer of each turn in the journal."""
        found = []
        for section in itertools.chain(*(re.split(r"^(?=##)", day, flags=re.MULTILINE) for day in self.days)):
            if section.startswith("### "):
                title = re.match(r"### \S+ (.*) <!--", section)
                answer = re.search(r"^\*\*Answered\*\*\s+(.*?)\s*\Z", section, re.MULTILINE | re.DOTALL)
                found.append((title[1] if title else "", answer[1] if answer else ""))
        return found
