"""How topics relate: same days and weeks, and similar entries. All values are in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memkit.topics.files import Relation

MOST_RELATED = 8
LEAST_STRENGTH = 0.25
_BLOCK = 512

Matrix = NDArray[np.float32]


def relations(
    ids: Sequence[str], days: Sequence[NDArray[np.int32]], centers: Matrix
) -> tuple[list[tuple[Relation, ...]], list[float]]:
    """Return the strongest relations of each topic, and its centrality.

    `days` are the days of each topic's entries, as proleptic ordinals. `centers` are the means of its
    points, around 0, of length 1. Centrality is the sum of a topic's relations, as a share of the largest
    sum.
    """
    count = len(ids)
    if count < 2:
        return [()] * count, [0.0] * count
    by_day = _incidence(days)
    by_week = _incidence([(own - 1) // 7 for own in days])  # the ordinal 1 is a Monday
    found: list[tuple[Relation, ...]] = []
    sums = np.zeros(count)
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        together = (by_day[block] @ by_day.T + by_week[block] @ by_week.T) / 2
        alike = np.clip(centers[block] @ centers.T, 0, 1)
        strength = (together + alike) / 2
        strength[np.arange(len(strength)), np.arange(start, start + len(strength))] = 0
        sums[block] = np.where(strength >= LEAST_STRENGTH, strength, 0).sum(axis=1)
        for row, own in enumerate(strength):
            best = np.argsort(-own, kind="stable")[:MOST_RELATED]
            found.append(
                tuple(
                    Relation(
                        ids[other],
                        round(float(own[other]), 3),
                        round(float(together[row, other]), 3),
                        round(float(alike[row, other]), 3),
                    )
                    for other in best.tolist()
                    if own[other] >= LEAST_STRENGTH
                )
            )
    most = float(sums.max()) or 1.0
    return found, [round(float(one) / most, 3) for one in sums]


def _incidence(times: Sequence[NDArray[np.int32]]) -> Matrix:
    """Return which topic has which time, in rows of length 1: their products are cosines."""
    known, numbers = np.unique(np.concatenate(times), return_inverse=True)
    found = np.zeros((len(times), len(known)), np.float32)
    rows = np.repeat(np.arange(len(times)), [len(own) for own in times])
    found[rows, numbers] = 1
    result: Matrix = found / np.linalg.norm(found, axis=1, keepdims=True)
    return result
