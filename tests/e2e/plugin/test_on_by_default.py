"""Summaries without any setting: by the user's own client, after a person has read the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memkit.login import is_logged_in
from memkit.paths import Home
from tests.e2e.client import API_KEY, LOGIN, ClaudeHome
from tests.e2e.plugin.user import MemkitUser
from tests.e2e.waiting import wait_until
from tests.messages_api import MessagesApi, Reply, Request, text, tool

LINE = "from now on your own Claude Code summarizes your sessions"
BULLETS = [{"text": "The staging gateway listens on port 7443.", "kind": "decision", "turns": [1]}]


def is_memkit(request: Request) -> bool:
    return "StructuredOutput" in request.tool_names


def prepare(user: MemkitUser, claude: Path) -> None:
    """Put the client where its installer puts it, and let a segment not wait for others."""
    program = user.home.directory / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.symlink_to(claude)
    user.run("config", "set", "summarize.wait_minutes", "0")


def shows(screen: str, line: str) -> bool:
    return "".join(line.split()) in "".join(screen.split())


def test_summaries_start_after_the_line(api: MessagesApi, user: MemkitUser, claude: Path) -> None:
    prepare(user, claude)
    # The user's own gateway and key, which Claude Code itself reads from the user's settings.
    variables = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": API_KEY}
    user.home.write_settings({"env": variables})
    del user.home.environment["ANTHROPIC_API_KEY"], user.home.environment["ANTHROPIC_BASE_URL"]
    # A repository cannot pretend that somebody is there.
    (user.home.project / ".claude").mkdir()
    pretended = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
    (user.home.project / ".claude" / "settings.json").write_text(json.dumps({"env": pretended}))
    announced = Path(Home(str(user.home.memkit_home)).announced)
    was_announced: list[bool] = []

    def answer(request: Request) -> Reply:
        if is_memkit(request):
            was_announced.append(announced.exists())
            segment = {"number": 1, "title": "Port of the gateway", "bullets": BULLETS}
            return [tool("StructuredOutput", bullets=BULLETS, segments=[segment])]
        return [text("Port 7443, because 443 is taken by the ingress.")]

    api.script = answer
    user.home.run_prompt("Which port does the staging gateway listen on?")
    user.wait_until_remembered()
    user.wait_until_alone()
    assert not announced.exists()
    assert "start after the next session in a terminal has said so" in user.run("status")

    with user.home.start_interactive() as session:
        session.wait_for(LINE)
        session.wait_for("memkit config set summarize.provider none")
        user.ask(session, "And the production gateway?", "443 is taken")
        session.exit()
    wait_until(lambda: "grip:" in user.memory(), 120, user.complaint)
    user.wait_until_alone()
    assert was_announced and all(was_announced)
    assert "by claude-cli" in user.run("status")
    (total,) = json.loads(user.run("cost", "--json"))["groups"]
    assert (total["calls"], total["failed"]) == (len(was_announced), 0)

    user.run("config", "set", "recall.session_start", "entries")
    with user.home.start_interactive() as session:
        user.ask(session, "Once more?", "443 is taken")
        assert not shows(session.screen, LINE)
        session.exit()
    user.wait_until_remembered()
    # The new session was told the bullet, not the answer.
    told = [call.text for call in api.model_calls if not is_memkit(call)][-1]
    quoted = told.partition("Newest entries")[2].partition("</memory>")[0].splitlines()
    assert "- Decided: The staging gateway listens on port 7443. (not checked yet)" in quoted


@pytest.mark.parametrize("why", ["summarize.provider is none", "Claude Code is not logged in"])
def test_nothing_starts_where_summaries_are_off(api: MessagesApi, user: MemkitUser, claude: Path, why: str) -> None:
    """No error, no request, no line; not by a key that only a shell has."""
    prepare(user, claude)
    if "none" in why:
        user.home.write_settings({"env": {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": API_KEY}})
        user.run("config", "set", "summarize.provider", "none")
    assert user.home.environment["ANTHROPIC_API_KEY"]
    api.script = lambda request: [text("Port 7443.")]
    with user.home.start_interactive() as session:
        user.ask(session, "Which port?", "Port 7443")
        assert not shows(session.screen, "summar")
        session.exit()
    user.wait_until_remembered()
    user.wait_until_alone()
    assert user.prompts() == ["Which port?"]
    assert not any(map(is_memkit, api.model_calls))
    assert f"off, because {why}" in user.run("status")
    assert "summar" not in str(json.loads(user.run("doctor", "--json"))["findings"])
    assert [*user.home.memkit_home.glob("run/notices/*")] == []
    assert not Path(Home(str(user.home.memkit_home)).hook_log).exists()


def test_what_memkit_takes_for_a_login_is_one_for_the_client(claude_home: ClaudeHome) -> None:
    """`claude auth status` sends nothing either, but starts a process."""
    del claude_home.environment["ANTHROPIC_API_KEY"], claude_home.environment["ANTHROPIC_BASE_URL"]
    state, user = claude_home.directory / ".claude.json", claude_home.directory / ".claude"
    user.mkdir()
    empty = {".credentials.json": {}, "settings.json": {}, "state": {}}
    cases: list[dict[str, object]] = [
        {},
        {".credentials.json": {"claudeAiOauth": LOGIN}},
        {".credentials.json": {"claudeAiOauth": {**LOGIN, "expiresAt": 1}}},
        {".credentials.json": {"claudeAiOauth": {**LOGIN, "scopes": ["user:profile"]}}},
        {".credentials.json": {"claudeAiOauth": {**LOGIN, "accessToken": ""}}},
        {"state": {"primaryApiKey": "sk-ant-api03-test"}},
        {"state": {"oauthAccount": {"emailAddress": "a@b.c", "accountUuid": "x"}}},
        {"settings.json": {"apiKeyHelper": "echo key"}},
        {"settings.json": {"apiKeyHelper": ""}},
        {"settings.json": {"env": {"ANTHROPIC_API_KEY": "sk-1"}}},
        {"settings.json": {"env": {"ANTHROPIC_AUTH_TOKEN": "t"}}},
        {"settings.json": {"env": {"CLAUDE_CODE_OAUTH_TOKEN": "t"}}},
        {"settings.json": {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}},
        {"settings.json": {"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}},
        {"settings.json": {"env": {"CLAUDE_CODE_USE_VERTEX": "true"}}},
        {"settings.json": {"env": {"CLAUDE_CODE_USE_FOUNDRY": "on"}}},
        {"settings.json": {"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}},
        {"settings.json": {"env": {"CLAUDE_CODE_USE_GATEWAY": "1"}}},
    ]
    for case in cases:
        for name, value in {**empty, **case}.items():
            (state if name == "state" else user / name).write_text(json.dumps(value))
        status = json.loads(claude_home.auth_status())
        assert is_logged_in(claude_home.environment) == status["loggedIn"], (case, status)
