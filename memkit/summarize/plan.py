"""What summarizing would take, told before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from memkit.llm.ledger import Ledger
from memkit.llm.model import Provider, TokenUsage
from memkit.llm.prices import price
from memkit.settings import SummarizeSettings
from memkit.summarize.groups import Candidate, grouped
from memkit.summarize.prompt import instructions
from memkit.text import estimate_tokens

ANSWER_SHARE = 0.12
"""Tokens written for each one read: six bullets of 60 for a segment of 4,000, and the form around them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much there is to do. `tokens` are read and written, estimated; `usd` is None if no price is
    known; `left` are the tokens of today's budget that are not spent.
    """

    segments: int
    turns: int
    calls: int
    tokens: int
    usd: float | None
    provider: str
    model: str
    left: int

    def as_dict(self) -> dict[str, Any]:
        """As `memkit summarize --dry-run --json` prints it."""
        return asdict(self)


class Estimate(NamedTuple):
    """Tokens read and written, and dollars, None if no price is known."""

    tokens: int
    usd: float | None


def estimate(
    material: int, calls: int, settings: SummarizeSettings, provider: Provider
) -> Estimate:
    """What it takes to summarize so many tokens of digests in so many calls."""
    read = material + calls * estimate_tokens(instructions(settings))
    written = round(material * ANSWER_SHARE)
    usd = price(provider.name, provider.model, TokenUsage(read, written), settings.base_url)
    return Estimate(read + written, usd)


def make_plan(
    candidates: Sequence[Candidate],
    settings: SummarizeSettings,
    provider: Provider,
    ledger: Ledger,
) -> Plan:
    """What summarizing `candidates` would take."""
    calls = len(list(grouped(candidates, settings)))
    material = sum(one.segment.tokens for one in candidates)
    tokens, usd = estimate(material, calls, settings, provider)
    return Plan(
        segments=len(candidates),
        turns=sum(len(one.segment.turns) for one in candidates),
        calls=calls,
        tokens=tokens,
        usd=usd,
        provider=provider.name,
        model=provider.model,
        left=max(0, settings.daily_tokens - ledger.today().tokens),
    )
