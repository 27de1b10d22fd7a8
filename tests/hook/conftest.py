"""A stage for real hook processes: a memory home, a project, and workers that do nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memkit.hook.entries import note_own
from memkit.paths import Home

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Answer:
    status: int
    stdout: bytes
    stderr: bytes

    @property
    def json(self) -> dict[str, Any]:
        lines = self.stdout.splitlines()
        assert len(lines) == 1, self.stdout
        value = json.loads(lines[0])
        assert isinstance(value, dict)
        return value

    @property
    def context(self) -> str:
        return str(self.json["hookSpecificOutput"]["additionalContext"])


@dataclass
class Stage:
    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def started(self) -> list[str]:
        """The command lines of the workers that were started."""
        log = self.root / "started"
        return log.read_text().splitlines() if log.exists() else []

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        return {
            "hook_event_name": name, "session_id": "5a1f0c9e-8d2b-4c61-9a77-1b2c3d4e5f60",
            "transcript_path": str(self.root / "transcript.jsonl"), "cwd": str(self.project), **fields,
        }  # fmt: skip

    def run(
        self, script: str, given: Any, *, environment: dict[str, str] | None = None, **options: Any
    ) -> Answer:
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        done = subprocess.run(
            [sys.executable, "-I", str(REPOSITORY / "hooks" / f"{script}.py")], input=data,
            capture_output=True, env={**self.environment, **(environment or {})}, cwd=self.project,
            timeout=60, check=False, **options,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)

    def spooled(self) -> list[dict[str, Any]]:
        new = self.home / "spool" / "new"
        return ([json.loads(p.read_text()) for p in sorted(new.glob("*.json"))] if new.exists() else [])

    def errors(self) -> str:
        log = self.home / "log" / "hooks.log"
        return log.read_text() if log.exists() else ""

    def remember(self, day: str, *answers: str, is_own: bool = True) -> None:
        """A day with these answers; without `is_own` the home does not know that it wrote them."""
        memory = self.project / ".memkit" / "memory"
        memory.mkdir(parents=True, exist_ok=True)
        turns = "\n\n".join(
            f"### {9 + n:02d}:00 Question {n} of {day} <!-- turn:{n:08x} -->\n"
            f"**Asked** Question {n} of {day}\n**Answered** {answer}"
            for n, answer in enumerate(answers)
        )
        text = f"# {day}\n\n## 09:00 Work <!-- session:s1 -->\n\n{turns}\n"
        (memory / f"{day}.md").write_text(text, encoding="utf-8")
        if is_own:
            note_own(Home(str(self.home)), str(self.project), "", text)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path.resolve())
    stage.project.mkdir()
    recorder = stage.root / "python-that-only-notes"
    recorder.write_text(f'#!/bin/sh\necho "$@" >> "{stage.root}/started"\n')
    recorder.chmod(0o755)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "MEMKIT"))}
    stage.environment = {
        **inherited, "MEMKIT_HOME": str(stage.home), "MEMKIT_PYTHON": str(recorder),
        "MEMKIT_SERVICE_ENABLED": "false",
    }  # fmt: skip
    return stage
