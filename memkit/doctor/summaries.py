"""Whether summaries come about: a provider that can be asked, a budget with room, nothing given up."""

from __future__ import annotations

from collections.abc import Iterator

from memkit.capture.summary_queue import Attempt, SummaryQueue
from memkit.doctor.finding import Finding, Subject
from memkit.llm.calls import is_budget_reached
from memkit.llm.errors import NotConfiguredError, RateLimitedError, UnavailableError
from memkit.llm.ledger import OK, Ledger

_OUTAGES = (UnavailableError.outcome, RateLimitedError.outcome)
_DIGESTS = "segments keep their digests and get no bullets; nothing is lost"


def check_summarizer(subject: Subject) -> Iterator[Finding]:
    """Whether the provider of summaries has its key or program; nothing is sent."""
    if not subject.settings.summarize.is_on:
        return
    from memkit.llm import find_provider

    try:
        find_provider(subject.settings.summarize, home=subject.home)
    except NotConfiguredError as error:
        what, _, advice = str(error).partition("; ")
        fix = advice or "`memkit config set summarize.provider none` does without"
        yield Finding("summarizer-incomplete", "warning", what, _DIGESTS, fix)


def check_summarizer_answers(subject: Subject) -> Iterator[Finding]:
    """Whether the last call of a model was answered: what was said then, for asking costs money."""
    if not subject.settings.summarize.is_on:
        return
    last = next(reversed(Ledger(subject.home).calls()), None)
    if last is None or last.outcome == OK:
        return
    reasons = [one.reason for one in _tries(subject) if one.reason]
    if reasons and last.outcome in _OUTAGES:
        yield Finding(
            "summarizer-unreachable",
            "warning",
            f"the last call of {last.provider} ({last.model}) failed: {reasons[-1]}",
            f"{_DIGESTS}; memkit tries again for three days",
            "`memkit summarize` tries at once",
        )


def check_budget(subject: Subject) -> Iterator[Finding]:
    """Whether segments wait because today's budget is spent."""
    settings = subject.settings.summarize
    if not settings.is_on or not SummaryQueue(subject.home):
        return
    spent = Ledger(subject.home).today(subject.now)
    if is_budget_reached(spent, settings):
        yield Finding(
            "budget-reached",
            "note",
            f"today's budget for summaries is reached: {spent.tokens:,} of {settings.daily_tokens:,} tokens",
            "what waits is summarized tomorrow",
            "`memkit config set summarize.daily_tokens N` raises it, `memkit cost` shows where it went",
        )


def check_given_up(subject: Subject) -> Iterator[Finding]:
    """Whether segments were given up after several tries."""
    given_up = [one for one in _tries(subject) if one.given_up]
    if given_up:
        yield Finding(
            "summary-given-up",
            "warning",
            f"{len(given_up)} segments could not be summarized: {given_up[-1].reason}",
            "they keep their digests and get no bullets",
            "`memkit summarize` tries them again",
        )


def _tries(subject: Subject) -> list[Attempt]:
    return [one for waiting in SummaryQueue(subject.home) for one in waiting.tries.values()]
