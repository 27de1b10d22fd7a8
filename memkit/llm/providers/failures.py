"""What an HTTP answer that is no success means, for every provider that speaks HTTP."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz

from memkit.llm.model import (
    ModelError,
    NotConfiguredError,
    RateLimitedError,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
)

PATIENCE_SECONDS = 10.0
"""A provider that asks to wait longer is not waited for: the call ends, and is made again later."""

_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (not valid|expired)")  # of Google, with status 400
_NO_CREDIT = re.compile(r"credit balance is too low|insufficient_quota", re.IGNORECASE)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait, None if it does not."""
    said = headers.get("retry-after", "")
    try:
        return max(0.0, float(said))
    except ValueError:
        date = parsedate_tz(said)
        return None if date is None else max(0.0, mktime_tz(date) - time.time())


def failure(
    name: str, model: str, status: int, said: str, advice: str, wait: float | None = None
) -> ModelError:
    """The error for an answer of this HTTP status.

    Args:
        name: the provider.
        model: the model that was asked.
        status: not that of a success.
        said: the provider's own words, as `text.excerpt` gives them.
        advice: what to do if it refuses the key.
        wait: what `retry_after` found.
    """
    if _NO_CREDIT.search(said) or status == 402:
        return NotConfiguredError(f"the account at {name} has no credit left ({status}); add some")
    if status in (401, 403) or _BAD_KEY.search(said):
        return NotConfiguredError(f"{name} refuses the key ({status}); {advice}")
    if status == 404:
        return NotConfiguredError(
            f"{name} has no model {model} (404); set summarize.model, or summarize.base_url if it is "
            "not at its usual address"
        )
    if status == 429:
        return RateLimitedError(f"{name} wants fewer calls for now (429): {said}", retry_after=wait)
    if status in (408, 409) or status >= 500:
        return UnavailableError(
            f"{name} is out of order ({status}): {said}; it is asked again later", retry_after=wait
        )
    if status < 400:
        return NotConfiguredError(
            f"{name} is not what answers there ({status}); check summarize.base_url"
        )
    return ModelError(f"{name} does not take the request ({status}): {said}")


def too_slow(name: str, seconds: float, *, was_asked: bool = True) -> UnavailableError:
    """The error for an answer that did not come in time. If it `was_asked`, it is paid for all the same."""
    return UnavailableError(
        f"{name} did not answer within {seconds:g} s; raise summarize.timeout_seconds if it needs more",
        None if was_asked else TokenUsage(),
    )


def unusable(name: str, model: str, why: str, usage: TokenUsage) -> UnusableReplyError:
    """The error for an answer that is not what was asked for; `why` never holds the model's words."""
    return UnusableReplyError(f"{model} at {name} gave no usable answer: {why}", usage)
