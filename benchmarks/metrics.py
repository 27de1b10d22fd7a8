"""Retrieval metrics: evidence fraction, session hit, strict recall, reciprocal rank, budget recall.

`session@k` counts a question if any session with evidence is among the first k sessions, `strict@k` if all
are. Publications call both R@k.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DEPTHS = (1, 5, 10)
STRICT_DEPTHS = (5, 10)
BUDGETS = (500, 1000, 2000, 4000)
"""Tokens of four characters each."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result as the metrics see it: its session, its utterances, and the length of its text."""

    session: str
    holds: frozenset[str]
    tokens: float = 0.0


def ranked(
    hits: Sequence[Hit], evidence: frozenset[str], sessions: frozenset[str]
) -> dict[str, float]:
    """Return the metrics of one question's ranked results. `sessions` are those of its evidence."""
    row: dict[str, float] = {}
    for depth in DEPTHS:
        row[f"evidence@{depth}"] = found(hits[:depth], evidence)
    order = list(dict.fromkeys(hit.session for hit in hits))
    for depth in DEPTHS:
        row[f"session@{depth}"] = float(bool(sessions & set(order[:depth])))
    for depth in STRICT_DEPTHS:
        row[f"strict@{depth}"] = float(sessions <= set(order[:depth]))
    ranks = [n for n, hit in enumerate(hits, start=1) if hit.holds & evidence]
    row["mrr"] = 1 / ranks[0] if ranks else 0.0
    row["tokens@5"] = sum(hit.tokens for hit in hits[:5])
    return row


def found(hits: Sequence[Hit], evidence: frozenset[str]) -> float:
    """Return the share of the evidence that `hits` contain together."""
    held = frozenset().union(*(hit.holds for hit in hits))
    return len(held & evidence) / len(evidence)


def mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return each metric's mean: of tokens their number, else in percent."""
    return {name: _scale(name) * statistics.fmean(row[name] for row in rows) for name in rows[0]}


def _scale(name: str) -> int:
    return 1 if name.startswith("tokens") else 100


def interval(
    rows: Sequence[dict[str, float]], name: str, rounds: int = 1000
) -> tuple[float, float]:
    """Return the bootstrap 95 % interval of a metric's mean, the same at each run."""
    choice = random.Random(0)
    values = [_scale(name) * row[name] for row in rows]
    means = sorted(statistics.fmean(choice.choices(values, k=len(values))) for _ in range(rounds))
    return means[int(0.025 * rounds)], means[int(0.975 * rounds)]
