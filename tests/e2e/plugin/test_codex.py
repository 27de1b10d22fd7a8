"""memkit's hooks in the real Codex, which talks to a scripted Responses API on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.client import install_codex
from tests.e2e.plugin.user import MemkitUser

FACT = "Invoices are rounded half to even, as the tax office wants it."
PROMPT, ANSWER = "Which port does the staging gateway use?", "The staging gateway listens on 7443."
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "exec_command",
        "arguments": json.dumps({"cmd": "echo 7443"})}  # fmt: skip
MESSAGE = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
CONFIG = """model = "gpt-5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
"""


class Api(ThreadingHTTPServer):
    """Answers each request with the next of `items`, and keeps what was asked."""

    def __init__(self, *items: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.items = list(items)
        self.asked: list[list[tuple[str, str]]] = []


class Handler(BaseHTTPRequestHandler):
    server: Api

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(
            [(one["role"], part.get("text", "")) for one in body["input"] for part in one.get("content") or ()]
        )
        events = [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": self.server.items.pop(0)},
            {"type": "response.completed", "response": {"id": "r1"}},
        ]
        content = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def responses() -> Iterator[Api]:
    with Api(CALL, MESSAGE) as api:
        threading.Thread(target=api.serve_forever, args=(0.05,), daemon=True).start()
        yield api
        api.shutdown()


def test_a_session_of_codex_gets_context_and_becomes_memory(responses: Api, user: MemkitUser) -> None:
    user.plant_yesterday(FACT)
    user.home.environment["PATH"] = f"{user.home.claude.parent}{os.pathsep}{os.environ['PATH']}"
    user.run("setup", "--yes", *(word for one in ("plugin", "summaries", "import") for word in ("--skip", one)))
    user.run("setup", "--agent", "codex", "--yes")
    config = user.home.directory / ".codex" / "config.toml"
    config.write_text(CONFIG.format(port=responses.server_port))
    # A user trusts hooks in the terminal interface.
    options = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
    done = subprocess.run(
        [install_codex(), "exec", *options, PROMPT], cwd=user.home.project, env=user.home.environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first = responses.asked[0]
    assert any("- memkit:memory-recall: " in text for _, text in first)  # the list of skills
    at = first.index(("user", PROMPT))
    assert any("memkit remembers what was tried" in text for _, text in first[:at])
    assert any("memkit" in text for _, text in first[at:])
    user.wait_until_remembered()
    assert "exec_command `echo 7443` → 7443" in user.memory() and "@codex" in user.memory()
    assert "the last one ran" in user.run("status")
    user.run("import", str(config.parent / "sessions"), "--yes")
    assert user.memory().count(f"**Answered** {ANSWER}") == 1
    user.run("uninstall", "--yes")
    assert not (user.home.directory / ".codex" / "hooks.json").exists()
