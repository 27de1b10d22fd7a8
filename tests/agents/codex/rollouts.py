"""Rollouts as Codex writes them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

SESSION = "019c8a4c-ed82-79a1-aa28-7738fc5ab61a"
PATCH = """*** Begin Patch
*** Update File: deploy/gateway.yaml
@@
-port: 443
+port: 7443
*** Add File: docs/ports.md
+7443
*** End Patch
"""


class Rollout:
    """A rollout under construction; times go up by a second a line."""

    def __init__(self, cwd: str = "/home/shop", session: str = SESSION, **meta: Any) -> None:
        self.session = session
        self.lines: list[str] = []
        self.start = 1772618400.0  # 2026-03-04T10:00:00Z
        git = {"branch": "main", "commit_hash": "ab12"}
        self.add("session_meta", id=session, cwd=cwd, cli_version="0.142.2", source="cli", git=git, **meta)

    def add(self, kind: str, **payload: Any) -> Rollout:
        moment = datetime.fromtimestamp(self.start + len(self.lines), timezone.utc)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.lines.append(json.dumps({"timestamp": time, "type": kind, "payload": payload}))
        return self

    def at(self, seconds: float) -> Rollout:
        """Let the next line have this time, in seconds since the epoch."""
        self.start = seconds - len(self.lines)
        return self

    def event(self, name: str, **fields: Any) -> Rollout:
        return self.add("event_msg", type=name, **fields)

    def said(self, role: str, text: str, **fields: Any) -> Rollout:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text}]
        return self.add("response_item", type="message", role=role, content=content, **fields)

    def prompt(self, text: str, number: int, **context: Any) -> Rollout:
        turn = f"019c8a54-09a9-79e1-9240-{number:012x}"
        self.event("task_started", turn_id=turn).add("turn_context", turn_id=turn, model="gpt-5", **context)
        return self.typed(text)

    def typed(self, text: str) -> Rollout:
        return self.said("user", text).event("user_message", message=text, images=[], local_images=[])

    def item(self, name: str, *content: dict[str, str]) -> Rollout:
        """An item that is complete, as Codex 0.171 tells a prompt."""
        return self.event("item_completed", item={"type": name, "content": list(content)})

    def answer(self, text: str) -> Rollout:
        self.event("agent_message", message=text).said("assistant", text, phase="final_answer")
        return self.event("task_complete", last_agent_message=text)

    def call(self, name: str, call: str, **given: Any) -> Rollout:
        return self.add("response_item", type="function_call", name=name, call_id=call, arguments=json.dumps(given))

    def custom(self, name: str, call: str, text: str) -> Rollout:
        return self.add("response_item", type="custom_tool_call", name=name, call_id=call, input=text)

    def output(self, call: str, text: Any) -> Rollout:
        return self.add("response_item", type="function_call_output", call_id=call, output=text)

    def ran(self, call: str, text: str, code: int = 0) -> Rollout:
        head = f"Chunk ID: 4a21d0\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n"
        return self.output(call, head + text)

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def write(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"rollout-2026-03-04T10-00-00-{self.session}.jsonl"
        path.write_text(self.text)
        return path


def conversation(cwd: str = "/home/shop") -> Rollout:
    """Two turns: a failing test and a patch; a command that goes on running, and a word in between."""
    rollout = Rollout(cwd)
    rollout.said("developer", "<permissions instructions>").said("user", "# AGENTS.md instructions for /home/shop")
    rollout.said("user", f"<environment_context>\n  <cwd>{cwd}</cwd>\n</environment_context>")
    rollout.prompt("Which port does the gateway use?", 1, cwd=cwd)
    rollout.said("assistant", "I run the tests.", phase="commentary")
    rollout.call("exec_command", "c1", cmd="pytest -q").ran("c1", "1 failed, 3 passed", 1)
    rollout.custom("apply_patch", "c2", PATCH)
    rollout.output("c2", "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n")
    rollout.said("assistant", "It is written.", phase="commentary").answer("It listens on 7443.")
    rollout.prompt("Start the server.", 2, cwd=cwd).call("exec_command", "c3", cmd="make serve")
    rollout.output("c3", "Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\nbooting\n")
    rollout.typed("On port 7443!").call("write_stdin", "c4", session_id=7, chars="")
    return rollout.ran("c4", "listens on 7443").answer("It runs.")
