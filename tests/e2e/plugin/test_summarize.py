"""Summaries by the user's own client, whose hooks are memkit's."""

from __future__ import annotations

import json
from pathlib import Path

from memkit.llm import find_provider
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from tests.e2e.client import API_KEY
from tests.e2e.plugin.user import MemkitUser
from tests.e2e.processes import Process
from tests.e2e.waiting import wait_until
from tests.llm.tasks import BULLETS, TASK
from tests.messages_api import MessagesApi, Reply, Request, text, tool


def test_nothing_summarizes_itself(api: MessagesApi, user: MemkitUser, claude: Path, tmp_path: Path) -> None:
    """One process a call, and nothing of it in memkit: no event, no session, no worker."""
    home = user.home
    home.plugins = []
    home.plugin("marketplace", "add", str(user.plugin))
    home.plugin("install", "memkit@memkit")
    # Whoever starts the client, starts this one.
    started = tmp_path / "started"
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" >> {started}\nexec {claude} "$@"\n')
    program.chmod(0o755)
    home.environment["PATH"] = f"{program.parent}:{home.environment['PATH']}"

    # The plugin works, so it would notice.
    api.script = lambda request: [text("7443.")]
    home.run_prompt("Which port does the gateway use?")
    user.wait_until_remembered()
    user.wait_until_alone()
    remembered = user.memory()
    assert user.prompts() == ["Which port does the gateway use?"]

    seen: list[list[Process]] = []

    def answer(request: Request) -> Reply:
        # At times, the client looks for plugins that nobody uses any more, with a program of its own.
        seen.append([one for one in home.processes() if ".orphaned_at" not in one.command])
        return [tool("StructuredOutput", **BULLETS)]

    api.script = answer
    calls = len(api.model_calls)
    home.write_settings({"env": {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": API_KEY}})
    settings = SummarizeSettings(provider="auto")
    provider = find_provider(settings, home.environment, Home(str(home.memkit_home)))
    assert provider.name == "claude-cli"
    assert provider.ask(TASK).value == BULLETS

    assert len(api.model_calls) == calls + 1
    assert "memkit keeps" not in api.model_calls[-1].text
    assert [len(processes) for processes in seen] == [1], seen
    assert started.read_text().split() == ["-p"]
    user.wait_until_alone()
    assert [*home.memkit_home.glob("spool/*/*")] == []
    assert user.memory() == remembered
    assert len([*home.memkit_home.glob("sessions/*.json")]) == 1
    assert len([*home.directory.glob(".claude/projects/*/*.jsonl")]) == 1


def test_a_session_gets_bullets_with_their_proof(api: MessagesApi, user: MemkitUser) -> None:
    """By the service alone, through the real SDK; what the model invents is marked."""
    # Not variables: in a session they could be a repository's, the key and the address among them.
    user.run("config", "set", "keys.anthropic", given="sk-of-the-user")
    user.run("config", "set", "service.idle_minutes", "5")  # a round of summaries comes once a minute
    user.run("config", "set", "summarize.provider", "anthropic")
    user.run("config", "set", "summarize.wait_minutes", "0")
    user.run("config", "set", "summarize.base_url", user.home.environment["ANTHROPIC_BASE_URL"])
    bullets = [
        {"text": "The staging gateway listens on port 7443.", "kind": "decision", "turns": [1]},
        {"text": "`deploy/invented.yaml` was edited.", "kind": "change", "turns": [1]},
        {"text": "It rests on nothing.", "kind": "finding", "turns": [99]},
    ]

    def answer(request: Request) -> Reply:
        if "record_bullets" in request.tool_names:
            entry = {"number": 1, "title": "Port of the staging gateway", "bullets": bullets}
            return [tool("record_bullets", segments=[entry])]
        return [text("Port 7443, because 443 is taken by the ingress.")]

    api.script = answer
    user.home.run_prompt("Which port does the staging gateway listen on?")
    wait_until(lambda: "grip:" in user.memory(), 120, user.complaint)
    user.run("service", "stop")
    user.wait_until_alone()
    day = user.memory()
    lines = [line for line in day.splitlines() if "grip:" in line]
    assert len(lines) == 2
    assert lines[0].startswith("- Decided: The staging gateway listens on port 7443. (not checked yet) <!-- grip:")
    assert lines[1].startswith("- Changed: `deploy/invented.yaml` was edited. (unverified) <!-- grip:")
    assert day.index(lines[1]) < day.index("### ")
    assert " Port of the staging gateway <!-- session:" in day

    asked = [call for call in api.model_calls if "record_bullets" in call.tool_names]
    assert len(asked) == 1
    (total,) = json.loads(user.run("cost", "--json"))["groups"]
    assert (total["calls"], total["failed"]) == (1, 0)
    # As the scripted API counts.
    assert (total["tokens_in"], total["tokens_out"]) == (len(asked[0].text) // 4, 5)

    found = json.loads(user.run("search", "--json", "--kind", "summary", "staging gateway port"))["results"]
    summary = next(one for one in found if one["kind"] == "summary")
    (grip,) = summary["citations"]
    proof = json.loads(user.run("cite", grip, "--json"))
    assert not proof["verified"]
    assert "Port 7443, because 443 is taken by the ingress." in proof["excerpt"]
    assert proof["events"][proof["place"]]["role"] == "assistant"
    assert grip in json.loads(user.run("expand", summary["id"], "--json"))["sections"][0]["citations"]
    assert "by anthropic; 0 segments pending" in user.run("status")
