"""Summaries by the user's own client, whose hooks are memkit's."""

from __future__ import annotations

from pathlib import Path

from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.summarize.providers import find_provider

from ...messages_api import MessagesApi, Reply, Request, text, tool
from ...unit.summarize.tasks import BULLETS, TASK
from ..processes import Process
from .user import MemkitUser


def test_the_client_never_summarizes_itself(
    api: MessagesApi, user: MemkitUser, claude: Path, tmp_path: Path
) -> None:
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
        seen.append(home.processes())
        return [tool("StructuredOutput", **BULLETS)]

    api.script = answer
    calls = len(api.model_calls)
    settings = SummarizeSettings(provider="auto")
    environ = {k: v for k, v in home.environment.items() if k != "ANTHROPIC_API_KEY"}
    environ["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-test"
    provider = find_provider(settings, environ, Home(str(home.memkit_home)))
    assert provider.name == "claude-cli"
    assert provider.ask(TASK).value == BULLETS

    assert len(api.model_calls) == calls + 1
    assert "memkit keeps" not in api.model_calls[-1].text
    assert [len(processes) for processes in seen] == [1], seen
    assert started.read_text().split() == ["--help", "-p"]
    user.wait_until_alone()
    assert [*home.memkit_home.glob("spool/*/*")] == []
    assert user.memory() == remembered
    assert len([*home.memkit_home.glob("sessions/*.json")]) == 1
    assert len([*home.directory.glob(".claude/projects/*/*.jsonl")]) == 1
