"""What is asked of a model and what it answers: the protocol that every provider follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from memkit.errors import MemkitError


@dataclass(frozen=True, slots=True)
class Task:
    """One call of a model.

    Attributes:
        instructions: what the model is to do, from memkit or the user's own prompt file; the same for
            many calls, so that a provider can cache it.
        material: what it is to be done with. Data, never instructions.
        tool: name of the structure to answer in.
        schema: JSON schema of that structure, an object.
        max_tokens: the longest answer.
    """

    instructions: str
    material: str
    tool: str
    schema: dict[str, Any]
    max_tokens: int = 4_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What a call used, as the provider counted it.

    `tokens_in` are all tokens read, of which `cache_read` came from a cache and `cache_written` were put
    into one. `usd` is the price the provider itself named, None if it names none.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_written: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The structure a model answered with, not checked against the schema, and what that used."""

    value: dict[str, Any]
    usage: TokenUsage
    model: str


@dataclass(eq=False)  # an exception has to be hashable
class ModelError(MemkitError):
    """A call that brought no answer. The message is a line for people.

    `usage` is what it used all the same, None if that is not known; `retry_after` the seconds the provider
    asks to wait, if it does.
    """

    message: str
    usage: TokenUsage | None = field(default_factory=TokenUsage)
    retry_after: float | None = None

    outcome = "failed"
    """What the ledger calls it."""

    concerns_all = False
    """Whether other calls of the same provider would fare the same."""

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class NotConfiguredError(ModelError):
    """There is no key, no program, no such model, or the key is refused: a person has to act."""

    outcome = "not configured"
    concerns_all = True


class UnavailableError(ModelError):
    """The provider is overloaded, out of order, out of reach or too slow."""

    outcome = "unavailable"
    concerns_all = True


class RateLimitedError(UnavailableError):
    """The provider wants fewer calls for now."""

    outcome = "rate limited"


class RefusedError(ModelError):
    """The model declined to answer."""

    outcome = "refused"


class UnusableReplyError(ModelError):
    """The answer is empty, cut short, plain text, or not of the structure that was asked for."""

    outcome = "unusable"


class Provider(Protocol):
    """A way to a model."""

    name: str
    """As in `summarize.provider`, never `auto`."""

    model: str
    """The model that is asked for."""

    def ask(self, task: Task) -> Reply:
        """One call. Raises `ModelError`."""
        ...
