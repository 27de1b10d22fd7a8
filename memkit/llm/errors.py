"""Errors of model calls, and the meaning of an HTTP answer that is not a success."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from memkit.embedding import is_bad_key
from memkit.errors import MemkitError

PATIENCE_SECONDS = 10.0
"""The longest wait within a call. If a provider asks for more, the call fails and is made again later."""

_NO_CREDIT = re.compile(r"credit balance is too low|insufficient_quota", re.IGNORECASE)


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


@dataclass(eq=False)  # an exception must be hashable
class ModelError(MemkitError):
    """A call without an answer. The message is one line for users.

    `usage` counts its tokens, None if unknown. `retry_after` is the wait in seconds that the provider
    asks for, if any.
    """

    message: str
    usage: TokenUsage | None = field(default_factory=TokenUsage)
    retry_after: float | None = None

    outcome = "failed"
    """The outcome in the ledger."""

    concerns_all = False
    """Whether other calls of the same provider would fail too."""

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
        return NotConfiguredError(f"the account at {name} has no credit left ({status}); add some")
    if is_bad_key(status, reason):
        return NotConfiguredError(f"{name} refuses the key ({status}); {advice}")
    if status == 404:
        return NotConfiguredError(
            f"{name} has no model {model} (404); set summarize.model, or summarize.base_url if the "
            "service runs elsewhere"
        )
    if status == 429:
        return RateLimitedError(f"{name} wants fewer calls for now (429): {reason}", retry_after=wait)
    if status in (408, 409) or status >= 500:
        return UnavailableError(
            f"{name} is unavailable ({status}): {reason}; memkit tries again later", retry_after=wait
        )
    if status < 400:
        return NotConfiguredError(
            f"{name} redirects the request ({status}); check summarize.base_url"
        )
    return ModelError(f"{name} rejects the request ({status}): {reason}")


def timeout_error(name: str, seconds: float, *, was_sent: bool = True) -> UnavailableError:
    """Return the error for an answer that came too late. A request that `was_sent` is paid for."""
    return UnavailableError(
        f"{name} did not answer within {seconds:g} s; raise summarize.timeout_seconds if it needs more",
        None if was_sent else TokenUsage(),
    )


def unusable(name: str, model: str, why: str, usage: TokenUsage) -> UnusableReplyError:
    """Return the error for an answer of the wrong form. `why` must not quote the model."""
    return UnusableReplyError(f"{model} at {name} gave no usable answer: {why}", usage)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks to wait, or None."""
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        from email.utils import mktime_tz, parsedate_tz  # 5 ms, only for a date

        date = parsedate_tz(value)
        return None if date is None else max(0.0, mktime_tz(date) - time.time())
