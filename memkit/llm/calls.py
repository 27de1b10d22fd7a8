"""Model calls under the daily budget, each of them in the ledger."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.llm.ledger import OK, UNFINISHED, Call, Ledger, Total
from memkit.llm.model import ModelError, Provider, Reply, Task, TokenUsage
from memkit.llm.prices import price
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.text import estimate_tokens


class BudgetReachedError(MemkitError):
    """What a call may need is more than is left of today's budget."""


class BusyError(MemkitError):
    """Another process makes model calls; one at a time does, so that the budget holds."""


class Calls:
    """The way to a model for all of memkit. The caller holds `calls_lock`."""

    def __init__(
        self,
        home: Home,
        find_provider: Callable[[SummarizeSettings], Provider],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ledger = Ledger(home)
        self._find_provider = find_provider
        self._clock = clock

    @contextmanager
    def ask(
        self, task: Task, settings: SummarizeSettings, purpose: str, project: str
    ) -> Iterator[Reply]:
        """The reply to `task`. What goes wrong with it inside is the call's outcome in the ledger.

        Raises `ModelError`, `BudgetReachedError`.
        """
        provider = self._find_provider(settings)
        now = self._clock()
        estimate = TokenUsage(
            estimate_tokens(task.instructions) + estimate_tokens(task.material), task.max_tokens
        )
        usd = price(provider.name, provider.model, estimate, settings.base_url)
        call = Call(
            uuid.uuid4().hex[:16], now, purpose, provider.name, provider.model, project,
            estimate.tokens_in, estimate.tokens_out, usd,
        )  # fmt: skip
        check_budget(self.ledger, settings, call, now)
        self.ledger.begin(call)
        began = time.monotonic()
        usage: TokenUsage | None = None
        model, outcome = provider.model, UNFINISHED
        try:
            reply = provider.ask(task)
            usage, model = reply.usage, reply.model or model
            yield reply
            outcome = OK
        except ModelError as error:
            outcome = error.outcome
            usage = usage or error.usage
            raise
        except MemkitError:
            outcome = OK  # the answer was good; what became of it is another matter
            raise
        finally:
            if outcome != UNFINISHED:
                usage = usage or estimate  # what is not known counts as estimated
                end = replace(
                    call,
                    model=model,
                    tokens_in=usage.tokens_in,
                    tokens_out=usage.tokens_out,
                    usd=price(provider.name, model, usage, settings.base_url),
                    outcome=outcome,
                    seconds=round(time.monotonic() - began, 3),
                )
                self.ledger.end(end)


SMALLEST_CALL = 5_000
"""Tokens that a call may need beside its material: the instructions, and the longest answer."""


def is_reached(spent: Total, settings: SummarizeSettings, material: int = 0) -> bool:
    """Whether today's budget has no room for another call, of so many tokens of `material`."""
    if spent.tokens + SMALLEST_CALL + material > settings.daily_tokens:
        return True
    return bool(settings.daily_usd) and spent.usd >= settings.daily_usd


def check_budget(ledger: Ledger, settings: SummarizeSettings, call: Call, now: float) -> None:
    """Raise `BudgetReachedError` if `call`, as estimated, is more than is left of today's budget."""
    if call.tokens > settings.daily_tokens:
        raise BudgetReachedError(
            f"a call may need {call.tokens:,} tokens, and a day has {settings.daily_tokens:,}; "
            "raise summarize.daily_tokens"
        )
    if settings.daily_usd and (call.usd or 0.0) > settings.daily_usd:
        raise BudgetReachedError(
            f"a call may cost ${call.usd:.4f}, and a day has ${settings.daily_usd:g}; raise "
            "summarize.daily_usd"
        )
    spent = ledger.today(now)
    if spent.tokens + call.tokens > settings.daily_tokens:
        raise BudgetReachedError(
            f"the daily budget of {settings.daily_tokens:,} tokens is reached ({spent.tokens:,} used); "
            "the rest can be done tomorrow, or raise summarize.daily_tokens"
        )
    if settings.daily_usd and spent.usd + (call.usd or 0.0) > settings.daily_usd:
        raise BudgetReachedError(
            f"the daily budget of ${settings.daily_usd:.2f} is reached (${spent.usd:.2f} used); "
            "the rest can be done tomorrow, or raise summarize.daily_usd"
        )


@contextmanager
def calls_lock(home: Home, wait_seconds: float = 0.0) -> Iterator[None]:
    """Be the one process that makes model calls. Raises `BusyError` if another one still is then."""
    from filelock import FileLock, Timeout

    make_private_directory(home.summaries)
    with contextlib.ExitStack() as stack:
        try:
            lock = FileLock(f"{home.summaries}/calls.lock", wait_seconds, mode=PRIVATE_FILE)
            stack.enter_context(lock)
        except Timeout as error:
            raise BusyError("another memkit is making model calls; try again in a minute") from error
        yield
