"""Compare the wording of a model's sentence with the text that it cites.

`is_covered` is a logistic regression over a few measures of wording (`Measures`). `benchmarks/summaries.py`
fits it on one set of true and false sentences, and prints its results on another set by kind of error. It
compares words and does not understand them: it finds invented prose, other numbers, and words of another
speaker, but hardly ever two names that changed places.
"""

from __future__ import annotations

import functools
import logging
import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import snowballstemmer

from memkit.errors import EmbeddingError
from memkit.journal.turn_parts import with_prompt
from memkit.subject import STOP_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

PERSON, ASSISTANT = "person", "assistant"
"""Who wrote a passage: the person's prompt, or the assistant's tool calls and answer."""

MOST_PASSAGES = 300

WITH_VECTORS = (-2.18, 1.13, 2.86, 0.68, 0.48, 0.88, 0.94, 2.27, 3.53, 2.12)
BY_WORDS = (-1.59, 2.14, 0.0, 1.14, 0.49, 1.15, 0.88, 3.36, 5.01, 2.29)
"""The intercept and the weights of `Measures`, with vectors and without.

`benchmarks/summaries.py --fit` prints them. The intercept includes the limit: 4.5 % of the true sentences of
that set are above 0.
"""

_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_LABEL = re.compile(r"^\*\*(Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)
_PASSAGE_END = re.compile(r"(?<=[.;:?!])\s+|(?<=[。！？；])|\n+| · ")
_WITHOUT_SPACES = re.compile("[\u2e80-\ud7ff\uf900-\ufaff]{3,}")
"""Chinese, Japanese, or Korean letters: the words are not separate, so pairs of letters count."""

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W\d_]+)*|\w+")
_NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve".split()
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS, start=2)}
_TOTALS = frozenset("all only every everything none nobody always never any entire".split())
_NEGATIONS = frozenset("not never cannot no".split())
_NAMES_PERSON = re.compile(r"\b(?:user|person|developer)\b", re.IGNORECASE)
_NAMES_ASSISTANT = re.compile(r"\bassistant\b", re.IGNORECASE)
_SUBJECT_CHARACTERS = 20
"""A person or assistant named within these first characters is the subject of the sentence."""

_STOP = STOP_WORDS["english"] | frozenset(
    """
    also already assistant instead just may might must one onto person rather since still user
    without yet nobody none nothing neither cannot never""".split()
)
_ACTS = frozenset(
    """
    asked ask wanted want wants requested decided chose chosen picked rejected declined refused
    insisted preferred approved accepted confirmed suggested proposed pointed reported said noticed""".split()
)


class Passage(NamedTuple):
    """A sentence or tool call of the cited text; who wrote it is `PERSON`, `ASSISTANT`, or "" if unknown."""

    text: str
    by: str = ""


class Measures(NamedTuple):
    """The differences between a sentence and the text that it cites. All are 0 if the two agree.

    Attributes:
        missing: share of its words, as stems, that the text lacks.
        far: cosine distance to its two best passages; 0 without vectors.
        other_number: how much better its other words fit a passage that has another number.
        total: 1 if it says "all", "only", "never", and the text has no such word.
        denied: share of the words after a "not" that one passage says without it.
        only_asked: 1 if its best passage is a prompt, which may not have been carried out.
        of_assistant: it is ascribed to the person, but nearer to the assistant's words.
        of_person: it is ascribed to the assistant, but nearer to the person's words.
        both: 1 if it says something about the person and the assistant.
    """

    missing: float
    far: float
    other_number: float
    total: float
    denied: float
    only_asked: float
    of_assistant: float
    of_person: float
    both: float


class KnownVectors:
    """The vectors of texts, each embedded once: many sentences cite the same passages."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def of(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the vectors of `texts`, each of length 1. Raise `EmbeddingError`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return [self._known[text] for text in texts]


def passages(text: str) -> list[Passage]:
    """Return the sentences and tool calls of a digest, or the sentences of any other text.

    Headings are left out, except the heading of a turn that is its prompt.
    """
    found = []
    by = ""
    for number, part in enumerate(_LABEL.split(_HEADING.sub("", with_prompt(text)))):
        if number % 2:
            by = PERSON if part == "Asked" else ASSISTANT
        else:
            found += [Passage(one, by) for one in _PASSAGE_END.split(part) if _WORD.search(one)]
    return found[:MOST_PASSAGES]


def is_covered(
    text: str, cited: Sequence[Passage], vectors: KnownVectors | None, limits: tuple[float, float] = (0, 0)
) -> bool:
    """Return whether the wording of a sentence agrees with the passages that it cites, of which it needs one.

    `limits` are those of the doubt with vectors and without. If the embedder fails, the words alone count.
    """
    if not cited:
        return False
    try:
        measures = measure(text, cited, vectors)
    except EmbeddingError as error:
        logger.warning("a bullet is compared by its words alone: %s", error)
        measures, vectors = measure(text, cited, None), None
    intercept, *weights = BY_WORDS if vectors is None else WITH_VECTORS
    doubt: float = intercept + sum(map(operator.mul, weights, measures))
    return doubt <= limits[vectors is None]


def best_passages(
    text: str, cited: Sequence[Passage], vectors: KnownVectors | None, most: int, characters: int
) -> list[Passage]:
    """Return the passages nearest to a sentence, in their order: at most so many of so many characters."""
    terms = _Words(text).terms
    try:
        near = _cosines(text, cited, vectors)
    except EmbeddingError as error:
        logger.warning("passages are chosen by their words alone: %s", error)
        near = [0.0] * len(cited)
    fit = [_share(terms, _Words(one.text).stems) + cosine for one, cosine in zip(cited, near, strict=True)]
    chosen: list[int] = []
    for number in sorted(range(len(cited)), key=lambda number: -fit[number])[:most]:
        characters -= len(cited[number].text)
        if characters < 0 and chosen:
            break
        chosen.append(number)
    return [cited[number] for number in sorted(chosen)]


def _cosines(text: str, cited: Sequence[Passage], vectors: KnownVectors | None) -> list[float]:
    if vectors is None:
        return [0.0] * len(cited)
    vector, *others = vectors.of([text, *(one.text for one in cited)])
    return [float(other @ vector) for other in others]


def measure(text: str, cited: Sequence[Passage], vectors: KnownVectors | None) -> Measures:
    """Return the measures of a sentence against the passages that it cites. Raise `EmbeddingError`.

    `cited` is not empty. Without vectors, passages are compared by their words alone.
    """
    claim, known = _Words(text), [_Words(one.text) for one in cited]
    everything = set().union(*(one.stems for one in known))
    terms = claim.terms
    near = _cosines(text, cited, vectors)
    fit = [_share(terms, one.stems) + cosine for one, cosine in zip(known, near, strict=True)]
    ranked = sorted(range(len(cited)), key=lambda number: -fit[number])
    far = 0.0
    if vectors is not None:
        pair = " ".join(cited[number].text for number in sorted(ranked[:2]))
        far = 1 - _cosines(text, [Passage(pair)], vectors)[0]
    start = text[:_SUBJECT_CHARACTERS]
    person, assistant = (names.search(start) is not None for names in (_NAMES_PERSON, _NAMES_ASSISTANT))
    both = bool(_NAMES_PERSON.search(text) and _NAMES_ASSISTANT.search(text))
    lean = _lean(claim, cited, known, near)
    spoken = {word for one in known for word in one.all}
    return Measures(
        missing=1 - _share(terms, everything), far=far, other_number=_other_number(claim, known, near),
        total=float(any(word in _TOTALS and word not in spoken for word in claim.all)),
        denied=_denied(claim, known),
        only_asked=float(not (person or assistant or both) and cited[ranked[0]].by == PERSON),
        of_assistant=-lean if person and not assistant else 0.0,
        of_person=lean if assistant and not person else 0.0,
        both=float(both),
    )


class _Words:
    def __init__(self, text: str) -> None:
        self.text = text
        self.all = [part for word in _WORD.findall(text) for part in _parts(word)]
        self.stems = {_stem(word) for word in self.all}
        self.content = [word for word in self.all if word not in _STOP and not _is_negation(word)]
        self.terms = [_stem(word) for word in self.content or self.all]
        self.numbers = [_stem(word) for word in self.all if word.isdigit() or word in _DIGITS]


def _parts(word: str) -> list[str]:
    if _WITHOUT_SPACES.search(word):
        return [word[start : start + 2] for start in range(len(word) - 1)]
    return [word.casefold().replace("’", "'")]


@functools.lru_cache(20_000)
def _stem(word: str) -> str:
    return _DIGITS.get(word) or str(snowballstemmer.stemmer("english").stemWord(word))


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _share(terms: Sequence[str], stems: set[str]) -> float:
    return sum(term in stems for term in terms) / max(1, len(terms))


def _lean(claim: _Words, cited: Sequence[Passage], known: Sequence[_Words], near: Sequence[float]) -> float:
    """Return how much nearer the claim is to the person's words than to the assistant's; 0 if unknown."""
    terms = [_stem(word) for word in claim.content if word not in _ACTS] or claim.terms
    sides = []
    for by in (PERSON, ASSISTANT):
        own = [number for number, one in enumerate(cited) if one.by == by]
        if not own:
            return 0.0
        stems = set().union(*(known[number].stems for number in own))
        sides.append(_share(terms, stems) + max(near[number] for number in own))
    return sides[0] - sides[1]


def _other_number(claim: _Words, known: Sequence[_Words], near: Sequence[float]) -> float:
    others = [term for term in claim.terms if term not in claim.numbers]
    if not claim.numbers or not others:
        return 0.0
    fit = [_share(others, one.stems) + cosine for one, cosine in zip(known, near, strict=True)]
    best = max(range(len(known)), key=lambda number: fit[number])
    worst = 0.0
    for value in claim.numbers if known[best].numbers else ():
        if value not in known[best].stems and value not in known[best].text:
            there = [fit[number] for number, one in enumerate(known) if value in one.stems]
            worst = max(worst, fit[best] - max(there, default=0.0))
    return worst


def _denied(claim: _Words, known: Sequence[_Words]) -> float:
    first = next((n for n, word in enumerate(claim.all) if _is_negation(word)), None)
    if first is None or f", {claim.all[first]} " in claim.text.casefold():  # "the server, not the app"
        return 0.0
    scope = [_stem(w) for w in claim.all[first + 1 : first + 8] if w in claim.content][:4]
    if len(scope) < 2:
        return 0.0
    said = {True: 0.0, False: 0.0}
    for one in known:
        is_negative = any(_is_negation(word) for word in one.all)
        said[is_negative] = max(said[is_negative], _share(scope, one.stems))
    return max(0.0, said[False] - said[True])
