"""Ollama's own endpoint against a fake server on loopback."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from memkit.llm import (ModelError, NotConfiguredError, Reply, TokenUsage, UnusableReplyError)
from memkit.llm.chat_completions import SERVICES, ChatCompletionsProvider
from memkit.settings import SummarizeSettings
from tests.llm.chat_server import Answer, ChatServer
from tests.llm.tasks import BULLETS, PROSE, SCHEMA, TASK


def chat(content: Any, reason: str = "stop", **changes: Any) -> Answer:
    """An answer as Ollama spells it."""
    body = {
        "model": "llama3.2",
        "message": {"role": "assistant", "content": content},
        "done": True,
        "done_reason": reason,
        "prompt_eval_count": 100,
        "eval_count": 20,
    }
    return Answer({**body, **changes})


def ask(server: ChatServer, answer: Answer, **environ: str) -> Reply:
    server.script = lambda received: answer
    base_url = "" if environ else server.url
    settings = SummarizeSettings(provider="ollama", base_url=base_url, timeout_seconds=30.0)
    return ChatCompletionsProvider(SERVICES["ollama"], settings, environ).ask(TASK)


def failed(server: ChatServer, answer: Answer) -> ModelError:
    with pytest.raises(ModelError) as raised:
        ask(server, answer)
    assert PROSE not in str(raised.value) and "\n" not in str(raised.value)
    assert len(server.requests) == 1
    return raised.value


def test_answer(server: ChatServer) -> None:
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


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", "http://127.0.0.1:11434/api/chat"), ("10.0.0.7", "http://10.0.0.7:11434/api/chat"),
        ("[::1]", "http://[::1]:11434/api/chat"), ("[::1]:80", "http://[::1]:80/api/chat"),
        ("https://models.example", "https://models.example/api/chat"),
    ],
)
def test_parts_of_the_address_may_be_missing(value: str, url: str) -> None:
    found = ChatCompletionsProvider(SERVICES["ollama"], SummarizeSettings(), {"OLLAMA_HOST": value})
    assert found._url == url


@pytest.mark.parametrize(
    "answer",
    [
        chat(""), chat(PROSE), chat(None), chat("{}"), chat('{"bullets": ["The'),
        chat(json.dumps(BULLETS), "length"), chat("", message=PROSE),
    ],
)
def test_unusable_answer(server: ChatServer, answer: Answer) -> None:
    error = failed(server, answer)
    assert type(error) is UnusableReplyError
    assert error.usage == TokenUsage(100, 20)


def test_errors(server: ChatServer) -> None:
    error = failed(server, Answer({"error": "model 'llama3.2' not found"}, 404))
    assert type(error) is NotConfiguredError
    assert "run `ollama pull llama3.2`" in str(error)
    server.requests.clear()
    # Newer servers say so. Another segment may fit.
    error = failed(server, Answer({"error": "the prompt exceeds the context length"}, 400))
    assert type(error) is ModelError and error.usage == TokenUsage()
    assert "exceeds the context length" in str(error)
