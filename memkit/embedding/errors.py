"""Errors of models and providers.

`http_status`, `is_bad_key`, and `excerpt` read the errors of any HTTP service; `memkit.llm` uses them too.
"""

from __future__ import annotations

import re

from memkit.errors import EmbeddingError
from memkit.text import one_line

EXCERPT_CHARACTERS = 160

_STATUS_NAMES = ("status_code", "http_status", "code")  # of OpenAI and Ollama, Voyage, Google
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (not valid|expired)")  # of Google, with status 400


class UnusableVectorError(EmbeddingError):
    """A model refused a text, or returned no usable vector for it.

    Attributes:
        position: the text's position among those given. If one of several texts sent together is at fault
            and it is not known which one, the position of the first.
        reason: the problem in a few words, without naming the text.
        is_general: whether any other text would have the same problem.
    """

    def __init__(self, model: str, position: int, reason: str, *, is_general: bool = False) -> None:
        super().__init__(f"the embedding model {model} {reason}")
        self.model = model
        self.position = position
        self.reason = reason
        self.is_general = is_general

    def at(self, position: int) -> UnusableVectorError:
        """Return the same error for the text at another position."""
        return UnusableVectorError(self.model, position, self.reason, is_general=self.is_general)


def http_status(error: Exception) -> int | None:
    """Return the HTTP status in an error of a provider's package, or None if there was no answer.

    The packages share no class of errors. They keep the status in attributes of different names.
    """
    for name in _STATUS_NAMES:
        status = getattr(error, name, None)
        if isinstance(status, int) and status > 0:
            return status
    return None


def is_bad_key(status: int | None, message: str) -> bool:
    """Return whether an HTTP answer of this status and message rejects the key."""
    return status in (401, 403) or _BAD_KEY.search(message) is not None


def excerpt(message: str, *secrets: str) -> str:
    """Return the beginning of a provider's message as one line, redacted and without `secrets`."""
    from memkit.privacy.redact import redact  # its patterns take long to compile

    for secret in filter(None, secrets):
        message = message.replace(secret, "[redacted:key]")
    printable = "".join(c if c.isprintable() else " " for c in redact(message))
    return one_line(printable, EXCERPT_CHARACTERS)
