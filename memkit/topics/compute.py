"""Compute the topics of a project from its snapshot, and carry their ids and labels over from the earlier
ones.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from memkit.errors import DamagedFileError, NewerFileError
from memkit.index import open_snapshot
from memkit.index.snapshot import Snapshot
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from memkit.topics import clusters as clustering
from memkit.topics.clusters import Points, read_points
from memkit.topics.files import Relation, StoredTopic, StoredTopics, derived_path, read_derived, write_derived
from memkit.topics.labels import TopicWords, commits_of, labels_of, words_of_topics
from memkit.topics.topic_store import Kept, KeptTopics, changing_kept, match, read_kept

SHOWN_ENTRIES = 20
MOST_RELATED = 8
LEAST_STRENGTH = 0.25
_BLOCK = 512


def refresh(project: Project, home: Home, settings: Settings) -> StoredTopics | None:
    """Compute and store the topics of a project; return None if it has no index.

    Searches and the earlier topics stay readable meanwhile. A killed call changes nothing that the next one
    does not repeat. Raise `MissingPackageError`, `MemkitError`, `OSError`.
    """
    clustering.check_packages()
    snapshot = open_snapshot(project, home, settings)
    if snapshot is None:
        return None
    points = read_points(snapshot)
    vectors = clustering.directions(snapshot, points) if len(points) else np.zeros((0, 1), np.float32)
    drawn = clustering.with_neighbors(vectors, points.sessions)
    groups = members_of(clustering.group(drawn, points), drawn)
    words = _words(project, home, settings, snapshot, points, groups)
    labels = labels_of(words)
    with changing_kept(home, project) as kept:
        ids = carry_over(kept, [[points.keys[n] for n in own.tolist()] for own in groups], date.today())
        centers = np.array([_center(drawn[own]) for own in groups], np.float32)
        related, centrality = _relations(ids, [points.days[own] for own in groups], centers)
        topics = tuple(
            StoredTopic(
                ids[number], labels[number], words[number].words, len(own), _days(points, own),
                centrality[number], related[number],
                tuple(snapshot.id(one) for one in points.first_chunks[own[:SHOWN_ENTRIES]].tolist()),
            )
            for number, own in enumerate(groups)
        )
        grouped = sum(map(len, groups))
        stored = StoredTopics(
            project.root, snapshot.fingerprint, time.time(), len(points), len(points) - grouped, topics
        )
    write_derived(derived_path(project, home, settings), stored)
    return stored


def recount(project: Project, home: Home, settings: Settings) -> None:
    """Take erased entries out of the stored topics: count and name each after the members that are left.

    The clusters stay, so this needs no scikit-learn. Remove the topics if they or the index cannot be read.
    Raise `OSError`.
    """
    path, stored = derived_path(project, home, settings), None
    with suppress(NewerFileError, DamagedFileError):
        stored, kept = read_derived(path), read_kept(home, project).topics
    snapshot = open_snapshot(project, home, settings) if stored is not None else None
    if stored is None or snapshot is None:
        path.unlink(missing_ok=True)
        return
    points = read_points(snapshot)
    numbers = {key: number for number, key in enumerate(points.keys)}
    chunks = [snapshot.id(one) for one in points.first_chunks.tolist()]
    left = []
    for one in stored.topics:
        typical = {name: place for place, name in enumerate(one.entries)}
        members = [numbers[key] for key in kept.get(one.id, Kept()).members if key in numbers]
        own = [n for _, n in sorted((typical.get(chunks[n], SHOWN_ENTRIES), n) for n in members)]
        if own:
            left.append((one, np.array(own, np.int64)))
    words = _words(project, home, settings, snapshot, points, [own for _, own in left])
    topics = tuple(
        replace(one, label=label, words=found.words, size=len(own), days=_days(points, own),
                entries=tuple(chunks[number] for number in own[:SHOWN_ENTRIES]))
        for (one, own), found, label in zip(left, words, labels_of(words), strict=True)
    )  # fmt: skip
    lost = sum(one.size for one in stored.topics) - sum(one.size for one in topics)
    write_derived(path, replace(stored, entries=stored.entries - lost, topics=topics))


def _words(
    project: Project, home: Home, settings: Settings, snapshot: Snapshot, points: Points,
    groups: Sequence[NDArray[np.int64]],
) -> list[TopicWords]:  # fmt: skip
    commits = commits_of(Journal(project, shared=settings.memory.shared, home=home))
    return words_of_topics(snapshot, points, groups, settings.search.language, commits)


def members_of(labels: NDArray[np.int64], vectors: clustering.Vectors) -> list[NDArray[np.int64]]:
    """Return the points of each cluster, the one nearest to its center first; the largest cluster first."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    bounds = np.flatnonzero(np.diff(labels[order])) + 1
    found = [own for own in np.split(order, bounds) if len(own)]
    found.sort(key=lambda own: (-len(own), int(own[0])))
    return [own[np.argsort(-(vectors[own] @ _center(vectors[own])), kind="stable")] for own in found]


def carry_over(kept: KeptTopics, groups: list[list[str]], today: date) -> list[str]:
    """Return the ids of new `groups` of members, and update what is kept."""
    labeled = {name for name, one in kept.topics.items() if one.label}
    earlier = {name: one.members for name, one in kept.topics.items()}
    matched = match(groups, earlier, labeled)
    present = set(matched.ids)
    was_gone = {name for name, one in kept.topics.items() if one.is_gone}
    kept.note([one for one in matched.changes if one.id not in was_gone], today)
    topics = {
        name: replace(one, is_gone=True)
        for name, one in kept.topics.items()
        if one.label and name not in present
    }
    for name, members in zip(matched.ids, groups, strict=True):
        earlier_one = kept.topics.get(name, Kept())
        topics[name] = replace(earlier_one, members=frozenset(members), is_gone=False)
    kept.topics = topics
    return matched.ids


def _center(vectors: clustering.Vectors) -> NDArray[np.float32]:
    total: NDArray[np.float32] = vectors.sum(axis=0)
    return total / (float(np.linalg.norm(total)) or 1.0)


def _days(points: Points, own: NDArray[np.int64]) -> dict[str, int]:
    counts = Counter(points.days[own].tolist())
    return {date.fromordinal(day).isoformat(): counts[day] for day in sorted(counts)}


def _relations(
    ids: Sequence[str], days: Sequence[NDArray[np.int32]], centers: clustering.Vectors
) -> tuple[list[tuple[Relation, ...]], list[float]]:
    """Return the strongest relations of each topic, and its centrality.

    `days` are the days of each topic's entries, as proleptic ordinals. `centers` are the means of its
    points, around 0, of length 1. Centrality is the sum of a topic's relations, as a share of the largest
    sum.
    """
    count = len(ids)
    if count < 2:
        return [()] * count, [0.0] * count
    by_day = _incidence(days)
    by_week = _incidence([(own - 1) // 7 for own in days])  # the ordinal 1 is a Monday
    found: list[tuple[Relation, ...]] = []
    sums = np.zeros(count)
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        together = (by_day[block] @ by_day.T + by_week[block] @ by_week.T) / 2
        alike = np.clip(centers[block] @ centers.T, 0, 1)
        strength = (together + alike) / 2
        strength[np.arange(len(strength)), np.arange(start, start + len(strength))] = 0
        sums[block] = np.where(strength >= LEAST_STRENGTH, strength, 0).sum(axis=1)
        for row, own in enumerate(strength):
            best = np.argsort(-own, kind="stable")[:MOST_RELATED]
            found.append(
                tuple(
                    Relation(
                        ids[other], round(float(own[other]), 3), round(float(together[row, other]), 3),
                        round(float(alike[row, other]), 3),
                    )
                    for other in best.tolist()
                    if own[other] >= LEAST_STRENGTH
                )
            )
    most = float(sums.max()) or 1.0
    return found, [round(float(one) / most, 3) for one in sums]


def _incidence(times: Sequence[NDArray[np.int32]]) -> clustering.Vectors:
    """Return which topic has which time, in rows of length 1: their products are cosines."""
    known, numbers = np.unique(np.concatenate(times), return_inverse=True)
    found = np.zeros((len(times), len(known)), np.float32)
    rows = np.repeat(np.arange(len(times)), [len(own) for own in times])
    found[rows, numbers] = 1
    result: clustering.Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
    return result
