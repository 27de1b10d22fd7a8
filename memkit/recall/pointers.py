"""Depth L0, pointers: what came of earlier work on the subject of a prompt, in one line each next to it.

A pointer leads to the latest turn on the subject in its session, and quotes what came of that turn.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass

import numpy as np

from memkit.bullets import bullet_words
from memkit.hook.entries import OwnEntries, answer_of, entry_words, heading_words
from memkit.hook.phrases import first_sentence, sentences
from memkit.index.chunk import BULLETS, LEADING_HEADINGS, Chunk
from memkit.journal.sessions import outcome_of
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.projects.team_files import is_trusted
from memkit.recall.fusion import Scores
from memkit.recall.results import SearchRequest
from memkit.recall.search import Searcher
from memkit.recall.selection import BulletIndex, Place
from memkit.recall.superseded import SupersededIndex
from memkit.recall.team import shared_by
from memkit.subject import subject_of
from memkit.text import defuse, one_line

MOST_POINTERS = 3
MOST_CHARACTERS = 700
TEXT_CHARACTERS = 160
TITLE_CHARACTERS = 60

LEAST_RELEVANCE = 0.3
RELEVANCE_STEP = 0.03
SMALL_MEMORY = 64
MOST_RELEVANCE = 0.45
"""The relevance that the best match must have: `LEAST_RELEVANCE` in a memory of up to `SMALL_MEMORY` chunks,
and `RELEVANCE_STEP` more with each doubling, up to `MOST_RELEVANCE`.

A larger memory has better matches by chance: with 61 chunks, 5 % of the questions about something else reach
0.28, with 4,300 chunks 0.43. Its own questions reach about the same in both. `docs/benchmarks.md` has the
figures.
"""

ONE_WORD_RELEVANCE = 0.6
"""The same for a prompt with one word that names a subject: many entries have any one word."""

WORDS_RELEVANCE = 0.3
"""This much more is needed without vectors, where relevance is only the share of the prompt's words."""

NEAR_BEST = 0.7
"""The least share of the best relevance that the other pointers have."""

STILL_RELEVANT = 0.8
STILL_ALIKE = 0.7
"""A later turn of the session is on the same subject if it has this share of the relevance of the turn that
matches, or this cosine with it.
"""

MOST_SENTENCES = 30
"""The sentences to look at from the start of an answer, and from its end."""

LEAST_WORDS = 3
"""A shorter prompt ("go on", "yes, please") does not name a subject."""

_CANDIDATES = 16
_QUOTES = re.compile("[“”„‟″‶〝〞〟＂❝❞«»]")
OPENING = "Earlier work on this, quoted:"
_CLOSING = "`memkit expand ID` shows an entry."


@dataclass(frozen=True, slots=True)
class Pointer:
    """One remembered entry: its short id, its day, what it says in one line, and whether that still holds."""

    id: str
    date: str
    text: str
    is_superseded: bool = False


def find_pointers(
    searcher: Searcher,
    prompt: str,
    session: str,
    shown: Collection[str],
    own_of: Callable[[str, Chunk], Container[str] | None] = lambda root, chunk: None,
) -> list[Pointer]:
    """Return at most three pointers on the subject of `prompt`, best first; for most prompts none.

    Leave out entries of `session` itself, and ids in `shown`. `own_of` returns the words that may be quoted
    of a chunk in the project at a root, or None for any.
    """
    corpus, subject = searcher.corpus, subject_of(prompt)
    if len(prompt.split()) < LEAST_WORDS or not subject or not len(corpus):
        return []
    count = _CANDIDATES + min(len(shown), _CANDIDATES)
    request = SearchRequest(prompt, k=count, minimum=0.0, subject=subject)
    relevance, places = searcher.places(request)
    if session:
        relevance = np.where(corpus.where("session", lambda name: name == session), 0.0, relevance)
    least = _least_relevance(searcher, subject)
    if relevance.max() < least:
        return []
    quotation = _Quotation(searcher, relevance, subject, own_of)
    matches = [
        (float(max(relevance[[place.position, *place.merged]])), quotation.current(place))
        for place, _ in places
    ]
    # An entry that may not be quoted must not raise the bar.
    ranked = sorted(matches, key=lambda one: -one[0])
    best = next((near for near, position in ranked if quotation.pointer(position)), 0.0)
    if best < least:
        return []
    found: dict[object, Pointer] = {}
    for near, position in matches:
        if len(found) == MOST_POINTERS:
            break
        thread = (corpus.root(position), corpus.name("session", position) or position)
        if near < NEAR_BEST * best or thread in found:
            continue
        pointer = quotation.pointer(position)
        if pointer and pointer not in found.values() and quotation.ids(position).isdisjoint(shown):
            found[thread] = pointer
    return list(found.values())


def _least_relevance(searcher: Searcher, subject: str) -> float:
    corpus = searcher.corpus
    least = LEAST_RELEVANCE + RELEVANCE_STEP * max(0.0, math.log2(len(corpus) / SMALL_MEMORY))
    least = min(least, MOST_RELEVANCE)
    if len(corpus.terms(subject)) < 2:
        least = ONE_WORD_RELEVANCE
    return least if searcher.embedder is not None and corpus.has_vectors else least + WORDS_RELEVANCE


def written_by(home: Home) -> Callable[[str, Chunk], Container[str] | None]:
    """Return a function for `find_pointers` that lets it quote what this home, or its user, wrote.

    And what people shared in a clone that the user trusts. It reads the record of a project once.
    """
    record = functools.cache(lambda root: OwnEntries(home, root))
    trusts = functools.cache(lambda root: is_trusted(home, root))

    def own_of(root: str, chunk: Chunk) -> Container[str] | None:
        if chunk.kind == "team":  # the words of others, quoted as such
            return None if trusts(root) else ()
        if root == home.root or os.path.isabs(chunk.source):
            return None  # no repository brings the user's memory, or a file outside of the project
        return record(root)

    return own_of


def lay_out(pointers: Sequence[Pointer], opening: str = OPENING) -> str:
    """Return the pointers below `opening`, one a line, in at most `MOST_CHARACTERS`; "" if there are none."""
    text = ""
    room = MOST_CHARACTERS - len(opening) - len(_CLOSING) - 1
    for pointer in pointers:
        mark = ", superseded" if pointer.is_superseded else ""
        line = f"- {pointer.date} “{pointer.text}” ({pointer.id}{mark})\n".replace("-  ", "- ")
        if len(text) + len(line) > room:
            break
        text += line
    return f"{opening}\n{text}{_CLOSING}" if text else ""


def quotable_line(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Return text of a conversation as one line that cannot end its quotation."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return defuse(one_line(_QUOTES.sub('"', plain), limit), "system-reminder")


class _Quotation:
    def __init__(
        self,
        searcher: Searcher,
        relevance: Scores,
        subject: str,
        own_of: Callable[[str, Chunk], Container[str] | None],
    ) -> None:
        self._corpus = searcher.corpus
        self._least = searcher.settings.best_relevance
        self._relevance = relevance
        self._subject = subject
        self._own_of = own_of
        self._known: dict[int, tuple[Pointer | None, set[int]]] = {}
        self._weights: dict[int, dict[str, float]] = {}
        self._anything = np.ones(len(self._corpus), bool)

    def pointer(self, position: int) -> Pointer | None:
        """Return the pointer for the entry at `position`, or None if nothing of it may be quoted."""
        return self._found(position)[0]

    def ids(self, position: int) -> set[str]:
        """Return the ids of the entry to which that pointer leads, with its turns and bullets."""
        return set(map(self._corpus.shown_id, self._found(position)[1]))

    def current(self, place: Place) -> int:
        """Return the position of a place, or of the later entry that changes it and may be quoted."""
        later = place.changed_by
        return later.position if later and self.pointer(later.position) else place.position

    def _found(self, position: int) -> tuple[Pointer | None, set[int]]:
        if position not in self._known:
            self._known[position] = self._find(position)
        return self._known[position]

    def _find(self, position: int) -> tuple[Pointer | None, set[int]]:
        corpus = self._corpus
        for latest in dict.fromkeys((self._latest(position), position)):
            shown, text = self._quoted(latest, position)
            if not text:
                continue
            facts = (corpus.derived(SupersededIndex).fact(n, self._anything) for n in (shown, latest))
            fact = next(filter(None, facts), None)
            if fact is not None and self._relevance[fact.position] >= self._least:
                holds, words = self._quoted(fact.position, fact.position)
                if words:  # say what holds now
                    shown, text, fact = holds, words, None
            name, day = corpus.shown_id(shown), corpus.chunk(shown).date
            entry = {shown, *self._entry(latest)}
            for turn in corpus.derived(BulletIndex).turns(latest):
                entry |= {*turn.pieces, *turn.bullets}
            return Pointer(name, day, quotable_line(text), fact is not None), entry
        return None, set()

    def _quoted(self, position: int, matched: int) -> tuple[int, str]:
        """Return the position of a bullet or of the entry itself, and what may be quoted of it, or ""."""
        chunk = self._corpus.chunk(position)
        bullet = self._bullet(position, chunk)
        return bullet or (position, self._outcome(position, chunk, matched))

    def _entry(self, position: int) -> list[int]:
        entries = self._corpus.columns["entry"]
        found: list[int] = np.flatnonzero(entries == entries[position]).tolist()
        return found

    def _latest(self, position: int) -> int:
        """Return the best piece of the session's latest turn on the same subject, or `position` itself."""
        corpus, relevance = self._corpus, self._relevance
        latest = position
        for pieces in corpus.derived(BulletIndex).later_turns(position):
            best = max(pieces, key=relevance.__getitem__)
            is_relevant = relevance[best] >= STILL_RELEVANT * relevance[position]
            if is_relevant or corpus.likeness(position, pieces) >= STILL_ALIKE:
                latest = best
        return latest

    def _bullet(self, position: int, chunk: Chunk) -> tuple[int, str] | None:
        corpus = self._corpus
        bullets = [position] if chunk.kind in BULLETS else []
        if chunk.kind == "turn":
            cited = {n for turn in corpus.derived(BulletIndex).turns(position) for n in turn.bullets}
            bullets = [n for n in cited if not corpus.derived(BulletIndex).is_unverified[n]]
        for best in sorted(bullets, key=self._relevance.__getitem__, reverse=True):
            one = corpus.chunk(best)
            lines = [line for line in LEADING_HEADINGS.sub("", one.content).splitlines() if line.strip()]
            words = [bullet_words(line) for line in lines]
            own = self._own_of(corpus.root(best), one)
            if words and (own is None or all(line in own for line in words)):
                return best, " ".join(words)
        return None

    def _outcome(self, position: int, chunk: Chunk, matched: int) -> str:
        """Return what came of an entry that has no bullet, or its heading; "" if nothing may be quoted.

        The title of the entry that `matched` comes first if the outcome has no word of the prompt.
        """
        if chunk.kind in BULLETS:  # not own
            return ""
        own = self._own_of(self._corpus.root(position), chunk)
        if chunk.kind == "team":
            said = one_line(LEADING_HEADINGS.sub("", chunk.content)) or heading_words(chunk.heading)
            return f"{shared_by(chunk.source).get('author', '')} shared: {said}" if own is None else ""
        heading = heading_words(chunk.heading)
        said = ""
        if chunk.kind == "turn":
            said = self._said(position, heading, own)
        if not said:
            words = heading or (one_line(chunk.content) if own is None else "")
            return words if own is None or words in own else ""
        title = heading_words(self._corpus.chunk(matched).heading)
        if self._weigher(position)(said) or (own is not None and title not in own):
            return said
        return f"{one_line(title.partition(' ')[2], TITLE_CHARACTERS)} → {said}"

    def _said(self, position: int, heading: str, own: Container[str] | None) -> str:
        """Return the sentence of a turn's answer with the most words of the prompt, rare ones first.

        Without one, return what came of the turn. Quote only words in `own`.
        """
        section = self._corpus.turn_text(position)
        outcome, answer = outcome_of(section), read_parts(section).answer
        if own is not None:
            # An earlier version recorded the start of an answer only.
            forms = (answer_of(section, 0), answer_of(section))
            known = next((one for one in forms if entry_words(heading, one) in own), "")
            if not known:
                return ""
            # Quote what was recorded, whatever else stands in the section.
            answer = answer if " ".join(answer.split()) == known else known
            if outcome != "interrupted" and _letters(outcome) not in _letters(answer):
                outcome = first_sentence(answer)
        prose = "\n".join(answer.split("```")[::2])
        said = [one for line in prose.split("\n") for one in sentences(line.lstrip("\\ "))]
        telling = [one for one in said if not one.endswith((":", "?", "…"))]
        ends = [*telling[:MOST_SENTENCES], *telling[MOST_SENTENCES:][-MOST_SENTENCES:]]
        best = max([outcome, *ends], key=self._weigher(position))
        # Without emoji or emphasis, parts of a secret can join.
        return best if best in answer else redact(best)

    def _weigher(self, position: int) -> Callable[[str], float]:
        """Return a function for the weight of the prompt's words in a text: rare words weigh more."""
        lexical = self._corpus.lexical_of(position)
        weights = self._weights.get(id(lexical))
        if weights is None:
            weights = self._weights[id(lexical)] = lexical.rarities(self._subject)
        return lambda text: sum(weights[term] for term in weights.keys() & set(lexical.terms(text)))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
