"""Group points into clusters: PCA, then HDBSCAN of scikit-learn (Campello et al., 2013). Noise stays noise.

scikit-learn is an extra of the package: this is the only module that imports it. The constants were chosen
on the development sets, see `benchmarks/topics.py`.

Memory and time are bounded. PCA is fitted to a sample, and vectors are projected in blocks. HDBSCAN takes
time with the square of the number of points, so above `MOST_POINTS` it sees the newest third of that number
and a sample of the others. Each other point joins the cluster next to it, if it is as near as that
cluster's points are to each other.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit.environment import extras
from memkit.index.snapshot import Snapshot
from memkit.topics.files import key_of

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]

KINDS = frozenset({"turn", "note"})
"""The kinds of entries that become points. Bullets and facts repeat turns, and other text has no day."""

_RELEASED_EVERY = 10_000

MIN_CLUSTER_SIZE = 3
MIN_SAMPLES = 3
DIMENSIONS = 64
"""Dimensions after PCA. With 24, distances of different subjects are too alike."""

LARGEST_SHARE = 0.1
LEAST_LARGEST = 20
"""No cluster has more points than this, or than `LARGEST_SHARE` of all. Otherwise one cluster takes half of
them.
"""

REACH = 6
NEIGHBOR_WEIGHT = 0.5
"""The number of turns before and after a turn that count for it, and their combined weight. With a weight
of 1, most clusters are single sessions.
"""

MOST_POINTS = 15_000
NEIGHBORS = 3
_BLOCK = 2_048


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
    """Return the points of a snapshot. An entry without a vector is left out."""
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
        list(number_of), np.asarray(columns["day"][firsts[kept]], np.int32),
        np.asarray(columns["session"][firsts[kept]], np.int32), of_chunk, firsts[kept],
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


def check_packages() -> None:
    """Raise `MissingPackageError` if scikit-learn is missing."""
    extras.require("topics", "topics need", "sklearn")


def directions(snapshot: Snapshot, points: Points) -> Vectors:
    """Return the points in few dimensions, of length 1: shape (points, at most `DIMENSIONS`).

    A turn of several pieces is their mean.
    """
    from sklearn.decomposition import PCA

    owners = points.of_chunk[snapshot.owners]
    rows = np.flatnonzero(owners >= 0)
    fitted = rows[_chosen(owners[rows], points)]
    count = min(DIMENSIONS, snapshot.dimensions or DIMENSIONS, len(fitted))
    pca = PCA(count, svd_solver="covariance_eigh").fit(np.concatenate([*_blocks(snapshot, fitted)]))
    found = np.zeros((len(points), count), np.float32)
    start = 0
    for block in _blocks(snapshot, rows):
        own = owners[rows[start : start + len(block)]]
        np.add.at(found, own, pca.transform(block).astype(np.float32))
        start += len(block)
    return _unit(found)


def _blocks(snapshot: Snapshot, rows: NDArray[np.int64]) -> Iterator[Vectors]:
    for start in range(0, len(rows), _BLOCK):
        yield snapshot.vectors(rows[start : start + _BLOCK])
        snapshot.release()


def _chosen(numbers: NDArray[np.int64], points: Points) -> NDArray[np.int64]:
    """Return the positions of at most `MOST_POINTS` of the points with these `numbers`, in order.

    The newest third is always there. A hash of the key chooses the others, so that a memory that has grown
    by a little gives almost the same sample.
    """
    if len(numbers) <= MOST_POINTS:
        return np.arange(len(numbers))
    newest = np.argsort(-points.days[numbers], kind="stable")[: MOST_POINTS // 3]
    hashes = np.array([zlib.crc32(key.encode()) for key in points.keys])[numbers]
    hashes[newest] = -1
    return np.sort(np.argsort(hashes, kind="stable")[:MOST_POINTS])


def with_neighbors(vectors: Vectors, sessions: NDArray[np.int32]) -> Vectors:
    """Return each point drawn toward the mean of its neighbors in its session, of length 1.

    A short remark alone does not show its subject: the turns around it do.
    """
    order = np.argsort(sessions, kind="stable")
    ordered, own = vectors[order], sessions[order]
    sums = np.zeros_like(ordered)
    for shift in range(1, REACH + 1):
        same = ((own[shift:] == own[:-shift]) & (own[shift:] >= 0))[:, None]
        sums[shift:] += ordered[:-shift] * same
        sums[:-shift] += ordered[shift:] * same
    found = np.empty_like(vectors)
    found[order] = _unit(ordered + NEIGHBOR_WEIGHT * _unit(sums))
    return found


def group(vectors: Vectors, points: Points) -> Labels:
    """Return the cluster of each point, numbered from 0, or -1 for noise."""
    if len(vectors) < 2 * MIN_CLUSTER_SIZE:
        return np.full(len(vectors), -1, np.int64)
    chosen = _chosen(np.arange(len(points)), points)
    labels = _hdbscan(vectors[chosen])
    return labels if len(chosen) == len(points) else _spread(vectors, chosen, labels)


def _hdbscan(vectors: Vectors) -> Labels:
    from sklearn.cluster import HDBSCAN

    model = HDBSCAN(
        min_cluster_size=MIN_CLUSTER_SIZE, min_samples=MIN_SAMPLES,
        max_cluster_size=max(LEAST_LARGEST, int(LARGEST_SHARE * len(vectors))), algorithm="kd_tree", n_jobs=1,
        copy=True,
    )
    return np.asarray(model.fit_predict(vectors), np.int64)


def _spread(vectors: Vectors, sample: NDArray[np.int64], labels: Labels) -> Labels:
    from sklearn.neighbors import NearestNeighbors

    found = np.full(len(vectors), -1, np.int64)
    found[sample] = labels
    known = vectors[sample]
    near = NearestNeighbors(n_neighbors=NEIGHBORS + 1, n_jobs=1).fit(known)
    distances, _ = near.kneighbors(known)
    if labels.max() < 0:
        return found
    reach = np.zeros(int(labels.max()) + 1)
    for label in range(len(reach)):
        reach[label] = distances[labels == label, -1].max()
    others = np.setdiff1d(np.arange(len(vectors)), sample)
    for start in range(0, len(others), _BLOCK):
        block = others[start : start + _BLOCK]
        distances, places = near.kneighbors(vectors[block], NEIGHBORS)
        nearest = labels[places[:, 0]]
        same = (labels[places] == nearest[:, None]).sum(axis=1) * 2 > NEIGHBORS
        fits = (nearest >= 0) & same & (distances[:, 0] <= reach[nearest])
        found[block[fits]] = nearest[fits]
    return found


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
