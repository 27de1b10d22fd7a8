"""The benchmark of session starts, with the real client and a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.client import API_KEY, REPOSITORY
from tests.messages_api import MessagesApi, Reply, Request, text, tool


def test_it_counts_the_sessions_that_ask(api: MessagesApi, claude: Path) -> None:
    """This model asks if the guide tells it to, and only about the tunnel."""

    def script(request: Request) -> Reply:
        is_due = "Ask it on an error" in request.text and "Open a tunnel" in request.text
        if is_due and not any(message["role"] == "assistant" for message in request.messages):
            return [tool("Bash", command="memkit search 'staging gateway'", description="Ask")]
        return [text("Done.")]

    api.script = script
    command = [str(REPOSITORY / "benchmarks" / "triggers.py"), "--variants", "guide,off", "--prompts", "1", "--json"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "ANTHROPIC", "MEMKIT_"))}
    done = subprocess.run(
        [sys.executable, *command, "--claude", str(claude)],
        env={**kept, "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": API_KEY, "IS_SANDBOX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    guide, off = json.loads(done.stdout)
    counts = {"related": 1, "unrelated": 1, "asked_unrelated": 0, "failed": 0}
    assert guide == {"variant": "guide", "asked_related": 1, **counts}
    assert off == {"variant": "off", "asked_related": 0, **counts}
    assert any("7443" in call.last_user_text for call in api.model_calls)
