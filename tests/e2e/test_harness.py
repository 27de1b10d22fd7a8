"""The harness itself: the real client, driven with a probe plugin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import ClaudeHome, read_transcript
from tests.e2e.probe_plugin import (
    PROMPT_CONTEXT,
    SESSION_CONTEXT,
    SKILL_HEADING,
    write_probe_plugin,
)
from tests.e2e.waiting import wait_until
from tests.messages_api import Conversation, Failure, MessagesApi, Reply, Request, text, tool


class Probe:
    """The probe plugin, and what its hooks recorded."""

    def __init__(self, directory: Path, log: Path) -> None:
        self.directory = directory
        self._log = log

    @property
    def records(self) -> list[dict[str, Any]]:
        return read_transcript(self._log) if self._log.exists() else []

    @property
    def events(self) -> list[str]:
        return [record["input"]["hook_event_name"] for record in self.records]

    def input(self, event: str) -> dict[str, Any]:
        inputs = [record["input"] for record in self.records]
        (found,) = (entry for entry in inputs if entry["hook_event_name"] == event)
        return dict(found)


def prompts_in(transcript: Path) -> list[str]:
    entries = read_transcript(transcript)
    return [entry["message"]["content"] for entry in entries if entry["type"] == "user"]


@pytest.fixture
def probe(claude_home: ClaudeHome, tmp_path: Path) -> Probe:
    log = tmp_path / "events.jsonl"
    claude_home.environment["PROBE_LOG"] = str(log)
    write_probe_plugin(tmp_path / "probe")
    return Probe(tmp_path / "probe", log)


def test_session_with_tool_use(api: MessagesApi, claude_home: ClaudeHome, probe: Probe) -> None:
    (claude_home.project / "gateway.yaml").write_text("port: 7443\n")
    call = tool("Bash", command="cat gateway.yaml", description="Show the file")
    api.script = Conversation({"Which port": [[text("Let me look."), call], [text("It is 7443.")]]})
    claude_home.plugins = [probe.directory]

    result = claude_home.run_prompt("Which port is it?", "--allowedTools", "Bash")

    assert result["result"] == "It is 7443."
    assert probe.events == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    assert probe.input("UserPromptSubmit")["prompt"] == "Which port is it?"
    assert probe.input("Stop")["last_assistant_message"] == "It is 7443."
    first, last = api.model_calls
    assert "Bash" in first.tool_names
    assert SESSION_CONTEXT in first.system
    assert PROMPT_CONTEXT in first.system
    assert "port: 7443" in last.last_user_text
    assert api.subagent_calls == []
    transcript = claude_home.transcript(result["session_id"])
    assert str(transcript) == probe.input("Stop")["transcript_path"]
    answers = [e for e in read_transcript(transcript) if e["type"] == "assistant"]
    assert answers[-1]["message"]["content"] == [text("It is 7443.")]
    assert claude_home.processes() == []


def test_resumed_session(api: MessagesApi, claude_home: ClaudeHome) -> None:
    api.script = Conversation({"the first": [[text("One.")]], "the second": [[text("Two.")]]})
    session = claude_home.run_prompt("This is the first.")["session_id"]
    result = claude_home.run_prompt("And the second.", "--resume", session)
    assert result["session_id"] == session
    assert result["result"] == "Two."
    assert "One." in api.model_calls[-1].text


def test_forked_skill(api: MessagesApi, claude_home: ClaudeHome, probe: Probe) -> None:
    intruder = claude_home.project / "intruder"
    question = f"""what's the "port"; $(touch {intruder}) `touch {intruder}`?"""
    call = tool("Bash", command="probe-echo again </dev/null", description="Ask again")
    api.script = Conversation({SKILL_HEADING: [[call], [text("It is 7443.")]]})
    claude_home.plugins = [probe.directory]

    result = claude_home.run_prompt(f"/probe:ask {question}")

    assert result["result"] == "It is 7443."
    first, second = api.subagent_calls
    assert f"asked <{question}> with --stdin" in first.last_user_text
    assert "asked <> with again" in second.last_user_text
    assert not intruder.exists()
    assert len(api.model_calls) == 2
    (transcript,) = claude_home.subagent_transcripts(result["session_id"])
    assert question in read_transcript(transcript)[0]["message"]["content"]
    assert probe.input("SubagentStop")["agent_transcript_path"] == str(transcript)


def test_failing_api(api: MessagesApi, claude_home: ClaudeHome) -> None:
    failures = iter([Failure(529, "overloaded_error", "Overloaded")])

    def script(request: Request) -> Reply:
        return next(failures, [text("Now it works.")])

    api.script = script
    assert claude_home.run_prompt("Hello.")["result"] == "Now it works."

    api.script = lambda request: Failure(529, "overloaded_error", "Overloaded")
    result = claude_home.run_prompt("Hello.")
    assert result["is_error"]
    entries = read_transcript(claude_home.transcript(result["session_id"]))
    assert [entry for entry in entries if entry.get("isApiErrorMessage")]


def test_interactive_session(api: MessagesApi, claude_home: ClaudeHome, probe: Probe) -> None:
    api.script = Conversation({"Which port": [[text("It is 7443.")]]})
    claude_home.plugins = [probe.directory]
    with claude_home.start_interactive() as session:
        session.submit("Which port is it?")
        session.wait_for("It is 7443.")
        # A client that is told to exit while the hook runs may kill it.
        wait_until(lambda: "Stop" in probe.events)
        session.exit()
    assert probe.events == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    assert probe.input("SessionEnd")["reason"] == "prompt_input_exit"
    assert claude_home.transcript(session.session_id).exists()
    wait_until(lambda: claude_home.processes() == [])


def test_interrupted_turn(api: MessagesApi, claude_home: ClaudeHome) -> None:
    waiting = "import time; time.sleep(600)"
    call = tool("Bash", command=f"python3 -c '{waiting}'", description="Wait")
    api.script = Conversation({"Wait forever": [[text("Waiting."), call]]})
    with claude_home.start_interactive("--allowedTools", "Bash") as session:
        session.submit("Wait forever")
        wait_until(lambda: [p for p in claude_home.processes() if waiting in p.command])
        session.press("Escape")
        session.wait_for("Interrupted")
        transcript = claude_home.transcript(session.session_id)
        session.exit()
    assert "[Request interrupted by user" in json.dumps(read_transcript(transcript))


def test_failed_wait_shows_the_screen(claude_home: ClaudeHome) -> None:
    with claude_home.start_interactive() as session:
        session.type("half a question")
        with pytest.raises(AssertionError, match="half a question"):
            session.wait_for("an answer", timeout=0.1)


def test_killed_client(api: MessagesApi, claude_home: ClaudeHome, probe: Probe) -> None:
    released = threading.Event()

    def script(request: Request) -> Reply:
        released.wait(timeout=60)
        return [text("Too late.")]

    api.script = script
    claude_home.plugins = [probe.directory]
    client = claude_home.start_prompt("Are you there?")
    api.wait_for(lambda request: "Are you there?" in request.last_user_text)
    transcript = Path(probe.input("UserPromptSubmit")["transcript_path"])
    # The client writes it a little after it has called the API.
    wait_until(lambda: transcript.exists() and prompts_in(transcript))
    assert client.pid in [process.pid for process in claude_home.processes()]
    os.killpg(client.pid, signal.SIGKILL)
    client.wait(timeout=30)
    released.set()
    wait_until(lambda: claude_home.processes() == [])
    assert probe.events == ["SessionStart", "UserPromptSubmit"]
    assert prompts_in(transcript) == ["Are you there?"]


def test_plugin_validates(claude_home: ClaudeHome, probe: Probe) -> None:
    assert "Validation passed" in claude_home.plugin("validate", str(probe.directory))
    (probe.directory / "plugin.json").write_text("{}")
    with pytest.raises(AssertionError, match="plugin validate"):
        claude_home.plugin("validate", str(probe.directory))


def test_install_from_a_path(api: MessagesApi, claude_home: ClaudeHome, probe: Probe) -> None:
    claude_home.plugin("marketplace", "add", str(probe.directory))
    claude_home.plugin("install", "probe@probes")
    claude_home.run_prompt("Hello.")
    assert probe.events == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    assert SESSION_CONTEXT in api.model_calls[0].system
    # A marketplace that is a directory is read where it is.
    root = Path(probe.records[0]["environment"]["CLAUDE_PLUGIN_ROOT"])
    assert root.samefile(probe.directory)


def test_install_from_github(api: MessagesApi, claude_home: ClaudeHome, probe: Probe) -> None:
    identity = ["-c", "user.name=Tests", "-c", "user.email=tests@localhost"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "Probe"]):
        subprocess.run(["git", *command], cwd=probe.directory, check=True)
    claude_home.redirect_github("tests/probe", probe.directory)
    api.script = Conversation({SKILL_HEADING: [[text("Found.")]]})

    claude_home.plugin("marketplace", "add", "tests/probe")
    claude_home.plugin("install", "probe@probes")
    result = claude_home.run_prompt("/probe:ask what's installed?")

    assert result["result"] == "Found."
    (call,) = api.subagent_calls
    assert "asked <what's installed?> with --stdin" in call.last_user_text
    root = Path(probe.records[0]["environment"]["CLAUDE_PLUGIN_ROOT"])
    assert root.is_relative_to(claude_home.directory / ".claude" / "plugins" / "cache")
    assert os.access(root / "bin" / "probe-echo", os.X_OK)
    assert (root / ".claude-plugin" / "plugin.json").is_symlink()
    assert not (root / ".git").exists()
