"""Model calls under the daily budget. Each one is in the ledger before it is made."""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memkit.errors import MemkitError, NewerFileError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.llm import (
    ANSWER_TOKENS,
    ModelError,
    NotConfiguredError,
    Provider,
    Reply,
    Task,
    TokenUsage,
    UnusableReplyError,
)
from memkit.llm.ledger import OK, UNFINISHED, Call, Ledger, Total
from memkit.locks import Announce, capture_lock, index_lock
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.text import estimate_tokens

_MILLION = 1_000_000
_RELEASE = r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)?"
"""A suffix that vendors append to the name of a model without changing its price."""


def price(provider: str, model: str, usage: TokenUsage, base_url: str = "") -> float | None:
    """Return the price of a call in dollars, or None if it is unknown, which is not the same as 0.

    A price in `usage` takes precedence. `base_url` is the setting of this name: the price there is unknown,
    except for Ollama on this machine. Any other service there may pass the calls on.
    """
    if usage.usd is not None:
        return usage.usd
    if base_url:
        return 0.0 if provider == "ollama" and _is_loopback(base_url) else None
    if provider == "ollama":
        return 0.0
    known = _known(provider, model)
    return _dollars(known, usage) if "in" in known else None


def end_of(provider: str, model: str, base_url: str = "") -> date | None:
    """Return the first day on which the provider no longer serves a model, or None if it is not known.

    `base_url` is the setting of this name: a service at another address has days of its own.
    """
    return None if base_url else _known(provider, model).get("ends")


def _known(provider: str, model: str) -> dict[str, Any]:
    table = _table().get("anthropic" if provider == "claude-cli" else provider, {})
    for name, entry in table.get("models", {}).items():
        if re.fullmatch(re.escape(name) + _RELEASE, model.removeprefix("models/")):
            return {**table, **entry}
    return {}


def _dollars(prices: dict[str, Any], usage: TokenUsage) -> float:
    uncached = usage.tokens_in - usage.cache_read - usage.cache_written
    read = uncached + usage.cache_read * prices["cache_read"] + usage.cache_written * prices["cache_written"]
    return float(read * prices["in"] + usage.tokens_out * prices["out"]) / _MILLION


def _is_loopback(url: str) -> bool:
    import ipaddress

    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def _table() -> dict[str, Any]:
    data = Path(__file__).with_name("models.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, Any])


CALL_TOKENS = 13_000
"""The most material for one call, three full segments: small models lose track of more."""

ANSWER_SHARE = 0.12
"""Estimated tokens written per token of material: six bullets of 60 for a segment of 4,000, plus JSON."""

SMALLEST_CALL = 5_500
"""Tokens that a call may need in addition to its material: the instructions and the longest answer."""

ROUND_SECONDS = 120.0
"""The time to wait for a round of summaries, which holds the lock."""

LEAST_SHARE = 0.5
"""A model that read less than this share of the estimated tokens did not get everything."""

PROVIDER_TOKENS = 500
"""Tokens that a provider adds to each call: the structure of the answer, and instructions of its own."""


class BudgetReachedError(MemkitError):
    """A call may need more than today's budget has left."""


class LedgerError(BudgetReachedError):
    """The ledger cannot be read or written, so the remaining budget is unknown."""


class BusyError(MemkitError):
    """Another process makes model calls. Only one at a time does, so that the budget holds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An estimate of calls that are not made yet.

    `tokens` are read and written. `usd` is None if the price is unknown. `left` counts the unspent tokens
    of today's budget.
    """

    calls: int
    tokens: int
    usd: float | None
    provider: str
    model: str
    left: int


class Calls:
    """All model calls of memkit go through here. The caller of `ask` holds `calls_lock`.

    `made` counts the calls, also those that failed.
    """

    def __init__(
        self, home: Home, find_provider: Callable[[SummarizeSettings], Provider],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ledger = Ledger(home)
        self._find_provider = find_provider
        self.now = clock
        self.made = 0

    def plan(
        self, calls: int, material: int, instructions: str, settings: SummarizeSettings, *,
        at_most: bool = False, needs_model: bool = True,
    ) -> Plan:  # fmt: skip
        """Estimate `calls` calls with the same instructions and `material` tokens in all.

        With `at_most`, return the most they may take, as the budget counts them. Raise `NotConfiguredError`
        if it `needs_model`; else the names of a missing one are "".
        """
        usage = TokenUsage(material + calls * estimate_tokens(instructions), round(material * ANSWER_SHARE))
        if at_most:
            usage = TokenUsage(usage.tokens_in + calls * PROVIDER_TOKENS, calls * ANSWER_TOKENS)
        name = model = ""
        try:
            if needs_model or settings.is_on:
                provider = self._find_provider(settings)
                name, model = provider.name, provider.model
        except NotConfiguredError:
            if needs_model:
                raise
        today = self.ledger.today(self.now())
        left = 0 if today.unreadable else max(0, settings.daily_tokens - today.tokens)
        usd = price(name, model, usage, settings.base_url)
        return Plan(calls, usage.tokens_in + usage.tokens_out, usd, name, model, left)

    def left(self, settings: SummarizeSettings) -> int:
        """Return the tokens left of today's budget, 0 if they are unknown."""
        try:
            today = self.ledger.today(self.now())
        except NewerFileError:
            return 0
        return 0 if today.unreadable else max(0, settings.daily_tokens - today.tokens)

    @contextmanager
    def ask(
        self, task: Task, settings: SummarizeSettings, purpose: str, project: str, subject: str = "",
        shares: Mapping[str, int] | None = None,
    ) -> Iterator[Reply]:  # fmt: skip
        """Yield the reply to `task`. An error in the `with` block becomes the call's outcome in the ledger.

        Raise `ModelError`, `BudgetReachedError`.
        """
        provider = self._find_provider(settings)
        now = self.now()
        read = estimate_tokens(task.instructions) + estimate_tokens(task.material)
        estimate = TokenUsage(read + PROVIDER_TOKENS, task.max_tokens)
        call = Call(
            id=uuid.uuid4().hex[:16], time=now, purpose=purpose, provider=provider.name, model=provider.model,
            project=project, tokens_in=estimate.tokens_in, tokens_out=estimate.tokens_out,
            usd=price(provider.name, provider.model, estimate, settings.base_url), subject=subject,
            shares=dict(shares or {}),
        )
        try:
            _check_budget(self.ledger.today(now), settings, call)
            self.ledger.record(call)
        except (NewerFileError, OSError) as error:
            raise LedgerError(f"memkit makes no model calls: {error}") from error
        self.made += 1
        began = time.monotonic()
        usage: TokenUsage | None = None
        model, outcome = provider.model, UNFINISHED
        try:
            reply = provider.ask(task)
            usage = reply.usage if reply.usage.tokens_in else estimate
            model = reply.model or model
            _check_was_read(reply, read, provider)
            yield reply
            outcome = OK
        except ModelError as error:
            outcome = error.outcome
            usage = usage or error.usage
            raise
        except MemkitError:
            outcome = OK  # the answer was good; memkit failed to use it
            raise
        finally:
            if outcome != UNFINISHED:
                usage = usage or estimate  # unknown usage counts as estimated
                end = replace(
                    call, model=model, tokens_in=usage.tokens_in, tokens_out=usage.tokens_out,
                    usd=price(provider.name, model, usage, settings.base_url), outcome=outcome,
                    seconds=round(time.monotonic() - began, 3),
                )
                self.ledger.record(end)


def is_budget_reached(spent: Total, settings: SummarizeSettings, material: int = 0) -> bool:
    """Whether today's budget is too small for another call with `material` tokens of material."""
    if spent.unreadable or spent.tokens + SMALLEST_CALL + material > settings.daily_tokens:
        return True
    return bool(settings.daily_usd) and spent.usd >= settings.daily_usd


def _check_budget(spent: Total, settings: SummarizeSettings, call: Call) -> None:
    usd = call.usd or 0.0
    if spent.unreadable:
        raise LedgerError(
            "memkit makes no model calls today: the ledger cannot be read, or only in part, so it does not "
            "know what is left of the budget; `memkit doctor` names the damage"
        )
    if spent.tokens + call.tokens > settings.daily_tokens:
        advice = "" if call.tokens > settings.daily_tokens else "wait for tomorrow, or "
        raise BudgetReachedError(
            f"the daily budget of {settings.daily_tokens:,} tokens is reached: {spent.tokens:,} are used, "
            f"and a call may need {call.tokens:,}; {advice}raise "
            "summarize.daily_tokens in a terminal of your own"
        )
    if settings.daily_usd and spent.usd + usd > settings.daily_usd:
        advice = "" if usd > settings.daily_usd else "wait for tomorrow, or "
        raise BudgetReachedError(
            f"the daily budget of ${settings.daily_usd:g} is reached: ${spent.usd:.2f} are used, and a call "
            f"may cost ${usd:.4f}; {advice}raise summarize.daily_usd in a terminal of your own"
        )


def _check_was_read(reply: Reply, estimated: int, provider: Provider) -> None:
    """Raise `UnusableReplyError` if the model read far less than it was sent: a part was cut off."""
    read = reply.usage.tokens_in  # 0 if it is not known
    if read and read < estimated * LEAST_SHARE:
        raise UnusableReplyError(
            f"{reply.model} at {provider.name} read only {read:,} of about {estimated:,} tokens, so its "
            "answer is unusable; give the server a longer context, or choose another summarize.model",
            reply.usage,
        )


@contextmanager
def exclusive_lock(home: Home, wait_seconds: float, announce: Announce) -> Iterator[None]:
    """Hold the locks of model calls, capture, and the index, for a change of the whole memory."""
    from memkit.ipc.stop import stop_hung_service

    stop_hung_service(home, announce)  # it may hold the lock of model calls
    with (
        calls_lock(home, wait_seconds),
        capture_lock(home, wait_seconds, announce),
        index_lock(home, wait_seconds, announce),
    ):
        yield


@contextmanager
def calls_lock(home: Home, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock for model calls. Raise `BusyError` if another process still has it after the wait."""
    from filelock import FileLock, Timeout

    make_private_directory(home.summaries)
    with contextlib.ExitStack() as stack:
        try:
            lock = FileLock(f"{home.summaries}/calls.lock", wait_seconds, mode=PRIVATE_FILE)
            stack.enter_context(lock)
        except Timeout as error:
            raise BusyError("another memkit process is making model calls; try again in a minute") from error
        yield
