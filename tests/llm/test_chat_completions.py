"""Chat completions against a fake server on loopback."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from memkit.llm import (
    ModelError,
    NotConfiguredError,
    RateLimitedError,
    RefusedError,
    Reply,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
)
from memkit.llm.chat_completions import SERVICES, ChatCompletionsProvider
from memkit.settings import SummarizeSettings
from tests.llm.chat_server import Answer, ChatServer, Received, called, completion
from tests.llm.tasks import BULLETS, PROSE, SCHEMA, TASK, TOOL, unanswered_address

KEY = "sk-test-77c2"
SOON = {"retry-after": "0.01"}
CALL = completion(called(BULLETS), "tool_calls")


def provider(server: ChatServer, name: str = "openai", **options: Any) -> ChatCompletionsProvider:
    settings = SummarizeSettings(
        model="a-model", base_url=options.pop("url", server.url), timeout_seconds=options.pop("timeout", 30.0)
    )
    environ = dict.fromkeys(SERVICES[name].keys, KEY)
    assert not options
    return ChatCompletionsProvider(SERVICES[name], settings, environ)


def failed(server: ChatServer, answer: Answer, **options: Any) -> ModelError:
    """The error of a call that is answered with `answer`, and only once."""
    server.requests.clear()
    server.script = lambda received: answer
    with pytest.raises(ModelError) as raised:
        provider(server, **options).ask(TASK)
    line = str(raised.value)
    assert "\n" not in line and KEY not in line and PROSE not in line
    assert raised.value.__cause__ is None
    assert len(server.requests) <= 1  # a repeated request would be missing in the ledger
    return raised.value


def error(status: int, message: str = "no", **more: Any) -> Answer:
    return Answer({"error": {"message": message, **more}}, status, SOON)


def test_answer(server: ChatServer) -> None:
    server.script = lambda received: CALL
    reply = provider(server).ask(TASK)
    assert reply.value == BULLETS
    assert reply.usage == TokenUsage(tokens_in=100, tokens_out=20, cache_read=40)
    assert reply.model == "a-model-1"

    (received,) = server.requests
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body["model"] == "a-model"
    assert received.body["max_tokens"] == TASK.max_tokens
    system, user = received.body["messages"]
    assert system == {"role": "system", "content": TASK.instructions}
    assert user == {"role": "user", "content": "Which port? 7443. A lone surrogate: ?."}
    assert received.body["tool_choice"] == {"type": "function", "function": {"name": TOOL}}
    assert received.body["tools"][0]["function"]["parameters"] == TASK.schema


@pytest.mark.parametrize("content", [json.dumps(BULLETS), f"```json\n{json.dumps(BULLETS, indent=1)}\n```\n"])
def test_json_in_place_of_a_call(server: ChatServer, content: str) -> None:
    """Servers without function calls answer like this."""
    server.script = lambda received: completion({"content": content})
    assert provider(server).ask(TASK).value == BULLETS


def test_counts_of_tokens(server: ChatServer) -> None:
    """Thoughts count as output; some servers count cached tokens apart."""
    usage: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 620}
    server.script = lambda received: completion(called(BULLETS), usage=usage)
    assert provider(server, "google").ask(TASK).usage.tokens_out == 520
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 900}}
    found = provider(server).ask(TASK).usage
    assert (found.tokens_in, found.cache_read) == (1000, 900)


@pytest.mark.parametrize(("answer", "kind", "usage", "said"), [
    (error(429), RateLimitedError, TokenUsage(), ""),
    (error(500, "Overloaded"), UnavailableError, None, "Overloaded"),  # it may count the tokens
    (error(504, "Overloaded"), UnavailableError, None, "Overloaded"),
    (error(503, "Overloaded"), UnavailableError, TokenUsage(), "Overloaded"),
    (error(529, "Overloaded"), UnavailableError, TokenUsage(), "Overloaded"),
    (Answer(CALL.body, share=0.5), UnavailableError, None, ""),
    (error(401, f"Incorrect API key: {KEY}"), NotConfiguredError, ..., "set OPENAI_API_KEY"),
    (error(403), NotConfiguredError, ..., "set OPENAI_API_KEY"),
    (Answer([{"error": {"code": 400, "message": "API key not valid."}}], 400), NotConfiguredError, ...,
     "OPENAI_API_KEY"),  # as Google says it
    (error(404, "no such model"), NotConfiguredError, ..., "set summarize.model"),
    (error(429, "You exceeded your quota", code="insufficient_quota"), NotConfiguredError, ..., "no credit left"),
    (error(402, "Insufficient credits"), NotConfiguredError, ..., "no credit left"),
    (Answer({}, 307), NotConfiguredError, ..., "check summarize.base_url"),
    (error(400, f"context length\nexceeded {KEY} " + "x" * 1000), ModelError, ...,
     "context length exceeded [redacted:key]"),
])  # fmt: skip
def test_failures(
    server: ChatServer, answer: Answer, kind: type[ModelError], usage: TokenUsage | None, said: str
) -> None:
    found = failed(server, answer)
    assert type(found) is kind
    assert said in str(found) and len(str(found)) < 300
    assert usage is ... or found.usage == usage


def test_retry_after(server: ChatServer) -> None:
    assert failed(server, error(429)).retry_after == 0.01
    past = Answer({}, 503, {"retry-after": formatdate(0, usegmt=True)})
    assert failed(server, past).retry_after == 0
    assert failed(server, Answer({}, 503, {"retry-after": "soon"})).retry_after is None


def test_no_answer_in_time_and_no_connection(server: ChatServer) -> None:
    is_over = threading.Event()

    def wait(received: Received) -> Answer:
        is_over.wait(60)
        return CALL

    server.script = wait
    try:
        with pytest.raises(UnavailableError, match=r"within 0\.2 s") as raised:
            provider(server, timeout=0.2).ask(TASK)
        assert raised.value.usage is None
        assert len(server.requests) == 1
    finally:
        is_over.set()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://someone:{KEY}@127.0.0.1:{closed.getsockname()[1]}/v1"
    found = failed(server, CALL, url=url)
    assert f"openai at {url.rpartition('@')[2].removesuffix('/v1')} cannot be reached" in str(found)
    assert (type(found), found.usage) == (UnavailableError, TokenUsage())
    with unanswered_address() as address:
        found = failed(server, CALL, url=f"http://{address}/v1", timeout=0.2)
    assert (type(found), found.usage) == (UnavailableError, TokenUsage())
    for url in ("nowhere", "http://[::1/v1", "http://127.0.0.1:port/v1"):
        assert type(failed(server, CALL, url=url)) is NotConfiguredError


@pytest.mark.parametrize(("answer", "kind"), [
    (completion({"content": None, "refusal": "No."}), RefusedError),
    (completion({"content": ""}, "content_filter"), RefusedError),
    (completion(called(BULLETS), "length"), UnusableReplyError),
    (completion({"content": ""}), UnusableReplyError), (completion({"content": PROSE}), UnusableReplyError),
    (completion({"content": '{"points": []}'}), UnusableReplyError),
    (completion(called('{"bullets": ["The')), UnusableReplyError),
    (completion(called('["The"]')), UnusableReplyError), (completion({}, choices=[]), UnusableReplyError),
    (completion({}, choices="none"), UnusableReplyError),
])  # fmt: skip
def test_unusable_answer(server: ChatServer, answer: Answer, kind: type[ModelError]) -> None:
    """It costs tokens like any other answer."""
    found = failed(server, answer)
    assert type(found) is kind
    assert found.usage == TokenUsage(tokens_in=100, tokens_out=20, cache_read=40)


def test_unreadable_answer(server: ChatServer) -> None:
    for body in (b"<html>", b"", b"[]", b'"yes"', b"null", b"\xff"):
        found = failed(server, Answer(body))
        assert type(found) is UnusableReplyError
        assert found.usage is None


@pytest.mark.parametrize("name", ["google", "openai"])
def test_services(name: str) -> None:
    """The request of each service to its default address, which no test can reach."""
    service = SERVICES[name]
    environ = dict.fromkeys(service.keys, KEY)
    found = ChatCompletionsProvider(service, SummarizeSettings(), environ)
    assert (found.name, found.model) == (name, service.model)
    request = found._request(TASK)
    assert request[service.limit] == TASK.max_tokens
    assert request.get("reasoning_effort") == service.extra.get("reasoning_effort")
    other = SummarizeSettings(model="another")
    found = ChatCompletionsProvider(service, other, environ)
    assert found.model == "another"
    assert "reasoning_effort" not in found._request(TASK)


def test_key_is_needed_only_at_the_usual_address(server: ChatServer) -> None:
    server.script = lambda received: CALL
    service = SERVICES["openai"]
    with pytest.raises(NotConfiguredError, match=r"config set keys.openai` in your own terminal, or set OPENAI_API_KEY there"):
        ChatCompletionsProvider(service, SummarizeSettings(), {"OPENAI_API_KEY": " "})
    with pytest.raises(NotConfiguredError, match="more than a key"):
        ChatCompletionsProvider(service, SummarizeSettings(), {"OPENAI_API_KEY": "a b"})
    settings = SummarizeSettings(base_url=server.url + "/")
    ChatCompletionsProvider(service, settings, {}).ask(TASK)
    assert "authorization" not in server.requests[-1].headers


# Ollama's own endpoint


def chat(content: Any, reason: str = "stop", **changes: Any) -> Answer:
    """An answer as Ollama spells it."""
    body = {
        "model": "llama3.2", "message": {"role": "assistant", "content": content}, "done": True,
        "done_reason": reason, "prompt_eval_count": 100, "eval_count": 20,
    }  # fmt: skip
    return Answer({**body, **changes})


def ask(server: ChatServer, answer: Answer, **environ: str) -> Reply:
    server.script = lambda received: answer
    base_url = "" if environ else server.url
    settings = SummarizeSettings(provider="ollama", base_url=base_url, timeout_seconds=30.0)
    return ChatCompletionsProvider(SERVICES["ollama"], settings, environ).ask(TASK)


def ollama_failed(server: ChatServer, answer: Answer) -> ModelError:
    with pytest.raises(ModelError) as raised:
        ask(server, answer)
    assert PROSE not in str(raised.value) and "\n" not in str(raised.value)
    assert len(server.requests) == 1
    return raised.value


def test_ollama_answer(server: ChatServer) -> None:
    """The request asks for a context that holds the material and the answer, and for the structure."""
    reply = ask(server, chat(json.dumps(BULLETS)))
    assert reply == Reply(BULLETS, TokenUsage(100, 20), "llama3.2")
    (received,) = server.requests
    assert received.path == "/api/chat"
    assert received.body == {
        "model": "llama3.2",
        "messages": [
            {"role": "system", "content": TASK.instructions},
            {"role": "user", "content": "Which port? 7443. A lone surrogate: ?."},
        ],
        "stream": False,
        "format": SCHEMA,
        "think": False,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": 8192, "num_predict": TASK.max_tokens},
    }


@pytest.mark.parametrize(("characters", "context"), [(16_000, 8_192), (48_000, 24_576), (200_000, 81_920)])
def test_the_context_grows_with_the_material(characters: int, context: int) -> None:
    provider = ChatCompletionsProvider(SERVICES["ollama"], SummarizeSettings(), {})
    request = provider._request(replace(TASK, material="a b " * (characters // 4)))
    assert request["options"]["num_ctx"] == context
    assert context > characters / 4 + TASK.max_tokens


def test_addresses(server: ChatServer) -> None:
    server.script = lambda received: chat(json.dumps(BULLETS))
    for end in ("", "/", "/v1", "/v1/"):  # in the settings
        settings = SummarizeSettings(base_url=server.url.removesuffix("/v1") + end)
        ChatCompletionsProvider(SERVICES["ollama"], settings, {"OLLAMA_HOST": "127.0.0.1:9"}).ask(TASK)
        assert server.requests[-1].path == "/api/chat"
    host, port = server.server_address[:2]
    for form in ("{host}:{port}", "http://{host}:{port}", "http://{host}:{port}/"):
        value = form.format(host=host, port=port)
        assert ask(server, chat(json.dumps(BULLETS)), OLLAMA_HOST=value).value == BULLETS


@pytest.mark.parametrize(("value", "url"), [
    ("", "http://127.0.0.1:11434/api/chat"), ("10.0.0.7", "http://10.0.0.7:11434/api/chat"),
    ("[::1]", "http://[::1]:11434/api/chat"), ("[::1]:80", "http://[::1]:80/api/chat"),
    ("https://models.example", "https://models.example/api/chat"),
])  # fmt: skip
def test_parts_of_the_address_may_be_missing(value: str, url: str) -> None:
    found = ChatCompletionsProvider(SERVICES["ollama"], SummarizeSettings(), {"OLLAMA_HOST": value})
    assert found._url == url


@pytest.mark.parametrize("answer", [
    chat(""), chat(PROSE), chat(None), chat("{}"), chat('{"bullets": ["The'),
    chat(json.dumps(BULLETS), "length"), chat("", message=PROSE),
])  # fmt: skip
def test_unusable_ollama_answer(server: ChatServer, answer: Answer) -> None:
    error = ollama_failed(server, answer)
    assert type(error) is UnusableReplyError
    assert error.usage == TokenUsage(100, 20)


def test_ollama_errors(server: ChatServer) -> None:
    error = ollama_failed(server, Answer({"error": "model 'llama3.2' not found"}, 404))
    assert type(error) is NotConfiguredError
    assert "run `ollama pull llama3.2`" in str(error)
    server.requests.clear()
    # Newer servers say so. Another segment may fit.
    error = ollama_failed(server, Answer({"error": "the prompt exceeds the context length"}, 400))
    assert type(error) is ModelError and error.usage == TokenUsage()
    assert "exceeds the context length" in str(error)
