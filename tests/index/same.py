"""Compare two indexes in all that a search uses."""

from __future__ import annotations

import numpy as np

from memkit.index.snapshot import Snapshot


def assert_same_index(one: Snapshot, other: Snapshot) -> None:
    """The two present the same to the bit, whatever segments hold their chunks."""
    assert one.chunks() == other.chunks()
    assert [one.id(n) for n in range(len(one))] == [other.id(n) for n in range(len(other))]
    assert one.columns.tobytes() == other.columns.tobytes()
    assert one.names == other.names
    assert one.owners.tobytes() == other.owners.tobytes()
    rows = np.arange(len(one.owners))
    assert one.vectors(rows).tobytes() == other.vectors(rows).tobytes()
    for dimensions in filter(None, {one.dimensions, other.dimensions}):
        vector = np.linspace(-1, 1, dimensions, dtype=np.float32)
        assert one.similarities(vector).tobytes() == other.similarities(vector).tobytes()
    pairs = [[(term, slots.tolist()) for term, slots in each.lexical.postings()] for each in (one, other)]
    assert pairs[0] == pairs[1]
    for term, _ in pairs[0]:
        query = term.decode()
        first, second = one.lexical.query(query), other.lexical.query(query)
        assert first.scores.tobytes() == second.scores.tobytes()
        assert first.coverage.tobytes() == second.coverage.tobytes()
    assert (one.root, one.missing, one.sources) == (other.root, other.missing, other.sources)
