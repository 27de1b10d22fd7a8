"""The line that comes before summaries: once, to a person, where it is true."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.hook.notices import USD_PER_MILLION
from memkit.llm import TokenUsage
from memkit.llm.anthropic import DEFAULT_MODEL
from memkit.llm.calls import ANSWER_SHARE, price
from memkit.login import DEFAULT_TOKENS
from memkit.paths import Home
from memkit.settings import Settings, load
from tests.hook.conftest import Stage

# Without CLAUDECODE, by which the hook would ignore the worker that does nothing.
TERMINAL = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
LINE = (
    "memkit: from now on your own Claude Code summarizes your sessions into the project's memory, with at most "
    "60,000 tokens a day (about $0.09 with Haiku, or a part of your plan). To turn this off, type `!memkit config set "
    "summarize.provider none` here"
)


@pytest.fixture
def user(stage: Stage) -> Stage:
    """A user whose Claude Code is logged in, and who has just installed memkit."""
    claude = stage.root / "user" / ".local" / "bin" / "claude"
    claude.parent.mkdir(parents=True)
    claude.write_text(f"#!/bin/sh\ntouch {stage.root}/claude-ran\n")
    claude.chmod(0o755)
    stage.environment["HOME"] = str(stage.root / "user")
    (stage.root / "user" / ".claude").mkdir()
    log_in(stage)
    return stage


def log_in(stage: Stage) -> None:
    login = {"claudeAiOauth": {"accessToken": "t", "scopes": ["user:inference"]}}
    credentials(stage).write_text(json.dumps(login))


def credentials(stage: Stage) -> Path:
    return stage.root / "user" / ".claude" / ".credentials.json"


@pytest.fixture(autouse=True)
def no_service(stage: Stage) -> Iterator[None]:
    """The hooks of this file start nothing but the worker that only notes its arguments."""
    yield
    assert not (stage.home / "run" / "service.lock").exists()
    assert not (stage.home / "env").exists()


def start(stage: Stage, source: str = "startup", **environment: str) -> str:
    answer = stage.run(
        "session_start", stage.event("SessionStart", source=source), environment={**TERMINAL, **environment}
    )
    lines = str(answer.json.get("systemMessage", "")).splitlines()
    return "\n".join(line for line in lines if "summar" in line)


def configure(stage: Stage, text: str, *, publish: bool) -> None:
    home = Home(str(stage.home))
    stage.home.mkdir(mode=0o700, exist_ok=True)
    Path(home.config_file).write_text(text)
    if publish:
        load.publish_hook_settings(home)


def test_the_first_session_says_it_once(user: Stage) -> None:
    assert start(user) == LINE
    announced = Path(Home(str(user.home)).announced)
    assert announced.stat().st_mode & 0o777 == 0o600
    assert start(user) == ""
    assert not (user.root / "claude-ran").exists()
    assert user.errors() == ""
    read = 1_000_000 / (1 + ANSWER_SHARE)  # its price is that of the list
    usage = TokenUsage(round(read), round(read * ANSWER_SHARE))
    assert price("claude-cli", DEFAULT_MODEL, usage) == pytest.approx(USD_PER_MILLION, abs=0.005)
    assert Settings().summarize.daily_tokens == DEFAULT_TOKENS
    shutil.rmtree(user.home)
    user.home.mkdir(mode=0o700)
    (user.home / "summaries").write_text("a file")  # what cannot be recorded comes again
    assert start(user) == start(user) == LINE
    assert "SessionStart" in user.errors()


def test_a_session_that_nobody_sees_does_not_count(user: Stage) -> None:
    for name, value in (
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("CLAUDE_CODE_ENTRYPOINT", "sdk-py"), ("CLAUDE_CODE_ENTRYPOINT", ""),
        ("CLAUDE_CODE_SESSION_ATTENDED", "0"), ("MEMKIT_CHILD", "1"),
        ("ANTHROPIC_BASE_URL", "https://gateway.example"),
    ):  # fmt: skip
        assert start(user, **{name: value}) == ""
        assert not os.path.exists(Home(str(user.home)).announced)
    for source in ("clear", "compact"):  # only the start of a session shows it
        assert start(user, source) == ""
    assert start(user, "resume") == LINE


def test_no_line_without_a_login_or_without_the_program(user: Stage) -> None:
    credentials(user).unlink()
    assert start(user, ANTHROPIC_API_KEY="sk-1") == ""
    log_in(user)
    program = user.root / "user" / ".local" / "bin" / "claude"
    program.rename(program.with_name("other"))
    assert start(user, PATH="/nowhere") == ""
    assert not os.path.exists(Home(str(user.home)).announced)


def test_the_line_heeds_published_settings(user: Stage) -> None:
    for text in ('provider = "none"', 'provider = "auto"', "daily_tokens = 0"):
        configure(user, f"[summarize]\n{text}\n", publish=True)
        assert start(user) == ""
    for provider in ("none", "auto"):  # a decision after they were published
        configure(user, "[summarize]\ndaily_tokens = 9000\n", publish=True)
        configure(user, f'[summarize]\nprovider = "{provider}"\n', publish=False)
        later = os.stat(Home(str(user.home)).hook_settings).st_mtime + 10
        os.utime(Home(str(user.home)).config_file, (later, later))
        assert start(user) == ""
        os.unlink(Home(str(user.home)).hook_settings)
        assert start(user) == ""
    configure(user, "[search]\nk = 7\n", publish=True)
    Path(Home(str(user.home)).hook_settings).write_text('{"session_start": "guide"}')  # by an earlier version
    assert start(user) == LINE
    os.unlink(Home(str(user.home)).announced)
    configure(user, "[summarize]\ndaily_tokens = 700000\n", publish=True)
    assert "at most 700,000 tokens a day (about $1.00 with Haiku" in start(user)


def test_the_first_prompt_of_a_home_says_that_memkit_records(stage: Stage) -> None:
    """A session that installs memkit sees its first hook at a prompt. Only a person's terminal counts."""

    def prompt(**environment: str) -> object:
        answer = stage.run("prompt_submit", stage.event("UserPromptSubmit", prompt="Hi"), environment=environment)
        return answer.json.get("systemMessage")

    assert prompt() is None  # `claude -p`
    first = prompt(**TERMINAL)
    assert str(first).startswith("memkit: recording this project from now on")
    assert prompt(**TERMINAL) is None
    (stage.home / "run" / "first-notice").unlink()
    (stage.home / "archive").mkdir()  # a memory that is in use
    assert prompt(**TERMINAL) is None
