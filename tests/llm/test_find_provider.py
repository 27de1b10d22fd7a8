"""The provider that the settings select."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.llm import ModelError, NotConfiguredError, Provider, claude_cli, find_provider
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from tests.llm.tasks import TASK


@pytest.fixture(autouse=True)
def no_program_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a Claude Code that is installed on this machine."""
    monkeypatch.setattr(claude_cli, "_SYSTEM_PROGRAMS", ())


def find(name: str, home: Path, model: str = "", **environ: str) -> Provider:
    settings = SummarizeSettings(provider=name, model=model)  # type: ignore[arg-type]
    environ = {"PATH": str(home / "bin"), "HOME": str(home), **environ}
    return find_provider(settings, environ, Home(str(home / "memkit")))


def put_program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o755)


def test_auto(tmp_path: Path) -> None:
    with pytest.raises(NotConfiguredError, match="set ANTHROPIC_API_KEY, install Claude Code"):
        find("auto", tmp_path, OPENAI_API_KEY="sk-1")
    put_program(tmp_path / ".claude" / "local" / "claude")
    assert find("auto", tmp_path).name == "claude-cli"
    assert find("auto", tmp_path, ANTHROPIC_API_KEY="sk-1").name == "anthropic"
    assert find("auto", tmp_path, ANTHROPIC_AUTH_TOKEN="t").name == "anthropic"


def test_by_name(tmp_path: Path) -> None:
    found = find("openai", tmp_path, OPENAI_API_KEY="sk-1")
    assert (found.name, found.model) == ("openai", "gpt-5-mini")
    found = find("google", tmp_path, model="gemini-2.5-pro", GOOGLE_API_KEY="sk-1")
    assert (found.name, found.model) == ("google", "gemini-2.5-pro")
    found = find("ollama", tmp_path)
    assert (found.name, found.model) == ("ollama", "llama3.2")
    put_program(tmp_path / "bin" / "claude")
    found = find("claude-cli", tmp_path, ANTHROPIC_API_KEY="sk-1")
    assert (found.name, found.model) == ("claude-cli", "haiku")


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("google", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("claude-cli", "the program claude is not found"),
    ],
)
def test_missing_key_or_program(tmp_path: Path, name: str, missing: str) -> None:
    with pytest.raises(NotConfiguredError, match=missing):
        find(name, tmp_path)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("#!/bin/sh\necho \"error: unknown option '--no-session-persistence'\" >&2; exit 1\n", "claude update"),
        ("#!/bin/sh\necho 'node: not found' >&2; exit 127\n", "node: not found"),
        ("#!/no/such/interpreter\n", "does not start"),
        ("not a program", "does not start"),
    ],
)
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


def test_instructions_that_do_not_fit_an_argument(tmp_path: Path) -> None:
    put_program(tmp_path / "bin" / "claude")
    provider = find("claude-cli", tmp_path)
    for instructions in ("x" * 200_000, "a\0b"):
        task = type(TASK)(instructions, "", TASK.tool, TASK.schema)
        with pytest.raises(ModelError) as raised:
            provider.ask(task)
        assert type(raised.value) is NotConfiguredError
