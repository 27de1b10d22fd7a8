"""Name topics without a model: class-based TF-IDF (Grootendorst, 2022) over the words of the search index.

A word counts for a topic if many of its entries hold it and few others do; the root of its frequency keeps
words that are frequent everywhere back. The best words become a phrase, in the form in which the entries
write them, words that stand side by side first.

`names` has a model name topics as well, where summaries are on.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit.index.snapshot import Snapshot
from memkit.index.tokens import Tokenizer, tokenizer_of
from memkit.text import one_line, printable
from memkit.topics.clusters import Points

LABEL_CHARACTERS = 50
MOST_WORDS = 12
"""Words to keep for a topic; a search looks at them."""

_RELEASED_EVERY = 1_000
_CANDIDATES = 60
_SAMPLES = 12
"""Entries per topic to take the forms of words from."""

_LABEL_WORDS = 4
_SAMPLE_CHARACTERS = 4_000
_WORD = re.compile(r"[^\W_](?:[\w'’./:-]*[^\W_])?")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{6,}")


@dataclass(frozen=True, slots=True)
class TopicWords:
    """Candidates for a topic's label: its words, and its pairs of neighboring words, best first."""

    words: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


def clean(label: str) -> str:
    """Return a label of a model or a user as one line of at most `LABEL_CHARACTERS` printable characters."""
    return one_line(printable(label), LABEL_CHARACTERS)


def words_of_topics(
    snapshot: Snapshot, points: Points, clusters: Sequence[NDArray[np.int64]], language: str
) -> list[TopicWords]:
    """Return the words of each cluster of points; the first points of a cluster are its samples."""
    if not clusters:
        return []
    weights = _weights(snapshot, points, clusters)
    tokenizer = tokenizer_of(language)
    found = []
    for members, own in zip(clusters, weights, strict=True):
        chunks = [snapshot.chunk(one) for one in points.first_chunks[members[:_SAMPLES]].tolist()]
        texts = [chunk.lexical_text[:_SAMPLE_CHARACTERS] for chunk in chunks]
        found.append(_written(texts, own, tokenizer))
        snapshot.release()
    return found


def _weights(
    snapshot: Snapshot, points: Points, clusters: Sequence[NDArray[np.int64]]
) -> list[dict[str, float]]:
    """Return the best terms by class-based TF-IDF, whose frequency counts entries, not repetitions."""
    topic_of = np.full(len(points) + 1, -1, np.int64)  # the last one is for point -1: no point
    for number, members in enumerate(clusters):
        topic_of[members] = number
    count = len(clusters)
    sizes = np.array([len(members) for members in clusters], np.float64)
    best: list[list[tuple[float, str]]] = [[] for _ in clusters]
    average = float(sizes.mean())
    for row, (name, slots) in enumerate(snapshot.lexical.postings()):
        if row % _RELEASED_EVERY == 0:
            snapshot.release()
        if len(slots) < 2:
            continue
        term = name.decode("utf-8")
        if not _LETTERS.search(term) or _HEX.fullmatch(term):
            continue
        own = np.unique(points.of_chunk[slots])
        numbers, counts = np.unique(topic_of[own], return_counts=True)
        inside = numbers >= 0
        total = int(counts[inside].sum())
        for number, held in zip(numbers[inside].tolist(), counts[inside].tolist(), strict=True):
            if held > 1:
                weight = math.sqrt(held / sizes[number]) * math.log1p(average * count / total)
                push = heapq.heappush if len(best[number]) < _CANDIDATES else heapq.heappushpop
                push(best[number], (weight, term))
    return [
        {term: weight for weight, term in sorted(own, reverse=True)} for own in best
    ]


def _written(texts: Sequence[str], weights: dict[str, float], tokenizer: Tokenizer) -> TopicWords:
    """Return the terms as entries write them, each once, and pairs of neighbors, most frequent first."""
    forms: dict[str, Counter[str]] = {}
    pairs: Counter[tuple[str, str]] = Counter()
    for text in texts:
        before = ""
        for match in _WORD.finditer(text):
            term = next(iter(tokenizer.tokenize(match[0])), "")
            if term in weights:
                forms.setdefault(term, Counter())[match[0]] += 1
                if before and before != term and text[match.start() - 1] == " ":
                    pairs[before, term] += 1
            before = term if term in weights and text[match.end() : match.end() + 1] == " " else ""
    written = {term: _form(found) for term, found in forms.items()}
    ordered = sorted(written, key=lambda term: (-weights[term], term))
    words = tuple(dict.fromkeys(written[term] for term in ordered))
    strong = [
        (weights[first] + weights[second], count, written[first], written[second])
        for (first, second), count in pairs.items()
        if count > 1
    ]
    strong.sort(key=lambda one: (-one[0] * math.sqrt(one[1]), one[2:]))
    return TopicWords(
        words[:MOST_WORDS],
        tuple((first, second) for _, _, first, second in strong[:3]),
    )


def _form(found: Counter[str]) -> str:
    form = max(found, key=lambda one: (found[one], one))
    return form.lower() if form[1:].islower() and form.lower() in found else form


def phrase(topic: TopicWords) -> str:
    """Return a label for a topic: the best pair of neighbors, then the best words, as far as they fit.

    Different topics may get the same one.
    """
    chosen: list[str] = []
    used: set[str] = set()
    for first, second in topic.pairs[:1]:
        if first in topic.words[:6] or second in topic.words[:6]:
            chosen.append(f"{first} {second}")
            used |= {first.lower(), second.lower()}
    for word in topic.words:
        if len(used) >= _LABEL_WORDS:
            break
        lower = word.lower()
        if any(lower in one or one in lower for one in used):
            continue
        if len(", ".join([*chosen, word])) > LABEL_CHARACTERS:
            continue
        chosen.append(word)
        used.add(lower)
    return clean(", ".join(chosen)) or "unnamed"
