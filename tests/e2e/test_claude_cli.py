"""The provider `claude-cli` through the real client."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from memkit.llm import (
    ModelError,
    NotConfiguredError,
    RateLimitedError,
    RefusedError,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
)
from memkit.llm.claude_cli import ClaudeCliProvider
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from tests.e2e.client import LOGIN, ClaudeHome
from tests.e2e.waiting import wait_until
from tests.llm.tasks import BULLETS, PROSE, TASK
from tests.messages_api import Failure, MessagesApi, Reply, Request, Stopped, Truncated, text, tool

TOOL = "StructuredOutput"
"""What the client calls the tool it makes of a schema."""
CALL = [tool(TOOL, **BULLETS)]


def provider(home: ClaudeHome, timeout: float = 60.0) -> ClaudeCliProvider:
    settings = SummarizeSettings(provider="claude-cli", timeout_seconds=timeout)
    return ClaudeCliProvider(
        str(home.claude), settings, environ=home.environment, home=Home(str(home.memkit_home))
    )


def failed(api: MessagesApi, home: ClaudeHome, reply: Reply, most: int) -> ModelError:
    """The error of a call whose requests, `most` at most, are answered with `reply`."""
    api.script = lambda request: reply
    with pytest.raises(ModelError) as raised:
        provider(home).ask(TASK)
    assert "\n" not in str(raised.value) and PROSE not in str(raised.value)
    # Every request is counted, whatever came of it.
    requests = api.model_calls
    assert len(requests) <= most
    usage = raised.value.usage
    if isinstance(reply, Truncated) or (isinstance(reply, Failure) and reply.status == 500):
        assert usage is None  # it counts as estimated
    elif isinstance(reply, Failure):
        assert usage == TokenUsage()
    else:
        assert usage is not None
        read = sum(len(request.text) // 4 for request in requests)
        assert (usage.tokens_in, usage.tokens_out) == (read, 5 * len(requests))
    return raised.value


def test_answer(api: MessagesApi, claude_home: ClaudeHome) -> None:
    api.script = lambda request: CALL
    reply = provider(claude_home).ask(TASK)
    assert reply.value == BULLETS
    assert reply.model.startswith("claude-haiku-")  # which one `haiku` is, the client decides
    (request,) = api.model_calls
    assert reply.usage.tokens_in == len(request.text) // 4
    assert reply.usage.tokens_out == 5
    assert reply.usage.usd and reply.usage.usd > 0
    assert TASK.instructions in request.system
    assert request.last_user_text.endswith("Which port? 7443. A lone surrogate: ?.")
    # Newer clients put a tool that does nothing in the place of those that are off.
    assert request.tool_names - {"DeferredToolPlaceholder"} == {TOOL}
    assert request.body["max_tokens"] == TASK.max_tokens
    # Never a budget of thousands; the newest client leaves it to the model, whatever it is told.
    assert request.body["thinking"]["type"] in ("disabled", "adaptive")


def test_nothing_of_the_user_takes_part(api: MessagesApi, claude_home: ClaudeHome) -> None:
    """No hooks, memory files, servers or skills; the user's way to log in does."""
    api.script = lambda request: CALL
    (claude_home.directory / ".claude").mkdir()
    (claude_home.directory / ".claude" / "CLAUDE.md").write_text("Be a pirate.")
    (claude_home.directory / "CLAUDE.md").write_text("Be a pirate.")
    ran = claude_home.directory / "ran"
    hook = {"hooks": [{"type": "command", "command": f"touch {ran}"}]}
    key = claude_home.directory / "key.sh"
    key.write_text("#!/bin/sh\necho sk-of-a-helper\n")
    key.chmod(0o755)
    events = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
    hooks = {event: [hook] for event in events}
    claude_home.write_settings({"apiKeyHelper": str(key), "hooks": hooks})
    del claude_home.environment["ANTHROPIC_API_KEY"]

    assert provider(claude_home).ask(TASK).value == BULLETS

    (request,) = api.model_calls
    assert request.headers["x-api-key"] == "sk-of-a-helper"
    assert "pirate" not in request.text
    assert not ran.exists()
    assert list(claude_home.directory.glob(".claude/projects/**/*.jsonl")) == []
    nowhere = Path(Home(str(claude_home.memkit_home)).nowhere)
    assert list(nowhere.iterdir()) == [] and nowhere.stat().st_mode & 0o777 == 0o700
    wait_until(lambda: not claude_home.processes())


def test_variables_in_the_settings_of_the_user(api: MessagesApi, claude_home: ClaudeHome) -> None:
    """They may hold the login, but change neither the number of requests nor the length of the answer."""
    variables = {
        "CLAUDE_CODE_MAX_RETRIES": "3",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000",
        "CLAUDE_CODE_EFFORT_LEVEL": "high",
        "MAX_THINKING_TOKENS": "31999",
        "ANTHROPIC_API_KEY": "sk-of-the-settings",
    }
    claude_home.write_settings({"env": variables})
    failed(api, claude_home, Failure(529, "overloaded_error", "Overloaded"), most=1)
    (request,) = api.model_calls
    assert request.headers["x-api-key"] == "sk-of-the-settings"
    assert request.body["max_tokens"] == TASK.max_tokens
    assert request.body["thinking"]["type"] in ("disabled", "adaptive")
    assert request.body.get("output_config", {}).get("effort") in ("low", None)


def test_log_in_of_a_subscription(api: MessagesApi, claude_home: ClaudeHome) -> None:
    api.script = lambda request: CALL
    del claude_home.environment["ANTHROPIC_API_KEY"]
    file = claude_home.directory / ".claude" / ".credentials.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"claudeAiOauth": LOGIN}))
    assert provider(claude_home).ask(TASK).value == BULLETS
    assert api.model_calls[0].headers["authorization"] == "Bearer sk-ant-oat01-test"


def test_not_logged_in(api: MessagesApi, claude_home: ClaudeHome) -> None:
    del claude_home.environment["ANTHROPIC_API_KEY"]
    with pytest.raises(NotConfiguredError, match="log in with /login"):
        provider(claude_home).ask(TASK)
    assert api.model_calls == []


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (Failure(429, "rate_limit_error", "Slow.", {"retry-after": "1"}), RateLimitedError, "429"),
        (Failure(529, "overloaded_error", "Overloaded"), UnavailableError, "529"),
        (Failure(500, "api_error", "Internal"), UnavailableError, "500"),
        (Failure(401, "authentication_error", "invalid"), NotConfiguredError, "log in"),
        (Failure(404, "not_found_error", "model"), NotConfiguredError, "summarize.model"),
        (
            Failure(400, "invalid_request_error", "Your credit balance is too low to access."),
            NotConfiguredError,
            "no credit left",
        ),
        (Failure(400, "invalid_request_error", "prompt is too long: 3 > 2"), ModelError, "too long"),
        (Truncated([text(PROSE)]), UnavailableError, "unavailable"),
        (Stopped([text("")], "refusal"), RefusedError, "declined"),
        (Stopped([text(PROSE)], "max_tokens"), UnusableReplyError, "cut short"),
        ([text("")], UnusableReplyError, "no usable answer"),
        ([text(PROSE)], UnusableReplyError, "no usable answer"),
        ([tool(TOOL, bullets="none")], UnusableReplyError, "no usable answer"),
        ([{**tool(TOOL), "input": '{"bullets": ["The'}], UnusableReplyError, "no usable answer"),
        ([tool("Bash", command="touch ~/ran")], UnusableReplyError, "no usable answer"),
    ],
    ids=[
        "429", "529", "500", "401", "404", "no credit", "too long", "truncated stream", "refusal",
        "cut short", "empty text", "answers the user", "wrong type", "malformed input", "another tool",
    ],
)  # fmt: skip
def test_no_answer(
    api: MessagesApi, claude_home: ClaudeHome, reply: Reply, kind: type[ModelError], said: str,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """The client makes one request, and on its own goes on with an answer that was cut short or empty."""
    most = {"404": 2, "cut short": 4, "empty text": 2}.get(request.node.callspec.id, 1)
    error = failed(api, claude_home, reply, most)
    assert type(error) is kind
    assert said in str(error)
    assert not (claude_home.directory / "ran").exists()


def test_no_connection_costs_nothing(claude_home: ClaudeHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        claude_home.environment["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(UnavailableError) as raised:
        provider(claude_home).ask(TASK)
    assert raised.value.usage == TokenUsage()


def test_no_answer_in_time(api: MessagesApi, claude_home: ClaudeHome) -> None:
    """Then neither the client nor what it started is left."""
    is_over = threading.Event()

    def wait(request: Request) -> Reply:
        is_over.wait(60)
        return CALL

    api.script = wait
    try:
        with pytest.raises(UnavailableError, match="within 3 s") as raised:
            provider(claude_home, timeout=3).ask(TASK)
        assert raised.value.usage is None
        wait_until(lambda: not claude_home.processes())
    finally:
        is_over.set()


def test_neither_a_mode_of_the_user_nor_a_session_around_it_stops_it(api: MessagesApi, claude_home: ClaudeHome) -> None:
    """Claude Code refuses `bypassPermissions` to root, and to start in its own session. An empty list is an answer."""
    api.script = lambda request: [tool(TOOL, bullets=[])]
    claude_home.environment |= {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
    claude_home.environment.pop("IS_SANDBOX", None)  # with it, root may skip permissions
    claude_home.write_settings({"permissions": {"defaultMode": "bypassPermissions"}})
    assert provider(claude_home).ask(TASK).value == {"bullets": []}


def test_nothing_of_it_outlives_memkit(api: MessagesApi, claude_home: ClaudeHome) -> None:
    """Not even while it waits for an answer that does not come."""
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(request: Request) -> Reply:
        is_asked.set()
        may_answer.wait(60)
        return CALL

    api.script = wait
    code = (
        "import os, sys; from memkit.llm.claude_cli import ClaudeCliProvider; from memkit.paths import Home\n"
        "from memkit.settings import SummarizeSettings; from tests.llm.tasks import TASK\n"
        "settings = SummarizeSettings(provider='claude-cli')\n"
        "ClaudeCliProvider(sys.argv[1], settings, os.environ, Home(sys.argv[2])).ask(TASK)"
    )
    command = [sys.executable, "-c", code, str(claude_home.claude), str(claude_home.memkit_home)]
    root = str(Path(__file__).parents[2])
    asking = subprocess.Popen(command, env={**claude_home.environment, "PYTHONPATH": root})
    assert is_asked.wait(60)
    started = psutil.Process(asking.pid).children(recursive=True)
    asking.terminate()
    assert asking.wait(60) == 128 + signal.SIGTERM
    assert started
    wait_until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in started))
    may_answer.set()
