"""The provider that the settings select."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit import login
from memkit.llm import ModelError, NotConfiguredError, Provider, as_structure, find_provider
from memkit.llm.anthropic import AnthropicProvider
from memkit.llm.chat_completions import ChatCompletionsProvider
from memkit.llm.claude_cli import ClaudeCliProvider
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from tests.llm.tasks import TASK


@pytest.fixture(autouse=True)
def no_program_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a Claude Code that is installed on this machine."""
    monkeypatch.setattr(login, "_SYSTEM_PROGRAMS", ())


def find(name: str, home: Path, model: str = "", **environ: str) -> Provider:
    settings = SummarizeSettings(provider=name, model=model)  # type: ignore[arg-type]
    environ = {"PATH": str(home / "bin"), "HOME": str(home), **environ}
    return find_provider(settings, environ, Home(str(home / "memkit")))


def log_in(home: Path) -> None:
    file = home / ".claude" / ".credentials.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"claudeAiOauth": {"accessToken": "t", "scopes": ["user:inference"]}}')


def put_program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_auto_is_the_logged_in_claude_or_nothing(tmp_path: Path) -> None:
    keys = {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_AUTH_TOKEN": "t", "CLAUDE_CODE_USE_BEDROCK": "1"}
    with pytest.raises(NotConfiguredError, match="`claude` is not found; install Claude Code and log in"):
        find("auto", tmp_path, **keys)
    put_program(tmp_path / ".claude" / "local" / "claude")
    with pytest.raises(NotConfiguredError, match="Claude Code is not logged in"):
        find("auto", tmp_path, **keys)
    log_in(tmp_path)
    assert find("auto", tmp_path).name == "claude-cli"


def test_auto_hands_no_key_of_a_shell_to_claude(tmp_path: Path) -> None:
    """It would be used instead of the login."""
    log_in(tmp_path)
    put_program(
        tmp_path / ".local" / "bin" / "claude",
        f"#!/bin/sh\n/usr/bin/env > {tmp_path}/seen\n/bin/cat > {tmp_path}/stdin\n"
        'echo \'{"type":"result","structured_output":{"bullets":[]}}\'\n',
    )
    shell = {
        "ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "CLAUDE_CODE_OAUTH_TOKEN": "o", "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude"),
    }  # fmt: skip
    find("auto", tmp_path, **shell).ask(TASK)
    seen = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert seen & shell.keys() == {"CLAUDE_CONFIG_DIR"}


def test_keys_in_the_settings(tmp_path: Path) -> None:
    """A variable wins, under any of its names; a program gets no key of the settings."""
    (tmp_path / "memkit").mkdir()
    keys = "".join(f'{name} = "own"\n' for name in ("anthropic", "openai", "google"))
    (tmp_path / "memkit" / "config.toml").write_text(f"[keys]\n{keys}")
    for name, variable in (("openai", "OPENAI_API_KEY"), ("google", "GOOGLE_API_KEY")):
        for given, key in (("", "own"), (" ", "own"), ("shell", "shell")):
            found = find(name, tmp_path, **{variable: given})
            assert isinstance(found, ChatCompletionsProvider) and found._key == key
    found = find("anthropic", tmp_path)
    assert isinstance(found, AnthropicProvider) and (found._key, found._token) == ("own", "")
    found = find("anthropic", tmp_path, ANTHROPIC_AUTH_TOKEN="shell")
    assert isinstance(found, AnthropicProvider) and (found._key, found._token) == ("", "shell")
    put_program(tmp_path / "bin" / "claude")
    found = find("claude-cli", tmp_path)
    assert isinstance(found, ClaudeCliProvider) and "own" not in found._environ.values()


def test_by_name(tmp_path: Path) -> None:
    for name, missing in {
        "anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY or GOOGLE_API_KEY",
        "claude-cli": "the program `claude` is not found",
    }.items():
        with pytest.raises(NotConfiguredError, match=missing):
            find(name, tmp_path)
    put_program(tmp_path / "bin" / "claude")
    keys = {"OPENAI_API_KEY": "sk-1", "GOOGLE_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-1"}
    defaults = {"openai": "gpt-5.4-mini", "ollama": "llama3.2", "claude-cli": "haiku"}
    found = {name: find(name, tmp_path, **keys) for name in defaults}
    assert {one.name: one.model for one in found.values()} == defaults
    assert find("google", tmp_path, model="gemini-2.5-pro", **keys).model == "gemini-2.5-pro"


@pytest.mark.parametrize(("program", "said"), [
    ("#!/bin/sh\necho \"error: unknown option '--no-session-persistence'\" >&2; exit 1\n", "claude update"),
    ("#!/bin/sh\necho 'node: not found' >&2; exit 127\n", "node: not found"),
    ("#!/no/such/interpreter\n", "does not start"), ("not a program", "does not start"),
])  # fmt: skip
def test_program_that_cannot_be_used(tmp_path: Path, program: str, said: str) -> None:
    put_program(tmp_path / "bin" / "claude", program)
    provider = find("claude-cli", tmp_path)
    with pytest.raises(NotConfiguredError, match=said):
        provider.ask(TASK)


def test_a_version_without_some_options(tmp_path: Path) -> None:
    """memkit leaves out the options that Claude Code refuses, and gives the material through stdin only."""
    program = (
        "#!/bin/sh\n"
        f"cd {tmp_path}\n"
        'case "$*" in\n'
        "*--safe-mode*) echo \"error: unknown option '--safe-mode'\" >&2; exit 1;;\n"
        "*--max-turns*) echo \"error: unknown option '--max-turns'\" >&2; exit 1;;\n"
        '*) printf "%s\\n" "$@" > arguments; cat > stdin; echo asked >> log\n'
        '   echo \'{"type":"result","structured_output":{"bullets":[]}}\';;\n'
        "esac\n"
    )
    put_program(tmp_path / "bin" / "claude", program)
    provider = find("claude-cli", tmp_path, PATH=f"{tmp_path / 'bin'}:{os.defpath}")
    assert provider.ask(TASK).value == {"bullets": []}
    assert (tmp_path / "log").read_text().split() == ["asked"]
    arguments = (tmp_path / "arguments").read_text()
    assert "--safe-mode" not in arguments and "--max-turns" not in arguments
    assert "--no-session-persistence" in arguments and "disableAllHooks" in arguments
    assert "Which port?" not in arguments
    assert (tmp_path / "stdin").read_text().startswith("Which port? 7443.")
    assert list((tmp_path / "memkit" / "run" / "nowhere").iterdir()) == []


def test_an_empty_list_is_an_answer() -> None:
    for given in ({"facts": []}, '{"facts": []}', '```json\n{"facts": []}\n```'):
        assert as_structure(given, {"type": "object", "required": ["facts"]}) == {"facts": []}


def test_instructions_that_do_not_fit_an_argument(tmp_path: Path) -> None:
    put_program(tmp_path / "bin" / "claude")
    provider = find("claude-cli", tmp_path)
    for instructions in ("x" * 200_000, "a\0b"):
        task = type(TASK)(instructions, "", TASK.tool, TASK.schema)
        with pytest.raises(ModelError) as raised:
            provider.ask(task)
        assert type(raised.value) is NotConfiguredError
