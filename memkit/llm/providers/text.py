"""Text on its way to a provider, and what comes back from one, as an error line may show it."""

from __future__ import annotations

from memkit.privacy.redact import redact

_SHOWN_CHARACTERS = 160


def sendable(text: str) -> str:
    """`text` as UTF-8 can hold it: a lone surrogate, as in the output of a command, cannot be sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


def excerpt(said: str, *secrets: str) -> str:
    """The beginning of what a provider says of an error: one line, redacted, without `secrets`."""
    for secret in filter(None, secrets):
        said = said.replace(secret, "[redacted:key]")
    line = " ".join("".join(c if c.isprintable() else " " for c in redact(said)).split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "…"
