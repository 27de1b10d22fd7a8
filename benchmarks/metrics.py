"""Metrics of retrieval, never mixed: evidence fraction, session hit, reciprocal rank, budget recall."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DEPTHS = (1, 5, 10)
BUDGETS = (500, 1000, 2000, 4000)
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Hit:
    """One result as the metrics see it: its session, the utterances it holds, its size in characters."""

    session: str
    holds: frozenset[str]
    characters: int


def score(
    hits: Sequence[Hit], evidence: frozenset[str], sessions: frozenset[str]
) -> dict[str, float]:
    """All metrics of one question; `sessions` are those of its evidence."""
    row: dict[str, float] = {}
    for depth in DEPTHS:
        found = frozenset().union(*(hit.holds for hit in hits[:depth]))
        row[f"evidence@{depth}"] = len(found & evidence) / len(evidence)
    order = list(dict.fromkeys(hit.session for hit in hits))
    for depth in DEPTHS:
        row[f"session@{depth}"] = float(bool(sessions & set(order[:depth])))
    ranks = [n for n, hit in enumerate(hits, start=1) if hit.holds & evidence]
    row["mrr"] = 1 / ranks[0] if ranks else 0.0
    for budget in BUDGETS:
        row[f"budget@{budget}"] = _within(hits, evidence, budget * CHARACTERS_PER_TOKEN)
    return row


def _within(hits: Sequence[Hit], evidence: frozenset[str], room: int) -> float:
    """The share of the evidence in the results that fit, taken in order, whole or not at all."""
    found: set[str] = set()
    for hit in hits:
        if hit.characters <= room:
            found |= hit.holds
            room -= hit.characters
    return len(found & evidence) / len(evidence)


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Each metric's mean in percent."""
    return {name: 100 * statistics.fmean(row[name] for row in rows) for name in rows[0]}


def interval(values: Sequence[float], rounds: int = 1000) -> tuple[float, float]:
    """The bootstrap 95 % interval of the mean, in percent; the same at each run."""
    choice = random.Random(0)
    means = sorted(
        100 * statistics.fmean(choice.choices(values, k=len(values))) for _ in range(rounds)
    )
    return means[int(0.025 * rounds)], means[int(0.975 * rounds)]
