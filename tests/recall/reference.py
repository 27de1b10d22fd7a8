"""The ranking written out slowly, in the words of the docstring of `memkit.recall.fusion`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import assume, currently_in_test_context

from memkit.recall import fusion
from memkit.recall.fusion import Arms, Layout, Weights

Values = list[float]


@dataclass
class Problem:
    """What a search knows of some chunks; a cosine of None: no vector."""

    bm25: Values
    passages: Values
    cosines: list[float | None] | None
    recency: Values
    lengths: list[int]
    entries: list[int]
    sessions: list[int]
    weights: Weights

    @property
    def size(self) -> int:
        return len(self.bm25)

    @property
    def arms(self) -> Arms:
        dense = None if self.cosines is None else np.array(self.cosines, np.float64)
        recency = np.array(self.recency, np.float64)
        return Arms(np.array(self.bm25, np.float64), np.array(self.passages, np.float64), dense, recency)

    @property
    def layout(self) -> Layout:
        columns = (self.lengths, self.entries, self.sessions)
        return Layout(*(np.array(column, dtype=np.int32) for column in columns))

    def ranked(self, mode: str) -> Values:
        """Return the scores under test."""
        found: Values = fusion.fuse(self.arms, self.layout, mode, self.weights).scores.tolist()
        assert len(found) == self.size
        assert all(map(math.isfinite, found))
        return found


def spread(values: Values) -> float:
    """How far apart they are; what only rounding tells apart is no example."""
    far = max(values) - min(values)
    if currently_in_test_context():
        assume(far == 0 or far > 1e-6)
    return far


def z(values: list[float | None]) -> Values:
    """Standard scores; 0 for what is not known."""
    known = [value for value in values if value is not None]
    if not known or spread(known) == 0:
        return [0.0] * len(values)
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    return [0.0 if value is None else (value - mean) / deviation for value in values]


def stretch(values: Values, equal: float = 0.0) -> Values:
    if not values or spread(values) == 0:
        return [equal] * len(values)
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def context(problem: Problem) -> Values:
    """Mode `context`, line by line."""
    chosen, everyone = problem.weights, range(problem.size)
    w = []
    for i in everyone:
        characters = sum(problem.lengths[j] for j in everyone if problem.entries[j] == problem.entries[i])
        w.append(min(1.0, (chosen.own_length / max(characters, 1)) ** 2))
    own, passage = z([*problem.bm25]), z([*problem.passages])
    s = [own[i] + chosen.passage_weight * w[i] * passage[i] for i in everyone]
    if problem.cosines is not None:
        cosine = z(problem.cosines)
        of_entry = []
        for i in everyone:
            entry = [cosine[j] for j in everyone if problem.entries[j] == problem.entries[i]]
            of_entry.append(math.fsum(entry) / len(entry))
        of_entry = z([*of_entry])
        for i in everyone:
            d = (1 - chosen.entry_weight) * cosine[i] + chosen.entry_weight * of_entry[i]
            # No share is more than all of it.
            a = min(1.0, chosen.dense_weight + chosen.long_weight * (1 - w[i]))
            s[i] = (1 - a) * s[i] + a * d

    borrowed, sums = [], {}
    for i in everyone:
        session = [j for j in everyone if problem.sessions[j] == problem.sessions[i] >= 0]
        if not session:
            borrowed.append(0.0)
            continue
        sums[i] = math.fsum(sorted((s[j] for j in session), reverse=True)[:3])
        place, total = session.index(i), 0.0
        for step, weight in ((1, chosen.near_weight), (2, chosen.far_weight)):
            for other in (place - step, place + step):
                if 0 <= other < len(session):
                    total += weight * s[session[other]]
        borrowed.append(total)
    # A chunk without a session is supported like the worst session, or by nothing if that is less.
    lowest = min([0.0, *sums.values()])
    support = stretch([sums.get(i, lowest) for i in everyone])
    first = stretch([s[i] + w[i] * borrowed[i] for i in everyone], equal=1.0)
    return [first[i] + chosen.session_weight * w[i] * support[i] for i in everyone]


def reciprocal(scores: Values, k: int) -> Values:
    """1 / (k + rank) of what was found."""
    result = [0.0] * len(scores)
    found = sorted((-score, i) for i, score in enumerate(scores) if score > 0)
    for rank, (_, i) in enumerate(found, start=1):
        result[i] = 1 / (k + rank)
    return result


def known(problem: Problem) -> Values:
    """The cosines, 0 for what has none."""
    return [cosine or 0.0 for cosine in problem.cosines or [None] * problem.size]


def rrf(problem: Problem) -> Values:
    k = problem.weights.rrf_k
    arms = zip(reciprocal(problem.bm25, k), reciprocal(known(problem), k), strict=True)
    return [words + cosine for words, cosine in arms]


def weighted(problem: Problem) -> Values:
    chosen = problem.weights
    parts = zip(stretch(known(problem)), stretch(problem.bm25), problem.recency, strict=True)
    return [
        chosen.semantic_weight * cosine
        + chosen.keyword_weight * words
        + chosen.recency_weight * recency
        for cosine, words, recency in parts
    ]
