"""Whether Claude Code is logged in, from files alone; the client's own word on it is in tests/e2e."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memkit import login

LOGIN = {"claudeAiOauth": {"accessToken": "t", "scopes": ["user:inference"]}}


def put(home: Path, name: str, value: Any) -> None:
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def is_logged_in(home: Path, **environ: str) -> bool:
    return login.is_logged_in({"HOME": str(home), **environ})


def test_a_login(tmp_path: Path) -> None:
    cases: list[tuple[str, Any]] = [
        (".claude/.credentials.json", LOGIN), (".claude.json", {"projects": {}, "primaryApiKey": "sk-ant-1"}),
        (".claude/settings.json", {"apiKeyHelper": "~/key.sh"}),
        (".claude/settings.json", {"env": {"ANTHROPIC_API_KEY": "sk-1"}}),
        (".claude/settings.json", {"env": {"ANTHROPIC_AUTH_TOKEN": "t"}}),
        (".claude/settings.json", {"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}),
        (".claude/settings.json", {"env": {"CLAUDE_CODE_USE_VERTEX": True}}),
    ]  # fmt: skip
    for number, (name, value) in enumerate(cases):
        home = tmp_path / str(number)
        home.mkdir()
        assert not is_logged_in(home)
        put(home, name, value)
        assert is_logged_in(home)
        assert not is_logged_in(home, CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))


def test_no_login(tmp_path: Path) -> None:
    cases: list[tuple[str, Any]] = [
        (".claude/.credentials.json", {"claudeAiOauth": {"accessToken": ""}}),
        (".claude/.credentials.json", {"claudeAiOauth": {"accessToken": "t", "scopes": ["user:profile"]}}),
        (".claude/.credentials.json", {"mcpOAuth": {"accessToken": "t"}}),
        (".claude/.credentials.json", '{"claudeAiOauth": {"accessTo'),
        (".claude/.credentials.json", "[" * 100_000), (".claude.json", {"primaryApiKey": None}),
        (".claude.json", {"primaryApiKey": ""}),
        (".claude.json", {"projects": {'/x/"primaryApiKey": "sk-1"': {}}}),
        (".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1"}}),
        (".claude/settings.json", {"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}),
        (".claude/settings.json", {"env": ["ANTHROPIC_API_KEY"]}),
        (".claude/settings.json", {"apiKeyHelper": ""}), (".claude/settings.json", "null"),
    ]  # fmt: skip
    for number, (name, value) in enumerate(cases):
        home = tmp_path / str(number)
        home.mkdir()
        put(home, name, value)
        assert not is_logged_in(home), name
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY")
    assert not is_logged_in(tmp_path, **dict.fromkeys(keys, "secret"))  # in a shell


def test_on_a_mac_the_account_stands_for_the_keychain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, ".claude.json", {"oauthAccount": {"emailAddress": "a@b.c"}})
    assert not is_logged_in(tmp_path)
    monkeypatch.setattr(login.sys, "platform", "darwin")
    assert is_logged_in(tmp_path)
    put(tmp_path, ".claude.json", {"oauthAccount": None})
    assert not is_logged_in(tmp_path)
    other = tmp_path / "config"
    put(tmp_path, "config/.claude.json", {"primaryApiKey": "sk-ant-1"})
    assert is_logged_in(tmp_path, CLAUDE_CONFIG_DIR=str(other))  # another directory
    assert not is_logged_in(tmp_path)


def test_files_that_are_not_regular_or_not_readable(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").mkdir()
    (tmp_path / ".claude").mkdir()
    os.mkfifo(tmp_path / ".claude" / ".credentials.json")
    (tmp_path / ".claude" / "settings.json").symlink_to(tmp_path / "dotfiles.json")
    assert not is_logged_in(tmp_path)
    put(tmp_path, "dotfiles.json", {"apiKeyHelper": "key"})
    assert is_logged_in(tmp_path)


def test_a_session_may_send_its_text_elsewhere(tmp_path: Path) -> None:
    for raw, own, elsewhere in (
        ({}, {}, False), ({"ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}, {}, False),
        ({"ANTHROPIC_BASE_URL": "https://gateway.example"}, {}, True),
        ({"ANTHROPIC_BASE_URL": "https://gateway.example"}, {"ANTHROPIC_BASE_URL": "https://gateway.example"}, False),
        ({"ANTHROPIC_BASE_URL": "https://theirs.example"}, {"ANTHROPIC_BASE_URL": "https://gateway.example"}, True),
        ({"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}, {"ANTHROPIC_BASE_URL": "https://gateway.example"}, True),
        ({"ANTHROPIC_BEDROCK_BASE_URL": "https://theirs.example"}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, True),
        ({"CLAUDE_CODE_USE_BEDROCK": ""}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, True),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {}, True),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {"CLAUDE_CODE_USE_BEDROCK": 1}, False),
        ({"CLAUDE_CODE_USE_BEDROCK": ""}, {}, False), ({"ANTHROPIC_API_KEY": "sk-1"}, {}, False),
    ):  # fmt: skip
        put(tmp_path, ".claude/settings.json", {"env": own})
        assert login.sends_elsewhere(raw, {"HOME": str(tmp_path)}) is elsewhere
