"""Chats as Gemini CLI writes them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

SESSION = "5f0c3f5e-3b0c-4a57-9a3f-0f4a6b1f9d21"
HASH = "1b6d3c6e" * 8


def uuid(number: int) -> str:
    return f"7a3e51c0-0000-4000-8000-{number:012x}"


class Chat:
    """A chat under construction; times go up by a second a message."""

    def __init__(self, cwd: str = "/home/shop", session: str = SESSION, **fields: Any) -> None:
        self.cwd, self.session, self.count = cwd, session, 0
        self.head = {"sessionId": session, "projectHash": HASH, "startTime": self.time(0), **fields}
        self.records: list[Any] = [{**self.head, "lastUpdated": self.time(0), "kind": fields.get("kind", "main")}]

    @staticmethod
    def time(number: int) -> str:
        return f"2026-03-04T10:{number // 60:02d}:{number % 60:02d}.000Z"

    def message(self, kind: str, content: Any, number: int = 0, **fields: Any) -> Chat:
        self.count = number or self.count + 1
        message = {"id": uuid(self.count), "timestamp": self.time(self.count), "type": kind, "content": content}
        self.records.append({**message, **fields})
        return self

    def prompt(self, text: str, **fields: Any) -> Chat:
        return self.message("user", [{"text": text}], **fields)

    def said(self, text: str, *calls: dict[str, Any], number: int = 0) -> Chat:
        more = {"toolCalls": list(calls)} if calls else {}
        return self.message("gemini", text, number, thoughts=[], tokens=None, model="gemini-3-pro", **more)

    def set(self, **fields: Any) -> Chat:
        self.records.append({"$set": fields})
        return self

    def rewind(self, number: int) -> Chat:
        self.records.append({"$rewindTo": uuid(number)})
        return self

    @property
    def text(self) -> str:
        return "".join(f"{json.dumps(record)}\n" for record in self.records)

    @property
    def as_object(self) -> str:
        messages = {one["id"]: one for one in self.records if "id" in one}
        return json.dumps({**self.head, "messages": list(messages.values())}, indent=2)

    def write(self, home: Path, *, is_object: bool = False) -> Path:
        folder = home / ".gemini" / "tmp" / "shop"
        (folder / "chats").mkdir(parents=True, exist_ok=True)
        (folder / ".project_root").write_text(self.cwd)
        path = folder / "chats" / f"session-2026-03-04T10-00-{self.session[:8]}.json{'' if is_object else 'l'}"
        path.write_text(self.as_object if is_object else self.text)
        return path


def call(name: str, output: str | None, status: str = "success", **given: Any) -> dict[str, Any]:
    """A call of a tool, with the result that goes to the model."""
    tool = f"{name}-1768010961326-{zlib.crc32(str(given).encode())}"
    response = {"error" if status == "error" else "output": output}
    result = [{"functionResponse": {"id": tool, "name": name, "response": response}}]
    shown = {"displayName": name, "description": "", "renderOutputAsMarkdown": True}
    return {
        "id": tool, "name": name, "args": given, "result": None if output is None else result, "status": status,
        "timestamp": Chat.time(1), **shown,
    }  # fmt: skip


def ran(command: str, output: str, code: int = 0) -> dict[str, Any]:
    """A command of the shell. Newer versions leave out what says nothing."""
    more = f"\nExit Code: {code}" if code else ""
    text = f"<untrusted_context>\nOutput: {output or '(empty)'}{more}\nProcess Group PGID: 41\n</untrusted_context>"
    return call("run_shell_command", text, command=command, description="")


def conversation(cwd: str = "/home/shop") -> Chat:
    """Two turns: a failing test and two edits; and one without tools."""
    chat = Chat(cwd)
    context = f"<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - {cwd}\n</session_context>"
    chat.message("user", [{"text": context}])
    chat.set(messages=[chat.records.pop()]).prompt("Which port does the gateway use?").set(lastUpdated="")
    chat.said("I run the tests.").said("I run the tests.", ran("pytest -q", "1 failed, 3 passed", 1), number=3)
    edit = call("replace", "Successfully modified file.", file_path="deploy/gateway.yaml", old_string="443", new_string="7443")
    wrote = call("write_file", "Successfully created file.", file_path="/home/shop/docs/ports.md", content="7443")
    chat.message("user", [{"functionResponse": {"id": "x", "name": "run_shell_command", "response": {}}}])
    chat.said("It is written.", edit, wrote).message("info", "Gemini CLI update available!").said("It listens on 7443.")
    return chat.prompt("Thanks.").said("You are welcome.")
