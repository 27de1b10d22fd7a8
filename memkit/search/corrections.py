"""Put a later entry before the one it changes, and mark the earlier one.

Facts name what they supersede, see `memkit.search.selection`. Between other entries only the text tells.
The point of the earlier entry is its sentences that match the question. A later entry changes it if

- the two are about the same subject: their cosine is at least `LEAST_COSINE`;
- a sentence of the later one speaks of a change ("replaced", "no longer"), or gives the same quantity another
  value ("600 s" after "300 s");
- that sentence and the point share `LEAST_SHARED` rare terms, and more in long turns, which share words by
  chance.

So a test, a bug, or a question about the same subject changes nothing, nor does the work that carries out
what the earlier entry decided, and has no words besides. `docs/benchmarks.md` has the figures.

Inside a session, a question has the words that somebody searches for, and the answer to "ok, the second" says
what was done. So a turn that asked comes after a later one that edited files on a short word, if that one
matches at least `DECIDED_SHARE` as well.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memkit.index.chunk import Chunk
from memkit.journal.turn_parts import TurnParts, read_parts
from memkit.search.excerpts import sentences_of
from memkit.search.fusion import Scores
from memkit.search.selection import BulletIndex, NewerEntry, Place

if TYPE_CHECKING:
    from memkit.search.corpus import Corpus

MOST_PLACES = 10
"""The places to compare, best first."""

LEAST_COSINE = 0.5
LEAST_SHARED = 2.0
"""In terms that one chunk holds; a term that more chunks hold counts less."""

USUAL_LENGTH = 700
"""Characters of a turn. A turn of twice as many must share twice as much."""

NEAR_POINT = 0.7
MOST_POINTS = 4
"""The point: at most this many sentences, with at least this share of the best one's match."""

MOST_SENTENCES = 60

DECIDED_SHARE = 0.4
MOST_WORDS = 15
"""The most words of a prompt that goes on with what was talked about."""

_ASKS = re.compile(r"\?|\b(?:how|what|which|where|should|could)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"""\b(?:instead\ of|in\ place\ of|no\ longer|any\ longer|not\ \w+\ any\ ?more|back\ to|from\ now\ on|now
    |rid\ of|gone|history|wrong|replac(?:es?|ed|ing)|switch(?:ed|es|ing)?|migrat(?:es?|ed|ing)|mov(?:ed|ing)
    |move\ (?:it\ |them\ )?(?:to|off|away)|revert(?:s|ed)?|undid|undone|dropped|removed|deleted|uninstalled
    |retired|deprecated|changed|raised|lowered|increased|decreased|reduced|shortened|extended|rewrote|rewritten
    |supersed(?:es?|ed)|overruled|amend(?:s|ed)|abandon(?:s|ed))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_KEEPS = re.compile(
    r"\b(?:(?:did|does|do|has|have|had|is|are|was|were)(?: not|n['’]t) chang\w*"
    r"|unchanged|as before|stays?)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:original\w*|previous\w*|before|formerly|initial\w*|at first|used to|earlier|back then|in the past"
    r"|old)\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?<!\S)(?!\w+://)\S*/\S+")
_DONE = "done finished implemented committed pushed deployed added updated tested passes also everything now"
_PRESENT = re.compile(r"\b(?:current(?:ly)?|now|nowadays|still|latest|these days|any ?more)\b", re.IGNORECASE)
PRESENT_PLACES, PRESENT_SHARE = 3, 0.95
"""A question about the present is answered by the newest of the first places that are nearly as relevant."""

_WORD_OR_NUMBER = re.compile(r"[^\W\d_]+|\d[\d.,:]*(?: ?%)?")
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}


def decided_first(corpus: Corpus, ranked: Iterator[tuple[Place, Chunk]]) -> Iterator[tuple[Place, Chunk]]:
    """Yield the `ranked` places, with the turn that decided before the first of its session if that asked."""
    first = list(islice(ranked, MOST_PLACES))
    sessions = corpus.columns["session"]
    seen = {-1}  # in no session

    def parts(number: int) -> TurnParts:
        return read_parts(corpus.turn_text(first[number][0].position))

    for number, (place, chunk) in enumerate(first):
        session = int(sessions[place.position])
        if chunk.kind != "turn" or session in seen:
            continue
        seen.add(session)
        following = [
            n
            for n, (other, text) in enumerate(first[number + 1 :], start=number + 1)
            if text.kind == "turn"
            and sessions[other.position] == session
            and (text.date, other.position) > (chunk.date, place.position)
            and other.score >= DECIDED_SHARE * place.score
        ]
        if following and _ASKS.search((asked := parts(number)).prompt) and not asked.edited:
            decided = next((n for n in following if goes_on(parts(n))), None)
            if decided is not None:
                other, text = first.pop(decided)
                first.insert(number, (other._replace(score=place.score), text))
    yield from first
    yield from ranked


def goes_on(turn: TurnParts) -> bool:
    """Return whether a turn edited files on a prompt of a few words, about what was talked of before."""
    return len(turn.prompt.split()) <= MOST_WORDS and bool(turn.edited)


ALIKE, FILE_ALIKE = 0.5, 0.4
"""The cosine of two turns on one subject, and of two that edited the same file."""

MOST_ALIKE = 4
MOST_NAMING = 8
"""A file that more chunks name is no sign that two turns are about the same."""

CHANGED_SHARED = 1.2
ALSO_SHARED = 0.5
"""A later turn that describes a change belongs to the earlier session that has most of its rare terms."""


class ChangedTurns:
    """The later turns that change what a turn of another session says, whatever is asked.

    The words of a question need not be in both: "where is production hosted" may be in neither.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = weakref.proxy(corpus)
        self._changed: dict[int, int] = {}

    def change_of(self, position: int, near: NDArray[np.bool_]) -> int | None:
        """Return the newest of the `near` turns that changes the one at `position`, or None."""
        days, sessions = self._corpus.columns["day"], self._corpus.columns["session"]
        alike = self._alike(position, near, FILE_ALIKE)
        later = [n for n in alike if (days[n], n) > (days[position], position)]
        edited = self._edited(position) if later else set()
        for n in sorted(later, key=lambda n: (days[n], n), reverse=True):
            is_alike = self._corpus.likeness(position, [n]) >= ALIKE
            is_told = is_alike and self._shared(position, n) >= ALSO_SHARED
            if is_told and self._session_before(n) == sessions[position]:
                return n
            if not edited.isdisjoint(read_parts(self._corpus.turn_text(n)).edited):
                return n
        return None

    def _edited(self, position: int) -> set[str]:
        """Return the files that a turn edited, without those that many turns name."""
        files = read_parts(self._corpus.turn_text(position)).edited
        held = ((one, self._corpus.holders(one)) for one in files)
        return {one for one, turns in held if turns is not None and np.count_nonzero(turns) <= MOST_NAMING}

    def _session_before(self, position: int) -> int:
        if position not in self._changed:
            corpus = self._corpus
            earlier = self._alike(position, corpus.columns["day"] <= corpus.columns["day"][position])
            shared, best = max(((self._shared(n, position), n) for n in earlier), default=(0.0, position))
            self._changed[position] = int(corpus.columns["session"][best]) if shared >= CHANGED_SHARED else -1
        return self._changed[position]

    def _shared(self, position: int, later: int) -> float:
        """Return how rare the terms are that a turn has from what a later one says about a change."""
        corpus, lexical = self._corpus, self._corpus.lexical_of(later)
        told = " ".join(filter(tells_change, sentences_of(corpus.chunk(later).content)))
        shared = set(lexical.terms(told)).intersection(lexical.terms(corpus.chunk(position).content))
        return float(lexical.rarity(shared))

    def _alike(self, position: int, near: NDArray[np.bool_], least: float = ALIKE) -> list[int]:
        """Return the most similar of the `near` turns in other sessions, best first."""
        corpus, sessions = self._corpus, self._corpus.columns["session"]
        _, likeness = corpus.cosines(corpus.direction(position).astype(np.float32))
        near = near & corpus.is_turn & (sessions >= 0) & (sessions != sessions[position])
        found = np.flatnonzero(near & (likeness >= least)).tolist()
        best = sorted(found, key=lambda n: -likeness[n])[:MOST_ALIKE]
        return [n for n in best if corpus.root(n) == corpus.root(position)]


def tells_change(text: str) -> bool:
    """Return whether a sentence speaks of a change; "now" alone says little."""
    return any(word.lower() != "now" for word in _CHANGES.findall(_KEEPS.sub("", text)))


class _Sentence(NamedTuple):
    text: str
    speaks: bool
    values: dict[str, set[str]]


class _Entry(NamedTuple):
    place: Place
    chunk: Chunk
    time: tuple[int, int]
    root: str
    vector: NDArray[np.float64]
    length: float


class NewestFirst:
    """Puts the places of one question in order."""

    def __init__(self, corpus: Corpus, question: str, relevance: Scores) -> None:
        self._corpus = corpus
        self._relevance = relevance if _PRESENT.search(question) else None
        # A question about the past is answered by what was said then.
        self._moves = not _PAST.search(question)
        # By position. The same entry is compared with many others.
        self._sentences = functools.cache(self._read)
        # No cached method: a cycle of references would keep the files of an old snapshot open.
        self._points: dict[int, list[_Sentence]] = {}
        self._terms = functools.cache(
            lambda position, text: frozenset(corpus.lexical_of(position).terms(text))
        )
        self._weights = functools.cache(lambda lexical: lexical.rarities(question))
        self._rarity = functools.cache(lambda position, term: corpus.lexical_of(position).rarity([term]))

    def ordered(
        self, ranked: Iterator[tuple[Place, Chunk]], further: Iterator[tuple[Place, Chunk]]
    ) -> Iterator[tuple[Place, Chunk]]:
        """Yield the `ranked` places. A changed entry among the first is marked and comes after its change.

        If there are few, yield also those of the `further` places that change one of them.
        """
        placed: list[_Entry] = []
        for place, chunk in islice(ranked, MOST_PLACES):
            new = self._entry(place, chunk)
            new, target = self._compare(placed, new)
            if not self._moves or target is None:
                placed.append(new)
            else:
                placed.insert(target, _raised(new, placed[target]))
        if len(placed) < MOST_PLACES:
            known = {one.place.position for one in placed}
            for place, chunk in islice(further, MOST_PLACES):
                if place.position in known:
                    continue
                new, target = self._compare(placed, self._entry(place, chunk))
                if self._moves and target is not None:
                    placed.insert(target, _raised(new, placed[target]))
        if self._relevance is not None and placed:
            least = PRESENT_SHARE * self._relevance[placed[0].place.position]
            near = [one for one in placed[:PRESENT_PLACES] if self._relevance[one.place.position] >= least]
            first, newest = placed[0], max(near, key=lambda one: one.time[0])
            placed.remove(newest)
            placed.insert(0, _raised(newest, first))
        yield from ((one.place, one.chunk) for one in placed)
        yield from ranked

    def _compare(self, placed: list[_Entry], new: _Entry) -> tuple[_Entry, int | None]:
        target = None
        for number, other in enumerate(placed):
            first, second = (other, new) if other.time < new.time else (new, other)
            later = self._change(first, second)
            if later is None:
                continue
            marked = first._replace(place=_newest(first.place, later))
            if first is new:
                new = marked
            else:
                placed[number] = marked
                target = number if target is None else target
        return new, target

    def _entry(self, place: Place, chunk: Chunk) -> _Entry:
        corpus, position = self._corpus, place.position
        last = position
        if chunk.kind == "summary":  # a summary precedes the turns that it covers
            turns = corpus.derived(BulletIndex).turns(position)
            last = max((n for one in turns for n in one.pieces), default=last)
        return _Entry(
            place,
            chunk,
            (int(corpus.columns["day"][position]), last),
            corpus.root(position),
            corpus.direction(position),
            float(corpus.layout.entry_lengths[position]),
        )

    def _change(self, earlier: _Entry, later: _Entry) -> NewerEntry | None:
        if (
            not {earlier.chunk.kind, later.chunk.kind} <= {"turn", "summary"}
            or earlier.root != later.root
            or not set(earlier.chunk.turns).isdisjoint(later.chunk.turns)
            or not earlier.time[0]
            or earlier.vector @ later.vector < LEAST_COSINE
        ):
            return None
        needed = LEAST_SHARED * max(1.0, max(earlier.length, later.length) / USUAL_LENGTH)
        position = earlier.place.position
        best, text = needed, ""
        for sentence in self._sentences(later.place.position, later.chunk.content):
            if not (sentence.speaks or sentence.values) or self._carries_out(sentence, earlier):
                continue
            for point in self._match(position, earlier.chunk.content):
                if sentence.speaks or _differ(point.values, sentence.values):
                    terms = self._terms(position, point.text) & self._terms(position, sentence.text)
                    shared = sum(self._rarity(position, term) for term in sorted(terms))
                    if shared >= best:
                        best, text = shared, sentence.text
        return NewerEntry(later.place.position, later.chunk.date, text) if text else None

    def _carries_out(self, sentence: _Sentence, earlier: _Entry) -> bool:
        """Return whether a sentence only tells that a change was made which `earlier` itself decides."""
        position, content = earlier.place.position, earlier.chunk.content
        changes = {word.lower()[:4].rstrip("i") for word in _CHANGES.findall(sentence.text)} - {"now"}
        if not sentence.speaks or not all(re.search(rf"(?i)\b{re.escape(one)}", content) for one in changes):
            return False
        known = self._terms(position, content) | self._terms(position, _DONE)
        return self._terms(position, _PLACE.sub("", sentence.text)) <= known

    def _match(self, position: int, content: str) -> list[_Sentence]:
        if position in self._points:
            return self._points[position]
        weights = self._weights(self._corpus.lexical_of(position))
        known = self._sentences(position, content)
        terms = [self._terms(position, one.text) for one in known]
        matches = [sum(weights[term] for term in weights.keys() & own) for own in terms]
        best = max(matches, default=0.0)
        pairs = zip(known, matches, strict=True)
        near = [one for one, match in pairs if match >= NEAR_POINT * best] if best > 0 else []
        return self._points.setdefault(position, near[:MOST_POINTS])

    @staticmethod
    def _read(position: int, content: str) -> list[_Sentence]:
        found = []
        for text in islice(sentences_of(content), MOST_SENTENCES):
            speaks = bool(_CHANGES.search(text)) and not _KEEPS.search(text)
            found.append(_Sentence(text, speaks, _values(text)))
        return found


def _raised(new: _Entry, changed: _Entry) -> _Entry:
    score = max(new.place.score, changed.place.score)
    return new._replace(place=new.place._replace(score=score))


def _newest(place: Place, later: NewerEntry) -> Place:
    known = place.changed_by
    if known is not None and (known.date, known.position) > (later.date, later.position):
        return place
    return place._replace(changed_by=later)


def _differ(before: dict[str, set[str]], after: dict[str, set[str]]) -> bool:
    return any(before[unit].isdisjoint(after[unit]) for unit in before.keys() & after.keys())


def _values(text: str) -> dict[str, set[str]]:
    """Return the numbers in a sentence by the word that follows them: `{"node": {"3"}}` for "three nodes"."""
    found: dict[str, set[str]] = {}
    words: Iterable[str] = [*_WORD_OR_NUMBER.findall(text.lower()), ""]
    for word, unit in pairwise(words):
        if word.endswith("%"):
            word, unit = word.rstrip(" %"), "%"
        number = word.rstrip(".,:") if word[0].isdigit() else _NUMBERS.get(word, "")
        if number and unit and not unit[0].isdigit():
            found.setdefault(unit if unit == "s" else unit.rstrip("s"), set()).add(number)
    return found
