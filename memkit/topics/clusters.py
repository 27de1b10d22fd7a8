"""Group points into clusters: PCA, then HDBSCAN of scikit-learn (Campello et al., 2013). Noise stays noise.

scikit-learn is an extra of the package: this is the only module that imports it.

Memory and time are bounded. PCA is fitted to a sample, and vectors are projected in blocks. HDBSCAN takes time
with the square of the number of points, so above `MOST_POINTS` it sees a sample of them, and each other point
joins the cluster of the sampled points next to it, if it is as near to them as the cluster's points are to each
other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memkit.environment import install_command
from memkit.errors import MemkitError
from memkit.index.snapshot import Snapshot
from memkit.topics.points import Points

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]

MIN_CLUSTER_SIZE = 3
MIN_SAMPLES = 2
DIMENSIONS = 24
MOST_POINTS = 20_000
MOST_FITTED = 20_000
BLOCK = 8_192
NEIGHBORS = 3
SESSION_WEIGHT = 1.0
SEED = 0


class MissingPackageError(MemkitError):
    """scikit-learn is not installed."""


def check_packages() -> None:
    """Raise `MissingPackageError` if scikit-learn is missing."""
    import importlib.util

    if importlib.util.find_spec("sklearn") is None:
        raise MissingPackageError(
            f"topics need another package; the user can run `{install_command('scikit-learn')}`"
        )


def directions(snapshot: Snapshot, points: Points) -> Vectors:
    """Return the points in few dimensions, of length 1: shape (points, at most `DIMENSIONS`).

    A turn of several pieces is their mean, see `memkit.index.snapshot`.
    """
    from sklearn.decomposition import PCA

    owners = points.of_chunk[np.asarray(snapshot.owners)]
    rows = np.flatnonzero(owners >= 0)
    random = np.random.default_rng(SEED)
    fitted = rows if len(rows) <= MOST_FITTED else np.sort(random.choice(rows, MOST_FITTED, replace=False))
    count = min(DIMENSIONS, snapshot.vectors.shape[1], len(fitted))
    pca = PCA(count, svd_solver="covariance_eigh").fit(snapshot.vectors[fitted])
    found = np.zeros((len(points), count), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        np.add.at(found, owners[block], pca.transform(snapshot.vectors[block]).astype(np.float32))
    return _unit(found)


def with_sessions(vectors: Vectors, sessions: NDArray[np.int32]) -> Vectors:
    """Return each point drawn toward the mean of its session, of length 1.

    A short remark says little by itself: its session says what it is about.
    """
    inside = np.flatnonzero(sessions >= 0)
    if not len(inside):
        return vectors
    _, numbers = np.unique(sessions[inside], return_inverse=True)
    sums = np.zeros((int(numbers.max()) + 1, vectors.shape[1]), np.float32)
    np.add.at(sums, numbers, vectors[inside])
    found = vectors.copy()
    found[inside] += SESSION_WEIGHT * _unit(sums)[numbers]
    return _unit(found)


def group(vectors: Vectors) -> Labels:
    """Return the cluster of each point, numbered from 0, or -1 for noise."""
    if len(vectors) < 2 * MIN_CLUSTER_SIZE:
        return np.full(len(vectors), -1, np.int64)
    if len(vectors) <= MOST_POINTS:
        return _hdbscan(vectors)
    random = np.random.default_rng(SEED)
    sample = np.sort(random.choice(len(vectors), MOST_POINTS, replace=False))
    return _spread(vectors, sample, _hdbscan(vectors[sample]))


def _hdbscan(vectors: Vectors) -> Labels:
    from sklearn.cluster import HDBSCAN

    model = HDBSCAN(
        min_cluster_size=MIN_CLUSTER_SIZE, min_samples=MIN_SAMPLES, algorithm="kd_tree", n_jobs=1, copy=True
    )
    return np.asarray(model.fit_predict(vectors), np.int64)


def _spread(vectors: Vectors, sample: NDArray[np.int64], labels: Labels) -> Labels:
    """Return labels for all points: those outside of the sample join the cluster next to them, or are noise."""
    from sklearn.neighbors import NearestNeighbors

    found = np.full(len(vectors), -1, np.int64)
    found[sample] = labels
    known = vectors[sample]
    near = NearestNeighbors(n_neighbors=NEIGHBORS + 1, n_jobs=1).fit(known)
    distances, _ = near.kneighbors(known)
    reach = np.zeros(int(labels.max()) + 1)
    for label in range(len(reach)):
        reach[label] = distances[labels == label, -1].max()
    others = np.setdiff1d(np.arange(len(vectors)), sample)
    for start in range(0, len(others), BLOCK):
        block = others[start : start + BLOCK]
        distances, places = near.kneighbors(vectors[block], NEIGHBORS)
        nearest = labels[places[:, 0]]
        same = (labels[places] == nearest[:, None]).sum(axis=1) * 2 > NEIGHBORS
        fits = (nearest >= 0) & same & (distances[:, 0] <= reach[nearest])
        found[block[fits]] = nearest[fits]
    return found


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Vectors = vectors / np.where(lengths > 0, lengths, 1)
    return result
