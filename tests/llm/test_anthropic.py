"""The Messages API through the real SDK, against a scripted server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from memkit.llm import (
    ModelError,
    NotConfiguredError,
    RateLimitedError,
    RefusedError,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
    usage_after,
)
from memkit.llm.anthropic import AnthropicProvider
from memkit.settings import SummarizeSettings
from tests.llm.tasks import BULLETS, PROSE, TASK, TOOL, unanswered_address
from tests.messages_api import Failure, MessagesApi, Reply, Request, Stopped, Truncated, text, tool

KEY = "sk-ant-test-5e8d"
CALL = [tool(TOOL, **BULLETS)]


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as api:
        yield api


def provider(api: MessagesApi, **options: Any) -> AnthropicProvider:
    settings = SummarizeSettings(
        base_url=options.pop("base_url", api.url), timeout_seconds=options.pop("timeout", 30.0)
    )
    return AnthropicProvider(settings, {"ANTHROPIC_API_KEY": KEY}, **options)


def failed(api: MessagesApi, reply: Reply, **options: Any) -> ModelError:
    """The error of a call that is answered with `reply`, and only once."""
    before = len(api.requests)
    api.script = lambda request: reply
    with pytest.raises(ModelError) as raised:
        provider(api, **options).ask(TASK)
    line = str(raised.value)
    assert "\n" not in line and KEY not in line and PROSE not in line
    assert raised.value.__cause__ is None  # it would carry the request into a log
    assert len(api.requests) == before + 1  # a repeated request would be missing in the ledger
    return raised.value


def sent_key(request: Request) -> str:
    """The key or token of a request; newer SDKs send both the same way."""
    headers = request.headers
    return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")


def test_answer(api: MessagesApi) -> None:
    api.script = lambda request: CALL
    reply = provider(api).ask(TASK)
    assert reply.value == BULLETS
    assert (reply.usage.tokens_out, reply.usage.usd) == (5, None)
    assert reply.model == "claude-haiku-4-5"

    (request,) = api.requests
    assert reply.usage.tokens_in == len(request.text) // 4
    assert sent_key(request) == KEY
    body = request.body
    assert body["system"] == [
        {"type": "text", "text": TASK.instructions, "cache_control": {"type": "ephemeral"}}
    ]
    assert request.last_user_text == "Which port? 7443. A lone surrogate: ?."
    assert body["max_tokens"] == TASK.max_tokens
    assert body["tool_choice"] == {"type": "tool", "name": TOOL}
    assert body["tools"][0]["input_schema"] == TASK.schema


@pytest.mark.parametrize(("reply", "kind", "usage", "said"), [
    (Failure(429, "rate_limit_error", "Slow down.", {"retry-after": "3000"}), RateLimitedError, TokenUsage(), ""),
    (Failure(500, "api_error", "Overloaded"), UnavailableError, None, "Overloaded"),  # it may count the tokens
    (Failure(504, "api_error", "Overloaded"), UnavailableError, None, "Overloaded"),
    (Failure(529, "api_error", "Overloaded"), UnavailableError, TokenUsage(), "Overloaded"),
    (Truncated(CALL), UnavailableError, None, ""),
    (Failure(401, "authentication_error", f"bad key {KEY}"), NotConfiguredError, ..., "set ANTHROPIC_API_KEY"),
    (Failure(403, "authentication_error", f"bad key {KEY}"), NotConfiguredError, ..., "set ANTHROPIC_API_KEY"),
    (Failure(404, "not_found_error", "model: claude-haiku-4-5"), NotConfiguredError, ..., "set summarize.model"),
    (Failure(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
     NotConfiguredError, ..., "no credit left"),
    (Failure(400, "invalid_request_error", f"prompt is too long {KEY}\nsecond"),
     ModelError, ..., "prompt is too long [redacted:key] second"),
])  # fmt: skip
def test_failures(
    api: MessagesApi, reply: Reply, kind: type[ModelError], usage: TokenUsage | None, said: str
) -> None:
    error = failed(api, reply)
    assert type(error) is kind
    assert said in str(error)
    assert usage is ... or error.usage == usage
    assert error.concerns_all is (kind is not ModelError)  # the request for another segment may be accepted
    assert error.retry_after == (3000 if kind is RateLimitedError else None)


def test_no_answer_in_time_and_no_connection(api: MessagesApi) -> None:
    is_over = threading.Event()

    def wait(request: Request) -> Reply:
        is_over.wait(60)
        return CALL

    api.script = wait
    try:
        with pytest.raises(UnavailableError, match=r"within 0\.2 s") as raised:
            provider(api, timeout=0.2).ask(TASK)
        assert raised.value.usage is None
        assert len(api.requests) == 1
    finally:
        is_over.set()
    # The SDK brings its own copy of httpx, whose errors are of other classes.
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(UnavailableError, match="cannot be reached") as raised:
        provider(api, base_url=url).ask(TASK)
    assert raised.value.usage == TokenUsage()
    with unanswered_address() as address, pytest.raises(UnavailableError, match=r"within 0\.2 s") as raised:
        provider(api, base_url=f"http://{address}", timeout=0.2).ask(TASK)
    assert raised.value.usage == TokenUsage()


@pytest.mark.parametrize("package", ["httpx", "httpx2"])
def test_errors_of_both_copies_of_httpx(package: str) -> None:
    errors = pytest.importorskip(package)
    for name in ("ConnectTimeout", "ConnectError"):
        assert usage_after(getattr(errors, name)("no")) == TokenUsage()
    for name in ("ReadTimeout", "WriteTimeout", "ReadError", "WriteError", "RemoteProtocolError"):
        assert usage_after(getattr(errors, name)("no")) is None


@pytest.mark.parametrize(("reply", "kind"), [
    (Stopped([], "refusal"), RefusedError), (Stopped([text(PROSE)], "refusal"), RefusedError),
    (Stopped(CALL, "max_tokens"), UnusableReplyError), ([], UnusableReplyError),
    ([text("")], UnusableReplyError), ([text(PROSE)], UnusableReplyError),
    ([tool("another", **BULLETS)], UnusableReplyError), ([tool(TOOL, points=[])], UnusableReplyError),
    ([{**tool(TOOL), "input": '{"bullets": ["The'}], UnusableReplyError),
    ([{**tool(TOOL), "input": ["The"]}], UnusableReplyError),
])  # fmt: skip
def test_unusable_answer(api: MessagesApi, reply: Reply, kind: type[ModelError]) -> None:
    """It costs tokens like any other answer."""
    error = failed(api, reply)
    assert type(error) is kind
    assert not error.concerns_all
    assert error.usage.tokens_in > 0 and error.usage.tokens_out == 5


def test_settings(api: MessagesApi) -> None:
    api.script = lambda request: CALL
    environ = {"ANTHROPIC_AUTH_TOKEN": "a-token", "ANTHROPIC_BASE_URL": api.url}
    chosen = AnthropicProvider(SummarizeSettings(provider="anthropic"), environ)
    assert (chosen.name, chosen.model) == ("anthropic", "claude-haiku-4-5")
    chosen.ask(TASK)
    assert sent_key(api.requests[-1]) == "a-token"

    settings = SummarizeSettings(provider="anthropic", model="claude-sonnet-5", base_url=api.url)
    environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    AnthropicProvider(settings, environ).ask(TASK)
    assert sent_key(api.requests[-1]) == KEY
    assert api.requests[-1].body["model"] == "claude-sonnet-5"
