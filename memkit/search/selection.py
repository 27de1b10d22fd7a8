"""Selection: which chunks become results, best first.

Each additional piece of a turn loses a little score. But a turn shares one place with the bullets that cite
it. With t the best score of its pieces and b that of its bullets, the place scores

    max(t, (t + b) / 2)

so that a bullet helps its turn only as far as the turn itself matches. The place shows the bullet, which
takes few tokens, unless the turn's text is worth its length. `docs/benchmarks.md` has the figures.

A fact comes before the entries that it supersedes. Facts are read from their files: the anchor that names
what a fact supersedes is not part of its chunk.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memkit.files import read_regular
from memkit.index.chunk import LEADING_HEADINGS, SHOWN_ID_CHARACTERS
from memkit.search.fusion import Scores

if TYPE_CHECKING:
    from memkit.search.corpus import Corpus

logger = logging.getLogger(__name__)

FIRST_CANDIDATES = 20
CANDIDATES_FACTOR = 2
"""The number of chunks to rank first, and the factor by which it grows each time."""

WORTH = 500
"""The characters by which a turn's text may exceed a bullet, per standard deviation of its better match."""

SHORT = 400
"""Characters. A turn's text that is shorter is always shown instead of a bullet, which would save little."""

MOST_MERGED = 20

MOST_TURNS = 20
"""The most turns of a bullet that count. memkit writes fewer, but a stranger may have written the file."""


@dataclass(frozen=True, slots=True, eq=False)
class CitedTurn:
    """The positions of a turn's pieces, and of the bullets that cite it."""

    pieces: list[int]
    bullets: list[int]


class BulletIndex:
    """The bullets of a corpus, and the turns they cite. A session is read when a search first finds it."""

    def __init__(self, corpus: Corpus) -> None:
        # Not a reference: a cycle would keep the files of an old snapshot open.
        self._corpus = weakref.proxy(corpus)
        self._sessions = corpus.columns["session"]
        self._order = np.argsort(self._sessions, kind="stable")
        self._ordered = self._sessions[self._order]
        in_session = self._sessions >= 0
        self.is_unverified = corpus.where("kind", lambda kind: kind == "unverified")
        self._is_bullet = self.is_unverified | corpus.where("kind", lambda kind: kind == "summary")
        self._is_bullet &= in_session
        self._is_turn = corpus.is_turn & in_session
        self._summarized = frozenset(self._sessions[self._is_bullet].tolist())
        self._known: dict[int, dict[int, list[CitedTurn]]] = {}

    def turns(self, position: int) -> Sequence[CitedTurn]:
        """Return the turn of a chunk if a bullet cites it, or the turns that a bullet cites."""
        session = int(self._sessions[position])
        if session not in self._summarized:
            return ()
        if session not in self._known:
            self._known[session] = self._read(session)
        return self._known[session].get(position, ())

    def _of_session(self, session: int) -> NDArray[np.intp]:
        first, last = np.searchsorted(self._ordered, [session, session + 1])
        return self._order[first:last]

    def _read(self, session: int) -> dict[int, list[CitedTurn]]:
        own = self._of_session(session)
        turns: dict[str, CitedTurn] = {}
        for position in own[self._is_turn[own]].tolist():
            for name in self._corpus.turns(position):
                turns.setdefault(name, CitedTurn([], [])).pieces.append(position)
        found: dict[int, list[CitedTurn]] = {}
        for position in own[self._is_bullet[own]].tolist():
            names = dict.fromkeys(self._corpus.turns(position)[:MOST_TURNS])
            for turn in (turns[name] for name in names if name in turns):
                turn.bullets.append(position)
                found.setdefault(position, []).append(turn)
        for turn in turns.values():
            for position in turn.pieces if turn.bullets else ():
                found[position] = [turn]
        return found

    def verified(self, position: int) -> list[int]:
        """Return the bullets that cite the turn of a chunk, without those that it does not prove."""
        cited = {n for turn in self.turns(position) for n in turn.bullets}
        return [n for n in sorted(cited) if not self.is_unverified[n]]

    def session_turns(self, position: int) -> Iterator[list[int]]:
        """Yield the pieces of each turn in the session of an entry, in order."""
        session, entries = int(self._sessions[position]), self._corpus.columns["entry"]
        if session >= 0:
            own = self._of_session(session)
            for _, pieces in groupby(own[self._is_turn[own]].tolist(), key=lambda n: int(entries[n])):
                yield list(pieces)

    def other_turns(self, position: int) -> Iterator[list[int]]:
        """Yield the pieces of the other turns in the session of an entry, without those that it cites."""
        entries = self._corpus.columns["entry"]
        cited = {int(entries[n]) for turn in self.turns(position) for n in turn.pieces}
        cited.add(int(entries[position]))
        for pieces in self.session_turns(position):
            if int(entries[pieces[0]]) not in cited:
                yield pieces


class NewerEntry(NamedTuple):
    """An entry that changes an earlier one: the position of its chunk, its day, and the sentence.

    A fact that `names_bullets` supersedes bullets, too.
    """

    position: int
    date: str
    text: str
    names_bullets: bool = False


class SupersededIndex:
    """The entries that the facts in a corpus supersede. A fact counts only in its own project."""

    def __init__(self, corpus: Corpus) -> None:
        # Not a reference: a cycle would keep the files of an old snapshot open.
        self._corpus = weakref.proxy(corpus)
        self._facts: dict[str, dict[str, NewerEntry]] = {}
        self._known: dict[int, tuple[NewerEntry | None, NewerEntry | None]] = {}
        chunks: dict[tuple[str, str], dict[str, int]] = {}
        for position in np.flatnonzero(corpus.where("kind", lambda kind: kind == "fact")).tolist():
            chunk = corpus.chunk(position)
            lines = chunks.setdefault((corpus.root(position), chunk.source), {})
            lines[LEADING_HEADINGS.sub("", chunk.content).strip()] = position
        for (root, source), lines in chunks.items():
            known = self._facts.setdefault(root, {})
            for name, fact in _read_facts(root, source, lines).items():
                if name not in known or known[name].date <= fact.date:
                    known[name] = fact

    def __bool__(self) -> bool:
        return any(self._facts.values())

    def fact(self, position: int, about: NDArray[np.bool_]) -> NewerEntry | None:
        """Return the fact that supersedes the chunk at `position`, or None.

        A turn says more than its superseded part. So a fact that names a turn counts only if the fact is
        `about` the question. A fact that names a bullet always counts.
        """
        if position not in self._known:
            facts = self._facts.get(self._corpus.root(position), {})
            self._known[position] = self._find(position, facts) if facts else (None, None)
        exact, by_turn = self._known[position]
        return exact or (by_turn if by_turn and about[by_turn.position] else None)

    def _find(
        self, position: int, facts: Mapping[str, NewerEntry]
    ) -> tuple[NewerEntry | None, NewerEntry | None]:
        """Return the fact that names the entry itself, and the fact that names its turn."""
        chunk = self._corpus.chunk(position)
        if chunk.kind == "fact":
            return None, None
        names = [self._corpus.id(position)[:SHOWN_ID_CHARACTERS], *chunk.citations]
        exact = next((facts[name] for name in names if name in facts), None)
        found = [facts.get(name) for name in chunk.turns]
        by_turn = found[0] if found and all(found) else None
        if by_turn and chunk.kind != "turn" and by_turn.names_bullets:
            by_turn = None  # another bullet of the turn is about something else
        return exact, by_turn


def _read_facts(root: str, source: str, lines: Mapping[str, int]) -> dict[str, NewerEntry]:
    """Return the indexed facts of a file that supersede something, by the id of each superseded entry."""
    from memkit.index.chunker import decode  # with a parser of Markdown, which few searches need
    from memkit.journal.facts import superseding_facts

    path = Path(root) / source
    try:
        text, _ = decode(read_regular(os.path.realpath(path)))
    except OSError as error:  # its entries stay unmarked
        logger.warning("%s cannot be read: %s", path, error.strerror)
        return {}
    found = superseding_facts(text, PurePosixPath(source).name)
    return {
        name: NewerEntry(
            lines[fact.shown], fact.date, fact.text, not set(fact.supersedes).isdisjoint(fact.citations.grips)
        )
        for name, fact in found.items()
        if fact.shown in lines
    }


class Place(NamedTuple):
    """A result's chunk and score, the other chunks that it represents, and what makes it out of date: a fact
    that supersedes it, or a later entry.
    """

    position: int
    score: float
    merged: Sequence[int] = ()
    fact: NewerEntry | None = None
    changed_by: NewerEntry | None = None


def best_of(
    places: NDArray[np.intp], size: int, scores: Scores, entries: NDArray[np.int32], days: NDArray[np.int32]
) -> tuple[NDArray[np.intp], float]:
    """Return the `size` best of `places`, those that equal the last of them, and the least score.

    Of equal scores the newer entry comes first.
    """
    own, least = scores[places], -np.inf
    if len(places) > size:
        least = float(np.partition(own, len(own) - size)[len(own) - size])
        places, own = places[own >= least], own[own >= least]
    order = np.lexsort((places, -entries[places], -days[places], -own))
    return places[order], least


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The data that decides which chunks become places. All arrays have one value per chunk.

    `own` is how well a chunk matches by itself, in standard deviations. `exact` are the chunks that hold a
    question which is one name, `about` those that are relevant to it. `raisable` facts come before what they
    supersede, even if they match too little to be `allowed`. Without `bullets`, no chunks are merged.
    `with_rest` also yields what a place does not show of its turn, for a caller that can use any amount of
    text.
    """

    scores: Scores
    own: Scores
    exact: NDArray[np.bool_] | None
    allowed: NDArray[np.bool_]
    lengths: NDArray[np.int32]
    entries: NDArray[np.int32]
    days: NDArray[np.int32]
    repeat_cost: float
    about: NDArray[np.bool_]
    raisable: NDArray[np.bool_]
    superseded: SupersededIndex | None = None
    bullets: BulletIndex | None = None
    with_rest: bool = False

    def places(self) -> Iterator[Place]:
        """Yield the places, best first. Of equal scores the newer entry comes first."""
        candidates = np.flatnonzero(self.allowed)
        count, yielded = FIRST_CANDIDATES, 0
        joint: dict[CitedTurn, list[Place]] = {}
        while True:
            best, least = best_of(candidates, count, self.scores, self.entries, self.days)
            is_all = len(best) == len(candidates)
            found = self._ranked(best.tolist(), joint)
            for place in found[yielded:]:
                if place.score < least and not is_all:  # a chunk further down could still be better
                    break
                yielded += 1
                yield place._replace(merged=self._others(place.position))
            if is_all:
                return
            count *= CANDIDATES_FACTOR

    def _ranked(self, best: list[int], joint: dict[CitedTurn, list[Place]]) -> list[Place]:
        """Return the places of the `best` chunks in order. More chunks change only lower ones.

        `joint` keeps the places of turns from call to call.
        """
        found: list[Place] = []
        seen: set[CitedTurn] = set()
        repeats: dict[int, int] = {}
        for position in best:
            turns = self.bullets.turns(position) if self.bullets else ()
            if not turns:
                entry = int(self.entries[position])
                repeats[entry] = repeats.get(entry, -1) + 1
                score = float(self.scores[position]) - self.repeat_cost * repeats[entry]
                found.append(Place(position, score))
            for turn in turns:
                if turn not in seen:
                    seen.add(turn)
                    found += joint.get(turn) or joint.setdefault(turn, self._joint(turn))
        found.sort(key=lambda place: -place.score)
        shown: dict[int, Place] = {}
        for place in found:
            fact = self.superseded.fact(place.position, self.about) if self.superseded else None
            if fact and self.raisable[fact.position] and self.about[fact.position]:
                shown.setdefault(fact.position, Place(fact.position, place.score))
            # It may be there already: a bullet may cite several turns.
            shown.setdefault(place.position, place._replace(fact=fact) if fact else place)
        return list(shown.values())

    def _joint(self, turn: CitedTurn) -> list[Place]:
        """Return the one place of a turn and its bullets, at least one of which is allowed, and the rest."""
        score = self.scores.__getitem__
        pieces = [n for n in turn.pieces if self.allowed[n]]
        bullets = [n for n in turn.bullets if self.allowed[n]]
        shown = max(pieces or bullets, key=score)
        value = score(shown)
        if pieces and bullets:
            bullet = max(bullets, key=score)
            value = max(value, (value + score(bullet)) / 2)
            shown = shown if self._is_better(shown, bullet) else bullet
        return [Place(shown, float(value)), *(self._rest(turn, shown) if self.with_rest else ())]

    def _rest(self, turn: CitedTurn, shown: int) -> Iterator[Place]:
        """Yield the pieces of the turn that its place does not show."""
        pieces = [n for n in turn.pieces if self.allowed[n] and n != shown]
        pieces.sort(key=self.scores.__getitem__, reverse=True)
        for number, piece in enumerate(pieces, start=1):
            yield Place(piece, float(self.scores[piece]) - self.repeat_cost * number)

    def _is_better(self, piece: int, bullet: int) -> bool:
        """Return whether to show the turn's `piece` and not its best `bullet`."""
        if self.exact is not None and self.exact[piece] != self.exact[bullet]:
            return bool(self.exact[piece])
        length, shorter = int(self.lengths[piece]), int(self.lengths[bullet])
        return bool(
            length < SHORT
            or self.own[piece] - self.own[bullet] > (length - shorter) / WORTH
            or (self.bullets and self.bullets.is_unverified[bullet])
        )

    def _others(self, shown: int) -> list[int]:
        """Return what the place at `shown` represents: for a turn its other pieces and its bullets, for a
        bullet the best piece of each turn that it cites and the other bullets.
        """
        turns = self.bullets.turns(shown) if self.bullets else ()
        score = self.scores.__getitem__
        pieces = [max(one.pieces, key=score) for one in turns if shown not in one.pieces]
        if not pieces and not self.with_rest:
            own = (self.entries == self.entries[shown]) & self.allowed
            pieces = sorted(np.flatnonzero(own).tolist(), key=score, reverse=True)
        bullets = sorted({n for one in turns for n in one.bullets}, key=score, reverse=True)
        return [n for n in (*pieces, *bullets) if n != shown][:MOST_MERGED]
