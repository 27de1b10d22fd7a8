"""The output of Claude Code, also of old versions; `tests/e2e` runs the real one."""

from __future__ import annotations

import json
from subprocess import CompletedProcess
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
from memkit.llm.claude_cli import read_result
from tests.llm.tasks import BULLETS, PROSE, SCHEMA

USAGE = {
    "input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 7
}


def ended(output: str, errors: str = "", status: int = 0) -> CompletedProcess[str]:
    return CompletedProcess(["claude"], status, output, errors)


def read(**result: Any) -> Reply:
    printed = {"type": "result", "subtype": "success", "is_error": False, "usage": USAGE}
    printed |= {"total_cost_usd": 0.0125, **result}
    return read_result(ended(json.dumps(printed)), SCHEMA, "haiku")


@pytest.mark.parametrize(("result", "usage"), [
    ({"result": "API Error: 529 Overloaded", "api_error_status": 529}, TokenUsage()),
    ({"result": "API Error: 429 Slow", "api_error_status": 429}, TokenUsage()),
    ({"result": "API Error: Connection refused (ECONNREFUSED)"}, TokenUsage()),
    ({"result": "API Error: Unable to connect to API (FailedToOpenSocket)"}, TokenUsage()),
    ({"result": "API Error: Can't reach the API server (ENOTFOUND)"}, TokenUsage()),
    ({"result": "API Error: 500 Internal", "api_error_status": 500}, None),
    ({"result": "API Error: Connection to the API was lost (ECONNRESET)."}, None),
    ({"result": "Request timed out"}, None), ({"result": PROSE}, None),
])  # fmt: skip
def test_requests_that_were_not_counted(result: dict[str, Any], usage: TokenUsage | None) -> None:
    """Claude Code counts no tokens of a request without an answer, but the provider may."""
    with pytest.raises(ModelError) as raised:
        read(usage={"input_tokens": 0, "output_tokens": 0}, is_error=True, **result)
    assert raised.value.usage == usage


def failed(**result: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        read(**result)
    assert raised.value.usage.tokens_in == 240
    assert PROSE not in str(raised.value)
    return raised.value


def test_structured_output() -> None:
    models = {"claude-haiku-4-5-20251001": {"inputTokens": 10}}
    reply = read(structured_output=BULLETS, result=json.dumps(BULLETS), modelUsage=models)
    usage = TokenUsage(tokens_in=240, tokens_out=7, cache_read=200, cache_written=30, usd=0.0125)
    assert reply == Reply(BULLETS, usage, "claude-haiku-4-5-20251001")
    # Verbose output is a list of events.
    result = {"type": "result", "structured_output": BULLETS}
    printed = json.dumps([{"type": "system"}, {"type": "assistant"}, result])
    assert read_result(ended(printed), SCHEMA, "haiku").value == BULLETS
    for cost in (-1.0, float("nan"), float("inf"), "1"):
        assert read(structured_output=BULLETS, total_cost_usd=cost).usage.usd is None


@pytest.mark.parametrize(("text", "kind"), [
    ("Credit balance is too low", NotConfiguredError),
    ("Not logged in · Please run /login", NotConfiguredError),
    ("Invalid API key · Please run /login", NotConfiguredError),
    ("Claude AI usage limit reached|1795270676", RateLimitedError),
    ("You've hit your session limit · resets 3pm (UTC)", RateLimitedError),
    ('API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}', RateLimitedError),
    ("API Error: Rate limit reached", RateLimitedError),
    ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', UnavailableError),
    ("API Error: Connection error.", UnavailableError), ("Request timed out", UnavailableError),
    ("Prompt is too long", ModelError),
])  # fmt: skip
@pytest.mark.parametrize("is_error", [True, False])
def test_error_texts(text: str, kind: type[ModelError], is_error: bool) -> None:
    """Some versions report them as answers."""
    error = failed(result=text, is_error=is_error)
    assert type(error) is kind
    assert text.split("|")[0].split("{")[0].strip()[:20] in str(error)


@pytest.mark.parametrize(("result", "kind"), [
    ({"result": ""}, UnusableReplyError), ({"result": None}, UnusableReplyError),
    ({"result": PROSE}, UnusableReplyError),
    ({"result": f"{PROSE} The API Error: 429 is a rate limit reached."}, UnusableReplyError),
    ({"structured_output": ["The"]}, UnusableReplyError),
    ({"structured_output": {"points": []}}, UnusableReplyError),
    ({"subtype": "error_max_turns", "is_error": True}, UnusableReplyError),
    ({"subtype": "error_max_structured_output_retries", "is_error": True}, UnusableReplyError),
    ({"subtype": "error_during_execution", "is_error": True}, UnavailableError),
    ({"stop_reason": "refusal", "result": PROSE}, RefusedError),
])  # fmt: skip
def test_no_answer(result: dict[str, Any], kind: type[ModelError]) -> None:
    assert type(failed(**result)) is kind


@pytest.mark.parametrize("output", ["", "Execution error", "null", "[]", "3", '{"type": "system"}'])
def test_no_result(output: str) -> None:
    with pytest.raises(UnavailableError, match="without a result"):
        read_result(ended(output, "Segmentation fault\n", 1), SCHEMA, "haiku")
