"""How the two arms become one ranking. Pure arithmetic over arrays aligned to the chunks.

The default, `context`, judges a chunk together with its neighbours and its session, and lets a long
chunk stand on its own:

    s(i)  = (1 - a) * minmax(bm25)(i) + a * minmax(cosine)(i)
    w(i)  = min(1, (own_length / characters of i)^2)
    s'(i) = s(i) + w(i) * (g1 * sum of s one step away + g2 * sum of s two steps away)
    S(i)  = minmax(s')(i) + h * w(i) * minmax(sum of the three best s in i's session)

with steps inside the same session only. Scores that do not differ become all ones if they are
positive, else zeros; sums of sessions that do not differ become zeros, as they set none apart. The
formula and its parameters (a = 0.5, own_length = 600, g1 = 0.3, g2 = 0.1, h = 0.4) come from
measurements on two development sets, long assistant sessions and short chats, where equal-weight
reciprocal rank fusion loses to the better of its arms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit.config import SearchSettings

Scores = NDArray[np.float64]

BEST_OF_SESSION = 3
"""How many of a session's chunks speak for it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the ranking needs to know of the chunks: length in characters and session code, -1 for none."""

    lengths: NDArray[np.int32]
    sessions: NDArray[np.int32]


def minmax(values: Scores) -> Scores:
    """`values` stretched to [0, 1]; if they do not differ, all ones if positive, else zeros."""
    if len(values) == 0:
        return values
    low, high = values.min(), values.max()
    if high <= low:
        return np.full_like(values, 1.0 if high > 0 else 0.0)
    stretched: Scores = (values - low) / (high - low)
    return stretched


def best_window(similarities: Scores, owners: NDArray[np.int32], size: int) -> Scores:
    """The cosine of each chunk: that of its best window; 0 for a chunk without a vector."""
    scores = np.full(size, -1.0)
    np.maximum.at(scores, owners, similarities)
    scores[scores == -1.0] = 0.0
    return scores


def context(
    lexical: Scores, dense: Scores | None, layout: Layout, settings: SearchSettings
) -> Scores:
    """The `context` scores; from the lexical arm alone if there is no dense one."""
    weight = settings.dense_weight if dense is not None else 0.0
    own = (1 - weight) * minmax(lexical)
    if dense is not None:
        own = own + weight * minmax(dense)
    needs = np.minimum(1.0, (settings.own_length / np.maximum(layout.lengths, 1)) ** 2)
    # By session, and inside it in the order of the text: neighbours stand next to each other.
    order = np.argsort(layout.sessions, kind="stable")
    sessions = layout.sessions[order]
    near, far = _steps_away(own[order], sessions, 1), _steps_away(own[order], sessions, 2)
    borrowed = np.empty_like(own)
    borrowed[order] = settings.near_weight * near + settings.far_weight * far
    sums = _session_sums(own, order, sessions)
    support = minmax(sums - sums.min(initial=np.inf))
    result: Scores = minmax(own + needs * borrowed) + settings.session_weight * needs * support
    return result


def _steps_away(scores: Scores, sessions: NDArray[np.int32], step: int) -> Scores:
    """The sum of the scores `step` before and behind, where they belong to the same session."""
    total = np.zeros_like(scores)
    if len(scores) > step:
        same = (sessions[step:] == sessions[:-step]) & (sessions[step:] >= 0)
        total[step:] += np.where(same, scores[:-step], 0.0)
        total[:-step] += np.where(same, scores[step:], 0.0)
    return total


def _session_sums(scores: Scores, order: NDArray[np.intp], sessions: NDArray[np.int32]) -> Scores:
    """For each chunk the sum of the best scores in its session; 0 without one."""
    total = np.zeros_like(scores)
    if len(scores) == 0:
        return total
    starts = np.flatnonzero(np.r_[True, sessions[1:] != sessions[:-1]])
    by_rank = order[np.lexsort((-scores[order], sessions))]
    ranks = np.arange(len(scores)) - np.repeat(starts, np.diff(np.r_[starts, len(scores)]))
    best = np.where((ranks < BEST_OF_SESSION) & (sessions >= 0), scores[by_rank], 0.0)
    sums = np.add.reduceat(best, starts)
    total[order] = np.repeat(sums, np.diff(np.r_[starts, len(scores)]))
    return total
