"""The entries of a snapshot as points: what a topic is made of.

An entry is a turn, with all its pieces, or a dated note. Bullets and facts repeat turns, and text without a
day belongs to no time, so neither is a point. Nothing is embedded here: an entry without a vector is left
out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit.index.snapshot import Snapshot
from memkit.topics.files import key_of

_RELEASED_EVERY = 10_000

KINDS = frozenset({"turn", "note"})


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The entries of a snapshot, in reading order. The arrays are aligned to `keys`.

    `keys` name the entries, see `key_of`. `days` are proleptic ordinals. `sessions` are numbers, -1 without
    one. `of_chunk` gives for each chunk of the snapshot its point, or -1; `first_chunks` gives the first
    chunk of each point.
    """

    keys: list[str]
    days: NDArray[np.int32]
    sessions: NDArray[np.int32]
    of_chunk: NDArray[np.int64]
    first_chunks: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)


def read_points(snapshot: Snapshot) -> Points:
    """Return the points of a snapshot."""
    columns = snapshot.columns
    places = _places(snapshot)
    _, first, inverse = np.unique(columns["entry"][places], return_index=True, return_inverse=True)
    firsts = places[first]
    keys = []
    for number, position in enumerate(firsts.tolist()):
        keys.append(key_of(snapshot.chunk(position)))
        if number % _RELEASED_EVERY == 0:
            snapshot.release()
    number_of: dict[str, int] = {}
    numbers = np.array([number_of.setdefault(key, len(number_of)) for key in keys], np.int64)
    of_chunk = np.full(len(columns), -1, np.int64)
    of_chunk[places] = numbers[inverse] if len(places) else numbers
    _, kept = np.unique(numbers, return_index=True)  # equal text twice is one entry
    return Points(
        list(number_of),
        np.asarray(columns["day"][firsts[kept]], np.int32),
        np.asarray(columns["session"][firsts[kept]], np.int32),
        of_chunk,
        firsts[kept],
    )


def count_points(snapshot: Snapshot) -> int:
    """Return about how many points a snapshot has: equal entries count each. It reads no text."""
    return len(np.unique(snapshot.columns["entry"][_places(snapshot)]))


def _places(snapshot: Snapshot) -> NDArray[np.int64]:
    columns = snapshot.columns
    wanted = [number for number, name in enumerate(snapshot.names["kind"]) if name in KINDS]
    is_point = np.isin(columns["kind"], wanted) & (columns["day"] > 0)
    has_vector = np.zeros(len(columns), bool)
    has_vector[snapshot.owners] = True
    embedded = np.unique(columns["entry"][has_vector & is_point])
    return np.flatnonzero(is_point & np.isin(columns["entry"], embedded))
