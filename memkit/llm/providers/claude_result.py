"""What `claude -p --output-format json` printed: an answer, or why there is none.

An error comes as a result whose text is the error's, in older versions without any other sign. It must
never be taken for the model's answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memkit.llm.model import (
    ModelError,
    NotConfiguredError,
    RateLimitedError,
    RefusedError,
    Reply,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
)
from memkit.llm.providers.failures import failure, unusable
from memkit.llm.providers.program import Ended
from memkit.llm.providers.structure import as_structure, count, structure_in
from memkit.llm.providers.text import excerpt
from memkit.state import parse_json

_NAME = "claude-cli"
_ADVICE = "run `claude` and log in with /login"

# How the client's own error texts begin (2.1.197 and those of old versions), and what they are.
_NO_LOGIN = re.compile(
    r"Not logged in|Please run /login|Invalid API key|Failed to authenticate|OAuth token|"
    r"Your account does not have access|Credit balance is too low|There's an issue with the selected model"
)
_LIMIT = re.compile(
    r"You've (hit|reached) your|Claude (AI|Code)? ?usage limit|[Uu]sage limit reached|"
    r"API Error:? .{0,40}(\b429\b|[Rr]ate limit)|[Rr]ate limit reached"
)
_REFUSAL = re.compile(r"API Error: .{0,40}unable to respond to this request")
_TOO_LONG = re.compile(r"(API Error: )?Prompt is too long")
_CUT_SHORT = re.compile(r"API Error: Claude's response exceeded the \d+ output token maximum")
_ERROR = re.compile(r"API Error\b|Request timed out|Execution error")


def read_result(ended: Ended, schema: Mapping[str, Any], model: str) -> Reply:
    """The answer in what the client printed. Raises a `ModelError` if there is none."""
    result = _result(ended.output)
    if result is None:
        said = excerpt(ended.errors or f"status {ended.status}")
        raise UnavailableError(f"claude ended without a result ({said}); try `claude -p hello`")
    usage = _usage(result)
    text = result.get("result")
    problem = _problem(result, text if isinstance(text, str) else "", model, usage)
    if problem is not None:
        raise problem
    value = as_structure(result.get("structured_output"), schema)
    if value is None:  # the version knows no schema
        value = structure_in(text, schema)
    if value is None:
        why = "it is not of the structure" if text else "it is empty"
        raise unusable(_NAME, model, why, usage)
    return Reply(value, usage, _model(result) or model)


def _result(output: str) -> dict[str, Any] | None:
    """The result's object; with `verbose` in the user's settings the client prints a list of events."""
    try:
        printed = parse_json(output)
    except ValueError:
        return None
    events = printed if isinstance(printed, list) else [printed]
    results = [
        event for event in events if isinstance(event, dict) and event.get("type") == "result"
    ]
    return results[-1] if results else None


def _problem(result: Mapping[str, Any], text: str, model: str, usage: TokenUsage) -> ModelError | None:
    """The error that the result is; None if it holds an answer of the model."""
    said = excerpt(text)
    error: ModelError | None = None
    status = result.get("api_error_status")
    if result.get("stop_reason") == "refusal" or _REFUSAL.match(text):
        error = RefusedError(f"{model} at {_NAME} declined to answer")
    elif _CUT_SHORT.match(text):
        error = unusable(_NAME, model, "it was cut short", usage)
    elif _TOO_LONG.match(text):
        error = ModelError(f"{_NAME} does not take the request: {said}")
    elif isinstance(status, int) and status >= 400:
        error = failure(_NAME, model, status, said, _ADVICE)
    elif _NO_LOGIN.match(text):
        error = NotConfiguredError(
            f"claude cannot be used ({said}); {_ADVICE}, or set summarize.model"
        )
    elif _LIMIT.match(text):
        error = RateLimitedError(f"{_NAME} wants fewer calls for now: {said}")
    elif str(result.get("subtype", "")).startswith(
        "error_max_"
    ):  # of turns, of tries at the structure
        error = UnusableReplyError(
            f"{model} at {_NAME} gave no usable answer: it is not of the structure"
        )
    elif result.get("is_error") or _ERROR.match(text):
        error = UnavailableError(f"{_NAME} is out of order: {said or result.get('subtype')}")
    if error is not None:
        error.usage = usage
    return error


def _model(result: Mapping[str, Any]) -> str:
    """The full name of the model that answered; empty if several did or none is named."""
    models = result.get("modelUsage")
    return next(iter(models)) if isinstance(models, dict) and len(models) == 1 else ""


def _usage(result: Mapping[str, Any]) -> TokenUsage:
    usage = result.get("usage")
    if not isinstance(usage, dict):
        return TokenUsage()
    read = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    cost = result.get("total_cost_usd")
    return TokenUsage(
        tokens_in=count(usage.get("input_tokens")) + read + written,
        tokens_out=count(usage.get("output_tokens")),
        cache_read=read,
        cache_written=written,
        usd=float(cost) if isinstance(cost, (int, float)) else None,
    )
