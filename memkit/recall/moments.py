"""Pointers at the moment of action: a command failed as before, or a file with decisions is edited.

Both come from what the index and the day files already have. Nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit import anchors
from memkit.agents.tools import role_of
from memkit.bullets import DECIDED, WrittenBullet, bullet_words, read_bullets
from memkit.hook.entries import (
    HOOK_BYTES,
    OwnEntries,
    did_words,
    heading_words,
    read_days,
    sections_of,
)
from memkit.index.chunk import LEADING_HEADINGS
from memkit.journal.tool_lines import CallLine, names_file, read_call
from memkit.journal.turn_parts import read_parts, read_turn
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.recall.corpus import Corpus
from memkit.recall.failures import Signature, signature, way_past
from memkit.recall.pointers import Pointer, quotable_line
from memkit.recall.selection import BulletIndex
from memkit.recall.superseded import SupersededIndex

MOST_CANDIDATES = 30
"""The turns to look at: the best matches of an error, or the newest that name a file."""

MOST_FOLLOWING = 4
"""The turns after an error in which a call may have got past it."""

WORDS_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class _Turn:
    heading: str
    bullets: list[WrittenBullet]
    calls: list[CallLine]
    is_own: bool


class Moments:
    """Finds pointers in one corpus for a project. It quotes only what this home wrote."""

    def __init__(self, corpus: Corpus, project: Project, home: Home) -> None:
        self._corpus = corpus
        self._project = project
        self._home = home
        self._own = OwnEntries(home, project.root)
        self._days: dict[str, dict[str, _Turn]] = {}

    def past_failure(
        self, met: Signature, command: str, session: str, shown: Collection[str]
    ) -> Pointer | None:
        """Return how the newest turn outside of `session` and `shown` got past the failure `met`, or None."""
        if not met.tells:
            return None
        scores = self._corpus.match(f"{met.reason} {command}").scores
        scores = np.where(self._corpus.where("kind", lambda kind: kind == "turn"), scores, 0.0)
        best = np.argsort(-scores, kind="stable")[:MOST_CANDIDATES]
        candidates = [n for n in best.tolist() if scores[n] > 0 and self._is_here(n, session)]
        for position in sorted(candidates, key=self._age):
            if self._corpus.shown_id(position) in shown:
                continue
            if not any(met.matches(one) for one in self._failures(position)):
                continue
            if words := self._way_past(position, met):
                return self._pointer(position, words)
        return None

    def decision(self, paths: Collection[str], session: str, shown: Collection[str]) -> Pointer | None:
        """Return the newest decision about a file, which `paths` name relative to the project; or None.

        That is a line `Decided: …` that names the file, or rests on a turn that edited it. One that names
        it comes first. Leave out those of `session` itself, and ids in `shown`.
        """
        held = self._holding(paths)
        found: list[tuple[bool, tuple[int, int], Pointer]] = []
        for position in sorted(np.flatnonzero(held).tolist(), key=self._age)[:MOST_CANDIDATES]:
            if not self._is_here(position, session):
                continue
            for at, words in self._decided(position, paths):
                pointer = self._pointer(at, words)
                if pointer.id not in shown:
                    found.append((_is_named(words, paths), self._age(at), pointer))
        best = min(found, key=lambda one: (not one[0], one[1]), default=None)
        return best[2] if best else None

    def _decided(self, position: int, paths: Collection[str]) -> Iterator[tuple[int, str]]:
        """Yield the decisions that hold in a chunk, or that rest on its turn if that edited the file."""
        corpus, kind = self._corpus, self._corpus.name("kind", position)
        if kind in ("fact", "summary"):
            yield from (one for one in self._decided_in(position) if _is_named(one[1], paths))
        if kind != "turn":
            return
        calls = read_turn(corpus.turn_text(position)).calls
        if not any(call.is_edit and call.is_at(paths) for call in calls):
            return
        bullets = [at for turn in corpus.derived(BulletIndex).turns(position) for at in turn.bullets]
        for at in bullets:
            yield from self._decided_in(at)
        for turn in corpus.turns(position)[:1]:
            one = self._turn(position, turn)
            for bullet in one.bullets if one and not bullets else ():
                words = bullet.text
                if words.startswith(DECIDED) and bullet.is_verified and words in self._own:
                    yield position, words

    def _decided_in(self, position: int) -> Iterator[tuple[int, str]]:
        chunk = self._corpus.chunk(position)
        if chunk.kind == "unverified":
            return
        for line in LEADING_HEADINGS.sub("", chunk.content).splitlines():
            words = bullet_words(line)
            if words.startswith(DECIDED) and words in self._own:
                yield position, words

    def _holding(self, paths: Collection[str]) -> NDArray[np.bool_]:
        corpus = self._corpus
        held = np.zeros(len(corpus), bool)
        for name in {*paths, *(path.rpartition("/")[2] for path in paths)}:
            found = corpus.holders(name)
            # A name with a space or of another script is not one word.
            held |= corpus.match(name).coverage >= 1 if found is None else found
        return held

    def _age(self, position: int) -> tuple[int, int]:
        return -int(self._corpus.columns["day"][position]), -position

    def _is_here(self, position: int, session: str) -> bool:
        is_own_session = bool(session) and self._corpus.name("session", position) == session
        return not is_own_session and self._corpus.root(position) == self._project.root

    def _failures(self, position: int) -> list[Signature]:
        calls = map(read_call, read_parts(self._corpus.turn_text(position)).tools)
        return [signature(call) for call in calls if role_of(call.name) == "shell" and call.reason]

    def _way_past(self, position: int, met: Signature) -> str:
        """Return how a turn, or those that follow it in its session, got past the failure; or ""."""
        calls: list[CallLine] = []
        for at, turn in self._following(position):
            one = self._turn(at, turn)
            if one is None or not one.is_own:
                break
            calls += one.calls
            if words := way_past(calls, met):
                return words
        return ""

    def _following(self, position: int) -> Iterator[tuple[int, str]]:
        """Yield the turn of a chunk and some that follow it in its session, with their positions."""
        corpus, seen = self._corpus, set[str]()
        sessions = corpus.columns["session"]
        mine: list[int] = [position]
        if sessions[position] >= 0:
            mine = np.flatnonzero(sessions == sessions[position]).tolist()
        for at in (n for n in mine if n >= position):
            if corpus.name("kind", at) != "turn":
                continue
            for turn in corpus.turns(at)[:1]:
                if turn not in seen:
                    seen.add(turn)
                    yield at, turn
            if len(seen) > MOST_FOLLOWING:
                return

    def _turn(self, position: int, turn: str) -> _Turn | None:
        source = self._corpus.name("source", position)
        if source not in self._days:
            self._days[source] = dict(self._read(source))
        return self._days[source].get(turn)

    def _read(self, source: str) -> Iterator[tuple[str, _Turn]]:
        for _, text in read_days(self._project, [self._project.name_at(source)], HOOK_BYTES):
            for _, below, turns in sections_of(text):
                bullets: dict[str, list[WrittenBullet]] = {}
                for _, bullet in read_bullets(below.split("\n")):
                    for turn in bullet.turns:
                        bullets.setdefault(turn, []).append(bullet)
                for line, body in turns:
                    turn, heading = anchors.parse(line).get("turn", ""), heading_words(line)
                    is_own = did_words(heading, body) in self._own
                    # A stranger may have written the others, of any form and length.
                    calls = read_parts(f"{line}\n{body}").tools if is_own else []
                    own = bullets.get(turn, [])
                    yield turn, _Turn(heading, own, [read_call(one) for one in calls], is_own)

    def _pointer(self, position: int, words: str) -> Pointer:
        about = np.ones(len(self._corpus), bool)
        is_superseded = self._corpus.derived(SupersededIndex).fact(position, about) is not None
        day, shown = self._corpus.chunk(position).date, quotable_line(words, WORDS_CHARACTERS)
        return Pointer(self._corpus.shown_id(position), day, shown, is_superseded)


def _is_named(words: str, paths: Collection[str]) -> bool:
    return names_file(words, [end for path in paths for end in _ends(path)])


def _ends(path: str) -> Iterator[str]:
    """Yield the path, and its last parts down to the name: a text may name a file by each."""
    parts = path.split("/")
    yield from ("/".join(parts[start:]) for start in range(len(parts)))
