"""Find entries that a later fact of the same project supersedes.

The facts are read from their files: the anchor that names what a fact supersedes is not part of its chunk.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memkit.files import read_regular
from memkit.index.chunk import LEADING_HEADINGS, SHOWN_ID_CHARACTERS

if TYPE_CHECKING:
    from memkit.recall.corpus import Corpus

logger = logging.getLogger(__name__)


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
            for name, fact in _read(root, source, lines).items():
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


def _read(root: str, source: str, lines: Mapping[str, int]) -> dict[str, NewerEntry]:
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
            lines[fact.shown],
            fact.date,
            fact.text,
            not set(fact.supersedes).isdisjoint(fact.citations.grips),
        )
        for name, fact in found.items()
        if fact.shown in lines
    }
