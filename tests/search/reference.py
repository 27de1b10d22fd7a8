"""The ranking written out slowly, in the words of the docstring of `memkit.search.fusion`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import assume, currently_in_test_context

from memkit.search import fusion
from memkit.search.fusion import Arms, Layout, Weights

Values = list[float]


@dataclass
class Problem:
    """What a search knows of some chunks; a cosine of None: no vector."""

    bm25: Values
    passages: Values
    documents: Values
    cosines: list[float | None] | None
    recency: Values
    lengths: list[int]
    entries: list[int]
    sessions: list[int]
    numbers: list[int]
    """The document of each chunk."""

    weights: Weights

    @property
    def size(self) -> int:
        return len(self.bm25)

    @property
    def arms(self) -> Arms:
        dense = None if self.cosines is None else np.array(self.cosines, np.float64)
        recency = np.array(self.recency, np.float64)
        words = (np.array(arm, np.float64) for arm in (self.bm25, self.passages, self.of_documents))
        return Arms(*words, dense, recency)

    @property
    def of_documents(self) -> Values:
        """BM25 of each chunk's document: the same for all its chunks."""
        return [self.documents[self.numbers.index(number)] for number in self.numbers]

    @property
    def layout(self) -> Layout:
        columns = (self.lengths, self.entries, self.sessions, self.numbers)
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
    chosen, everyone, documents = problem.weights, range(problem.size), problem.numbers
    members = {number: [j for j in everyone if documents[j] == number] for number in documents}
    sizes, w, v = [], [], []
    for i in everyone:
        characters = sum(problem.lengths[j] for j in everyone if problem.entries[j] == problem.entries[i])
        sizes.append(max(characters, 1))
        w.append(min(1.0, (chosen.own_length / sizes[i]) ** 2))
    for i in everyone:
        own = members[documents[i]]
        weights = [max(problem.lengths[j], 1) for j in own]
        usual = math.fsum(sizes[j] * weight for j, weight in zip(own, weights, strict=True)) / sum(weights)
        v.append(min(1.0, (chosen.own_length / usual) ** 2))
    lexical, passage = z([*problem.bm25]), z([*problem.passages])
    s = [lexical[i] + chosen.passage_weight * v[i] * passage[i] for i in everyone]
    match = of_documents(members, {number: problem.of_documents[own[0]] for number, own in members.items()})
    if problem.cosines is not None:
        cosine = z(problem.cosines)
        for i in everyone:
            # No share is more than all of it.
            a = min(1.0, chosen.dense_weight + chosen.long_weight * (1 - w[i]))
            s[i] = (1 - a) * s[i] + a * cosine[i]
        means = {number: math.fsum(cosine[j] for j in own) / len(own) for number, own in members.items()}
        mean = of_documents(members, means)
        share = chosen.mean_weight
        match = {number: (1 - share) * match[number] + share * mean[number] for number in members}

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
    support = stretch([sums.get(i, lowest) for i in everyone], equal=chosen.neutral)
    first = stretch([s[i] + min(w[i], v[i]) * borrowed[i] for i in everyone], equal=1.0)
    whole = stretch([match[documents[i]] for i in everyone], equal=chosen.neutral)
    return [
        first[i]
        + chosen.session_weight * w[i] * (support[i] - chosen.neutral)
        + chosen.document_weight * (1 - v[i]) * (whole[i] - chosen.neutral)
        for i in everyone
    ]


def of_documents(members: dict[int, list[int]], values: dict[int, float]) -> dict[int, float]:
    """The standard score of each document."""
    return dict(zip(members, z([values[number] for number in members]), strict=True))


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
