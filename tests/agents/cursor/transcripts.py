"""Transcripts as Cursor writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "0f9c6a52-8d5e-4f43-9a55-3b6f0f6f7b10"
PATCH = """*** Begin Patch
*** Update File: deploy/gateway.yaml
@@
-port: 443
+port: 7443
*** Add File: /home/shop/docs/ports.md
+7443
*** End Patch"""


class Transcript:
    """A transcript under construction."""

    def __init__(self, cwd: str = "/home/shop", session: str = SESSION) -> None:
        self.cwd, self.session = cwd, session
        self.lines: list[str] = []

    def add(self, **record: Any) -> Transcript:
        self.lines.append(json.dumps(record))
        return self

    def user(self, text: str) -> Transcript:
        return self.add(role="user", message={"content": [{"type": "text", "text": text}]})

    def prompt(self, text: str, minute: int = 0) -> Transcript:
        time = f"<timestamp>Wednesday, Mar 4, 2026, 12:{minute:02d} PM (UTC+2)</timestamp>"
        return self.user(f"{time}\n<user_query>\n{text}\n</user_query>")

    def said(self, text: str, *calls: tuple[str, Any]) -> Transcript:
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        parts += [{"type": "tool_use", "name": name, "input": given} for name, given in calls]
        return self.add(role="assistant", message={"content": parts})

    def end(self, status: str = "success", **more: Any) -> Transcript:
        return self.add(type="turn_ended", status=status, **more)

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def write(self, home: Path) -> Path:
        project = home / "projects" / "home-shop"
        folder = project / "agent-transcripts" / self.session
        folder.mkdir(parents=True, exist_ok=True)
        (project / ".workspace-trusted").write_text(json.dumps({"workspacePath": self.cwd, "trustMethod": "cli-flag"}))
        path = folder / f"{self.session}.jsonl"
        path.write_text(self.text)
        return path


def conversation(cwd: str = "/home/shop") -> Transcript:
    """Two turns: a test, edits, and a background task; and one without tools."""
    transcript = Transcript(cwd).prompt("Which port does the gateway use?")
    transcript.said("I run the tests.\n\n[REDACTED]", ("Shell", {"command": "pytest -q", "description": "Run tests"}))
    transcript.said("[REDACTED]", ("ApplyPatch", PATCH), ("StrReplace", {"path": "README.md", "old_string": "a", "new_string": "b"}))
    transcript.said("", ("Grep", {"pattern": "443", "path": "/home/shop"}), ("Glob", {"glob_pattern": "*.md"}))
    notice = "<system_notification>\nThe following task has finished.\n</system_notification>"
    transcript.user(f"{notice}\n<user_query>Briefly inform the user about the task result.</user_query>")
    transcript.said("It listens on 7443.").end()
    return transcript.prompt("Thanks.", 5).said("You are welcome.").end()
