"""Which of the ranked chunks become results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memkit.recall.fusion import Scores

LOOKED_AT = 4
"""So many times as many chunks as are asked for are looked at first; more only if need be."""


def select(
    scores: Scores,
    entries: NDArray[np.int32],
    allowed: NDArray[np.bool_],
    size: int,
    repeat_cost: float,
) -> tuple[NDArray[np.intp], Scores]:
    """The best `size` of the `allowed` chunks, best first, equals in the order of the text.

    Each further piece of an entry of which there is a better piece loses `repeat_cost` once more: ten
    results that are all of one long answer tell less than the best pieces of several. Gives the
    places and what the scores are then.
    """
    places = np.flatnonzero(allowed)
    looked_at = size if not repeat_cost else LOOKED_AT * size
    while True:
        best, least = _best(places, scores, looked_at)
        final = scores[best] - repeat_cost * _repeats(entries[best])
        order = np.argsort(-final, kind="stable")[:size]
        is_all = len(best) == len(places)
        if is_all or not repeat_cost or (len(order) == size and final[order[-1]] >= least):
            return best[order], final[order]
        looked_at *= LOOKED_AT  # what was not looked at could still be better


def _best(places: NDArray[np.intp], scores: Scores, size: int) -> tuple[NDArray[np.intp], float]:
    """The best `size` of `places` with all that equal the last of them, best first, and its score."""
    known = scores[places]
    least = -np.inf
    if len(places) > size:
        least = float(np.partition(known, len(known) - size)[len(known) - size])
        places = places[known >= least]
    return places[np.argsort(-scores[places], kind="stable")], least


def _repeats(entries: NDArray[np.int32]) -> NDArray[np.int64]:
    """For each position how often its entry stands before it."""
    order = np.argsort(entries, kind="stable")
    ordered = entries[order]
    positions = np.arange(len(entries))
    is_first = np.diff(ordered, prepend=-1) != 0  # entries are numbered from 0
    repeats = np.empty(len(entries), np.int64)
    repeats[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    return repeats
