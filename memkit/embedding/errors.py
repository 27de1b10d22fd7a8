"""What a provider's client raises, as one line that says what to do and holds no key.

The clients share no classes. What they share is the status of the HTTP answer, under different names.
"""

from __future__ import annotations

import re

from memkit.embedding.providers import EmbeddingService, ollama_place, without_secrets
from memkit.embedding.vectors import UnusableVectorError
from memkit.errors import EmbeddingError

_SHOWN_CHARACTERS = 200
_STATUS_NAMES = ("status_code", "http_status", "code")  # of OpenAI and Ollama, Voyage, Google
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (not valid|expired)")  # of Google, with status 400
_NOT_A_NUMBER = "NaN"  # what Ollama says, with status 500, when a model gives such a vector


def as_embedding_error(provider: EmbeddingService, model: str, error: Exception) -> EmbeddingError:
    """The error to raise for `error`: an `UnusableVectorError` if another text may fare better."""
    # Chroma's function for Google puts whatever happens into a ValueError.
    if isinstance(error, ValueError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    status = _status(error)
    said = without_secrets(" ".join(str(error).split()))[:_SHOWN_CHARACTERS]
    name = provider.name
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(said)):
        return EmbeddingError(
            f"{name} refuses the key ({status}); set {provider.key_variable} to a valid one"
        )
    if status == 404:
        advice = f"run `ollama pull {model}` or " if name == "ollama" else ""
        return EmbeddingError(f"{name} has no model {model} (404); {advice}set embedding.model")
    if status == 429:
        return EmbeddingError(
            f"{name} says that a limit of the account is reached (429); try again later"
        )
    if status in (400, 413, 422) or (status == 500 and _NOT_A_NUMBER in said):
        return UnusableVectorError(f"{name}/{model}", 0, f"refuses the text ({status}): {said}")
    if status is not None and status >= 300:
        return EmbeddingError(f"{name} cannot embed at the moment ({status}); try again later")
    if status is not None or isinstance(error, (ValueError, TypeError, LookupError, AttributeError)):
        return UnusableVectorError(f"{name}/{model}", 0, f"gave an unreadable answer: {said}")
    if name == "ollama":
        return EmbeddingError(
            f"no Ollama server answers at {ollama_place()}; start it with `ollama serve` or set "
            "OLLAMA_HOST"
        )
    return EmbeddingError(f"{name} cannot be reached ({said}); check the network and try again")


def _status(error: Exception) -> int | None:
    """The status of the HTTP answer the error stands for; None if there was no answer."""
    found = (getattr(error, name, None) for name in _STATUS_NAMES)
    return next((value for value in found if isinstance(value, int) and value > 0), None)
