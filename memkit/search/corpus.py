"""The chunks that a search looks at, of one project or several: their columns, scores, and factors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from memkit.agents.registry import is_by
from memkit.index.chunk import BULLETS, SHOWN_ID_CHARACTERS, Chunk
from memkit.index.lexical import LexicalIndex, LexicalMatch, ReadingOrder
from memkit.index.segment import DTYPE, NAMED
from memkit.index.snapshot import Snapshot
from memkit.search.fusion import Layout, Scores, window_means
from memkit.search.results import Filters, is_at
from memkit.settings import SearchSettings

T = TypeVar("T")

DOMAIN_BOOST = 1.3
"""Factor for a chunk about the domain of the file being edited."""

INSTRUCTION_BOOST = 1.2
"""Factor for a chunk of an `*.instructions.md`."""

UNVERIFIED_FACTOR = 0.7
"""Factor for a bullet whose text its turns do not prove."""


class Corpus:
    """The chunks of `snapshots`, one snapshot after the other; all arrays are aligned to them.

    `columns` holds length, entry, day and the numbers of session, kind, branch, source and domain,
    see `memkit.index.segment.DTYPE`; `names` maps those numbers to names.
    """

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self.snapshots = list(snapshots)
        self._starts = np.cumsum([0, *map(len, self.snapshots)])
        self.columns = np.concatenate(
            [np.zeros(0, DTYPE), *(np.asarray(one.columns) for one in self.snapshots)]
        )
        self._renumber()
        self.layout = Layout(
            self.columns["length"],
            self.columns["entry"],
            _sessions_without_bullets(self.columns, self.names["kind"]),
            _documents(self.columns, len(self.names["session"])),
        )
        self._derived: dict[Any, Any] = {}
        self._parts = [_LexicalPart(one) for one in self.snapshots]
        _use_one_thread()

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def has_vectors(self) -> bool:
        """Whether any chunk is embedded."""
        return any(len(one.owners) for one in self.snapshots)

    @functools.cached_property
    def names(self) -> dict[str, list[str]]:
        """The names of each column, in the order of their numbers."""
        known = [one.names for one in self.snapshots]
        return {column: [name for names in known for name in names[column]] for column in NAMED}

    @functools.cached_property
    def is_turn(self) -> NDArray[np.bool_]:
        """A mask of the chunks that are pieces of turns."""
        return self.where("kind", lambda kind: kind == "turn")

    def derived(self, kind: Callable[[Corpus], T]) -> T:
        """Return the `BulletIndex` or `SupersededIndex` of these chunks, made once."""
        if kind not in self._derived:
            self._derived[kind] = kind(self)
        return cast(T, self._derived[kind])

    def name(self, column: str, position: int) -> str:
        """Return the name in a `column` of the chunk at `position`, or ""."""
        number = int(self.columns[column][position])
        return self.names[column][number] if number >= 0 else ""

    def where(self, column: str, accepts: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return which chunks have a name in `column` that `accepts` takes."""
        accepted = [number for number, name in enumerate(self.names[column]) if accepts(name)]
        return np.isin(self.columns[column], accepted)

    def chunk(self, position: int) -> Chunk:
        """Return the chunk at `position`."""
        snapshot, inside = self._find(position)
        return snapshot.chunk(inside)

    def turns(self, position: int) -> list[str]:
        """Return the turns of the chunk at `position`."""
        snapshot, inside = self._find(position)
        return snapshot.turns(inside)

    def turn_text(self, position: int) -> str:
        """Return the text of the turn that the chunk at `position` is a piece of."""
        entries = self.columns["entry"]
        lines: list[str] = []
        end = 0
        for chunk in map(self.chunk, np.flatnonzero(entries == entries[position]).tolist()):
            # A piece may begin with the last lines of the one before. Counted from its end, see `_unseen`.
            first = chunk.end_line - chunk.content.count("\n")
            repeated = max(0, end + 1 - first) if chunk.end_line > end else 0
            lines += chunk.content.split("\n")[repeated:]
            end = chunk.end_line
        return "\n".join(lines)

    def likeness(self, position: int, others: Sequence[int]) -> float:
        """Return the highest cosine of a chunk with one of `others` in its snapshot; 0 without vectors."""
        snapshot, inside = self._find(position)
        start = position - inside

        own = snapshot.vectors_at(inside)
        likenesses = (float((own @ snapshot.vectors_at(n - start).T).max(initial=0.0)) for n in others)
        return max(likenesses, default=0.0)

    def lexical_of(self, position: int) -> LexicalIndex:
        """Return the lexical index that has the chunk at `position`."""
        return self._find(position)[0].lexical

    def id(self, position: int) -> str:
        """Return the full id of the chunk at `position`."""
        snapshot, inside = self._find(position)
        return snapshot.id(inside)

    def shown_id(self, position: int) -> str:
        """Return the id to show for the chunk at `position`: that of its entry, else the start of its own."""
        return self.chunk(position).entry_id or self.id(position)[:SHOWN_ID_CHARACTERS]

    def author(self, position: int) -> str:
        """Return the name of the colleague who has the chunk at `position`; "" if this home has it."""
        snapshot, inside = self._find(position)
        return snapshot.author(inside)

    def holds_text(self, number: int) -> bool:
        """Return whether an embedded chunk has this `text_number`."""
        return any(one.vectors_of_text(number) is not None for one in self.snapshots)

    def root(self, position: int) -> str:
        """Return the root directory of the project of the chunk at `position`."""
        return self._find(position)[0].root

    def lexical(self, query: str) -> tuple[Scores, Scores, Scores, Scores]:
        """Return BM25 of the chunks, of the passages around them, and of their documents, and the query's
        coverage in [0, 1].
        """
        found = [part.lexical(query) for part in self._parts]
        arms = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        scores, passages, documents, coverage = arms
        return scores, passages, documents, coverage

    def match(self, query: str) -> LexicalMatch:
        """Return BM25 of the chunks, and the share of the query's words that each holds, rare ones first."""
        found = [one.lexical.query(query) for one in self.snapshots]
        scores = np.concatenate([one.scores for one in found])
        return LexicalMatch(scores, np.concatenate([one.coverage for one in found]))

    def terms(self, query: str) -> set[str]:
        """Return the terms of a question, or of a sentence."""
        return {term for one in self.snapshots for term in one.lexical.rarities(query)}

    def holders(self, query: str) -> NDArray[np.bool_] | None:
        """Return which chunks hold `query` if it is one identifier or word, else None."""
        found = [one.lexical.holders(query) for one in self.snapshots]
        if all(held is None for held in found):
            return None
        # A function word in the language of one project may be a name in the language of another.
        pairs = zip(self.snapshots, found, strict=True)
        return np.concatenate([np.zeros(len(one), bool) if held is None else held for one, held in pairs])

    def cosines(self, vector: NDArray[np.float32]) -> tuple[Scores, Scores]:
        """Return each chunk's cosine with a query's `vector`: the mean of its windows, and the best."""
        found = [
            window_means(one.similarities(vector).astype(np.float64), one.owners, len(one))
            for one in self.snapshots
        ]
        means, best = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return means, best

    def direction(self, position: int) -> NDArray[np.float64]:
        """Return the mean of the vectors of the chunk at `position`, of length 1; zeros without a vector."""
        snapshot, inside = self._find(position)
        if not len(snapshot.owners):
            return np.zeros(1)
        own = np.asarray(snapshot.vectors_at(inside), np.float64)
        total: NDArray[np.float64] = own.sum(axis=0)
        return total / (float(np.linalg.norm(total)) or 1.0)

    def _find(self, position: int) -> tuple[Snapshot, int]:
        number = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self.snapshots[number], position - int(self._starts[number])

    def _renumber(self) -> None:
        """Renumber entries, sessions, and names so that no two snapshots share a number."""
        counts = dict.fromkeys(NAMED, 0)
        entries = 0
        for number, snapshot in enumerate(self.snapshots):
            rows = self.columns[self._starts[number] : self._starts[number + 1]]
            rows["entry"] += entries
            entries = int(rows["entry"].max(initial=entries - 1)) + 1
            if len(self.snapshots) > 1:
                for name, known in snapshot.names.items():
                    rows[name][rows[name] >= 0] += counts[name]
                    counts[name] += len(known)


@functools.cache
def _use_one_thread() -> None:
    """Have OpenBLAS compute in one thread.

    Its threads wait for the next product by spinning, which slows everything else down: on a busy machine the
    products of a search of 100,000 chunks took six times the processor time. See `Snapshot.similarities`.
    """
    from threadpoolctl import ThreadpoolController

    ThreadpoolController().select(user_api="blas").limit(limits=1)


def _sessions_without_bullets(columns: NDArray[Any], kinds: Sequence[str]) -> NDArray[np.int32]:
    """Return the session of each chunk, and -1 for a bullet: it repeats turns, and is judged by itself."""
    bullets = [number for number, kind in enumerate(kinds) if kind in BULLETS]
    sessions: NDArray[np.int32] = np.where(np.isin(columns["kind"], bullets), -1, columns["session"])
    return sessions


def _documents(columns: NDArray[Any], sessions: int) -> NDArray[np.int32]:
    """Return the number of each chunk's document: its session, or its file if it is in none."""
    of_file = sessions + columns["source"]
    numbers: NDArray[np.int32] = np.where(columns["session"] >= 0, columns["session"], of_file)
    return numbers


class _LexicalPart:
    def __init__(self, snapshot: Snapshot) -> None:
        self._index = snapshot.lexical
        sessions = _sessions_without_bullets(snapshot.columns, snapshot.names["kind"])
        reading = np.argsort(sessions, kind="stable")
        self._passages = snapshot.lexical.passages(ReadingOrder(reading, sessions[reading]))
        documents = _documents(snapshot.columns, len(snapshot.names["session"]))
        self._documents = snapshot.lexical.documents(documents)

    def lexical(self, query: str) -> tuple[Scores, Scores, Scores, Scores]:
        match = self._index.query(query)
        return match.scores, self._passages(query), self._documents(query), match.coverage


def mask(filters: Filters, corpus: Corpus) -> NDArray[np.bool_]:
    """Return which chunks of `corpus` meet the filters."""
    allowed = np.ones(len(corpus), bool)
    days = corpus.columns["day"]
    if filters.since:
        allowed &= days >= filters.since.toordinal()
    if filters.until:
        allowed &= (days <= filters.until.toordinal()) & (days > 0)
    if filters.session:
        allowed &= corpus.where("session", lambda name: name.startswith(filters.session))
    if filters.agent:
        allowed &= corpus.where("session", lambda name: is_by(name, filters.agent))
    if filters.branch:
        allowed &= corpus.where("branch", lambda name: name == filters.branch)
    if filters.kind:
        allowed &= corpus.where("kind", lambda name: name == filters.kind)
    if filters.path:
        path = filters.path.removeprefix("./").rstrip("/")
        allowed &= corpus.where("source", lambda name: is_at(name, path))
    return allowed


def recency_of(corpus: Corpus, half_life_days: float, today: date) -> Scores:
    """Return 1 for an entry of today, one half after `half_life_days`, and 0 without a date."""
    days = corpus.columns["day"]
    ages = np.maximum(0, today.toordinal() - days)
    result: Scores = np.where(days > 0, 0.5 ** (ages / half_life_days), 0.0)
    return result


def boosts_of(corpus: Corpus, settings: SearchSettings, file: str, recency: Scores) -> Scores:
    """Return a factor for each chunk; `file` is the file being edited, relative to the project, or ""."""
    factors = np.ones(len(corpus))
    factors[corpus.where("kind", lambda kind: kind == "instruction")] *= INSTRUCTION_BOOST
    factors[corpus.where("kind", lambda kind: kind == "unverified")] *= UNVERIFIED_FACTOR
    if file:
        factors[_in_domain(corpus, settings.domains, file)] *= DOMAIN_BOOST
    return factors * (1 + settings.recency_boost * recency)


def _in_domain(corpus: Corpus, domains: Sequence[str], file: str) -> NDArray[np.bool_]:
    """Return which chunks are about the part of the code that `file` belongs to.

    `domains` names a directory of the memory for a directory of the code; the innermost one that
    holds `file` counts. Without one, a chunk's own directory must have the name of one of the file's.
    """
    pairs = [tuple(part.strip("/ ") for part in one.partition("=")[::2]) for one in domains]
    file = file.casefold()
    fitting = [(len(code), memory) for code, memory in pairs if is_at(file, code.casefold())]
    if fitting:
        _, memory = max(fitting, key=lambda pair: pair[0])
        return corpus.where("source", lambda source: is_at(source, memory))
    directories = PurePosixPath(file).parent.parts
    return corpus.where("domain", lambda domain: domain.casefold() in directories)
