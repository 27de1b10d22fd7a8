"""The chunks that a search looks at: those of one project, or of several in a row."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.index.chunk import Chunk
from memkit.index.lexical import ReadingOrder
from memkit.index.snapshot import NAMED, Snapshot
from memkit.recall.fusion import Layout, Scores, window_means

MANY_VECTORS = 50_000
"""From this many vectors on, a product in several threads is worth its cost.

Below, the threads of OpenBLAS, which wait for the next product by spinning, slow everything else down. A
search of 10,000 chunks takes 6.9 ms with one thread and 7.5 with two, on a busy machine 9 and 16. A search
of 100,000 takes 45 and 32.
"""


class Corpus:
    """The chunks of `snapshots`, one snapshot after the other; all arrays are aligned to them.

    `columns` holds length, entry, day and the numbers of session, kind, branch, source and domain,
    see `memkit.index.snapshot.DTYPE`; `names` maps those numbers to names.
    """

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self.snapshots = list(snapshots)
        self._starts = np.cumsum([0, *map(len, self.snapshots)])
        self.columns = np.concatenate([np.array(one.columns) for one in self.snapshots])
        self._renumber()
        self.layout = Layout(
            self.columns["length"], self.columns["entry"], self.columns["session"]
        )
        self._parts = [_LexicalPart(one) for one in self.snapshots]
        _limit_threads(sum(len(one.vectors) for one in self.snapshots))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def missing(self) -> int:
        """The number of chunks that are not embedded."""
        return sum(one.missing for one in self.snapshots)

    @property
    def has_vectors(self) -> bool:
        """Whether any chunk is embedded."""
        return any(len(one.vectors) for one in self.snapshots)

    @functools.cached_property
    def names(self) -> dict[str, list[str]]:
        """The names of each column, in the order of their numbers."""
        known = [one.names for one in self.snapshots]
        return {column: [name for names in known for name in names[column]] for column in NAMED}

    def where(self, column: str, accepts: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return which chunks have a name in `column` that `accepts` takes."""
        accepted = [number for number, name in enumerate(self.names[column]) if accepts(name)]
        return np.isin(self.columns[column], accepted)

    def chunk(self, position: int) -> Chunk:
        """Return the chunk at `position`."""
        snapshot, inside = self._find(position)
        return snapshot.chunk(inside)

    def id(self, position: int) -> str:
        """Return the full id of the chunk at `position`."""
        snapshot, inside = self._find(position)
        return snapshot.id(inside)

    def root(self, position: int) -> str:
        """Return the root directory of the project of the chunk at `position`."""
        return self._find(position)[0].root

    def lexical(self, query: str) -> tuple[Scores, Scores, Scores]:
        """Return BM25 of the chunks, BM25 of the passages around them, and the query's coverage in [0, 1]."""
        found = [part.lexical(query) for part in self._parts]
        scores, passages, coverage = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return scores, passages, coverage

    def holders(self, query: str) -> NDArray[np.bool_] | None:
        """Return which chunks hold `query` if it is one identifier or word, else None."""
        found = [part.holders(query) for part in self._parts]
        if all(held is None for held in found):
            return None
        # A function word in the language of one project may be a name in the language of another.
        pairs = zip(self.snapshots, found, strict=True)
        return np.concatenate(
            [np.zeros(len(one), bool) if held is None else held for one, held in pairs]
        )

    def cosines(self, vector: NDArray[np.float32]) -> tuple[Scores, Scores]:
        """Return each chunk's cosine with a query's `vector`: the mean of its windows, and the best."""
        found = [
            window_means(
                # A snapshot without vectors does not know how many dimensions they would have.
                np.asarray(one.vectors @ vector if len(one.vectors) else [], dtype=np.float64),
                np.asarray(one.owners),
                len(one),
            )
            for one in self.snapshots
        ]
        means, best = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return means, best

    def _find(self, position: int) -> tuple[Snapshot, int]:
        number = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self.snapshots[number], position - int(self._starts[number])

    def _renumber(self) -> None:
        """Number entries, sessions, and names across snapshots: no two snapshots share one."""
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
def _blas() -> tuple[Any, int]:
    """Return the controller of numpy's threads, and how many there were at first."""
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController().select(user_api="blas")
    return controller, max((one["num_threads"] for one in controller.info()), default=1)


def _limit_threads(vectors: int) -> None:
    """Multiply this many `vectors` in one thread, or in as many as there are processors."""
    controller, most = _blas()
    controller.limit(limits=1 if vectors < MANY_VECTORS else most)


class _LexicalPart:
    """The lexical side of one snapshot. BM25 keeps its documents in the order of their ids."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._index = snapshot.lexical
        self._by_id = np.argsort(snapshot.ids, kind="stable")
        documents = np.empty_like(self._by_id)
        documents[self._by_id] = np.arange(len(self._by_id))
        sessions = np.asarray(snapshot.columns["session"])
        reading = np.argsort(sessions, kind="stable")
        self._passages = snapshot.lexical.passages(
            ReadingOrder(documents[reading], sessions[reading])
        )

    def lexical(self, query: str) -> tuple[Scores, Scores, Scores]:
        match = self._index.query(query)
        passages = self._passages(query)
        return self._aligned(match.scores), self._aligned(passages), self._aligned(match.coverage)

    def holders(self, query: str) -> NDArray[np.bool_] | None:
        held = self._index.holders(query)
        return None if held is None else self._aligned(held)

    def _aligned(self, values: NDArray[Any]) -> NDArray[Any]:
        aligned = np.empty_like(values)
        aligned[self._by_id] = values
        return aligned
