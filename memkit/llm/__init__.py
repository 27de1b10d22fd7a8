"""Ask a language model: tasks, replies, errors, and the provider that the settings name.

Every call goes through `memkit.llm.calls`, which holds the budget and writes the ledger.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from memkit.embedding import is_bad_key
from memkit.errors import MemkitError
from memkit.state import parse_json

if TYPE_CHECKING:
    from memkit.paths import Home
    from memkit.settings import SummarizeSettings

_NO_CREDIT = re.compile(r"credit balance is too low|insufficient_quota", re.IGNORECASE)
_NOT_BEGUN = frozenset({409, 503, 529})
"""Statuses that a provider returns before it starts work. With any other, it may charge for the tokens."""

ANSWER_TOKENS = 4_000
"""The longest answer."""

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Task:
    """One call of a model.

    Attributes:
        instructions: the model's job. Many calls share them, so a provider can cache them.
        material: the text to work on. It is data, never instructions.
        tool: name of the structure to answer in.
        schema: JSON schema of that structure, an object.
        max_tokens: the longest answer.
    """

    instructions: str
    material: str
    tool: str
    schema: dict[str, Any]
    max_tokens: int = ANSWER_TOKENS


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of a call, as the provider counted them.

    `tokens_in` counts all tokens read. `cache_read` of them came from a cache, `cache_written` were put
    into one. `usd` is the provider's own price, or None.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_written: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The structure a model answered with, not checked against the schema, and the tokens it used."""

    value: dict[str, Any]
    usage: TokenUsage
    model: str


class Provider(Protocol):
    """A way to reach a model: `name` as in `summarize.provider`, never `auto`, and the requested model.

    It never repeats a request, because the budget counts each one. The queue tries again later.
    """

    name: str
    model: str

    def ask(self, task: Task) -> Reply:
        """Make one call with one request. Raise `ModelError`."""
        ...


def find_provider(
    settings: SummarizeSettings, environ: Mapping[str, str] = os.environ, home: Home | None = None
) -> Provider:
    """Return the provider that the settings name, with its key and model. Send nothing yet.

    The provider must not be `none`. Keys come from the providers' own variables in `environ`, then from the
    settings of `home`, by default the home of the environment. `auto` uses none of them, only the login of
    Claude Code. A program runs under `home`, and gets none of those keys. Raise `NotConfiguredError` without
    a key, program, or login.
    """
    from memkit import login
    from memkit.llm.anthropic import AnthropicProvider
    from memkit.llm.chat_completions import SERVICES, ChatCompletionsProvider
    from memkit.llm.claude_cli import ClaudeCliProvider
    from memkit.paths import Home
    from memkit.settings.load import with_keys

    home = home or Home.from_environment()
    name = settings.provider
    if name in SERVICES:
        return ChatCompletionsProvider(SERVICES[name], settings, with_keys(environ, home))
    if name == "anthropic":
        return AnthropicProvider(settings, with_keys(environ, home))
    reason = login.why_unusable(environ) if name == "auto" else ""
    program = login.find_claude(environ)
    if reason or program is None:
        raise NotConfiguredError(
            f"{reason or 'the program `claude` is not found'}; install Claude Code and log in, or "
            "choose another summarize.provider in a terminal of your own"
        )
    if name == "auto":
        environ = login.without_shell_keys(environ)
    return ClaudeCliProvider(program, settings, environ, home)


def as_structure(value: object, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the object in `value`; None if there is none or it lacks a key that `schema` requires.

    A text may be the JSON of the object, maybe in a code fence. The values in it are not checked.
    """
    if isinstance(value, str):
        fenced = _FENCED.match(value)
        try:
            value = parse_json(fenced[1] if fenced else value)
        except ValueError:
            return None
    if isinstance(value, dict) and all(key in value for key in schema.get("required", ())):
        return value
    return None


def token_count(value: object) -> int:
    """Return a number of tokens as providers report it, or 0 for any other value."""
    return value if isinstance(value, int) and value > 0 else 0


def anthropic_usage(usage: Mapping[str, object], usd: float | None = None) -> TokenUsage:
    """Return the tokens in a `usage` as Anthropic's API and Claude Code report it, at the price `usd`."""
    read = token_count(usage.get("cache_read_input_tokens"))
    written = token_count(usage.get("cache_creation_input_tokens"))
    tokens_in = token_count(usage.get("input_tokens")) + read + written
    return TokenUsage(tokens_in, token_count(usage.get("output_tokens")), read, written, usd)


@dataclass(eq=False)  # an exception must be hashable
class ModelError(MemkitError):
    """A call without an answer. The message is one line for users.

    `usage` counts its tokens. It is None if the request was sent but not counted. `retry_after`
    is the wait in seconds that the provider asks for, if any. If a class `concerns_all`, other calls of the
    provider would fail in the same way.
    """

    message: str
    usage: TokenUsage | None = field(default_factory=TokenUsage)
    retry_after: float | None = None

    outcome = "failed"
    """The outcome in the ledger."""

    concerns_all = False

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class NotConfiguredError(ModelError):
    """There is no key, program, or model, or the key is refused. The user has to act."""

    outcome = "not configured"
    concerns_all = True


class UnavailableError(ModelError):
    """The provider is overloaded, broken, unreachable, or too slow."""

    outcome = "unavailable"
    concerns_all = True


class RateLimitedError(UnavailableError):
    """The provider wants fewer calls for now."""

    outcome = "rate limited"


class RefusedError(ModelError):
    """The model declined to answer."""

    outcome = "refused"


class UnusableReplyError(ModelError):
    """The answer is empty, cut short, plain text, or not the structure that was requested."""

    outcome = "unusable"


def http_error(
    name: str, model: str, status: int, reason: str, advice: str, wait: float | None = None
) -> ModelError:
    """Return the error for an HTTP answer that is not a success.

    `name` is the provider, `reason` its own message as `excerpt` returns it, `wait` the result of
    `retry_after`. `advice` tells the user how to fix the key.
    """
    if _NO_CREDIT.search(reason) or status == 402:
        return NotConfiguredError(f"the account at {name} has no credit left ({status}); add credit")
    if is_bad_key(status, reason):
        return NotConfiguredError(f"{name} rejects the key ({status}); {advice}")
    if status == 404:
        return NotConfiguredError(
            f"{name} has no model {model} (404); set summarize.model, or summarize.base_url if the "
            "service runs elsewhere"
        )
    if status == 429:
        return RateLimitedError(
            f"{name} limits the rate of calls (429): {reason}; memkit tries again later", retry_after=wait
        )
    if status in (408, 409) or status >= 500:
        return UnavailableError(
            f"{name} is unavailable ({status}): {reason}; memkit tries again later",
            TokenUsage() if status in _NOT_BEGUN else None,
            wait,
        )
    if status < 400:
        return NotConfiguredError(f"{name} redirects the request ({status}); check summarize.base_url")
    return ModelError(f"{name} rejects the request ({status}): {reason}")


def timeout_error(name: str, seconds: float, usage: TokenUsage | None = None) -> UnavailableError:
    """Return the error for a timeout. `usage` is None if the request was sent."""
    return UnavailableError(
        f"{name} did not answer within {seconds:g} s; raise summarize.timeout_seconds if it needs more", usage
    )


def usage_after(error: BaseException | None) -> TokenUsage | None:
    """Return the tokens of a request that failed with an error of httpx: 0 if it was not sent, else None.

    The names count: the Anthropic SDK brings its own copy of httpx, with other classes.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return TokenUsage() if names & {"ConnectError", "ConnectTimeout"} else None


def unusable(name: str, model: str, why: str, usage: TokenUsage) -> UnusableReplyError:
    """Return the error for an answer of the wrong form. `why` must not quote the model."""
    return UnusableReplyError(f"{model} at {name} gave no usable answer: {why}", _reported(usage))


def refused(name: str, model: str, usage: TokenUsage) -> RefusedError:
    """Return the error for a model that declines to answer."""
    return RefusedError(f"{model} at {name} declined to answer", _reported(usage))


def _reported(usage: TokenUsage) -> TokenUsage | None:
    return usage if usage.tokens_in else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks to wait, or None."""
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        from email.utils import mktime_tz, parsedate_tz  # 5 ms, only for a date

        date = parsedate_tz(value)
        return None if date is None else max(0.0, mktime_tz(date) - time.time())
