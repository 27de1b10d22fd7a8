"""Give clusters the ids of earlier topics, by the members that they share.

A topic keeps its id as long as a cluster shares at least half of its members, or half of the cluster's own.
Where several clusters or topics compete, the pair that shares most comes first. A topic with the user's own
label comes before those without, if it makes up a quarter of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memkit.index.chunk import digest

ID_CHARACTERS = 8
LEAST_SHARE = 0.5
LABEL_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an earlier topic: it was split `into` others, merged into one, or is gone (`into`
    none).
    """

    kind: str
    id: str
    into: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What happened, after the id: `was split into 5f0c0e0a, 1c9d02aa`."""
        into = f" into {', '.join(self.into)}" if self.into else ""
        return "disappeared" if self.kind == "gone" else f"was {self.kind}{into}"


@dataclass(frozen=True, slots=True)
class Matched:
    """The id of each cluster, in order, and the changes of earlier topics, by id."""

    ids: list[str]
    changes: list[Change]


def match(
    clusters: Sequence[Collection[str]],
    earlier: Mapping[str, Collection[str]],
    labeled: Collection[str] = (),
) -> Matched:
    """Match `clusters` of members, which are disjoint, with the `earlier` topics.

    `labeled` are the ids with a label of the user's own. The order of `clusters` makes no difference to which
    topic each one is.
    """
    known = {name: frozenset(members) for name, members in earlier.items()}
    owners: dict[str, list[str]] = {}
    for name, members in known.items():
        for member in members:
            owners.setdefault(member, []).append(name)
    shared = [
        Counter(name for one in cluster for name in owners.get(one, ())) for cluster in clusters
    ]
    firsts = [min(cluster, default="") for cluster in clusters]
    pairs = []
    for number, counts in enumerate(shared):
        size = len(clusters[number])
        for name, count in counts.items():
            if count >= LEAST_SHARE * min(len(known[name]), size):
                is_first = name in labeled and count >= LABEL_SHARE * size
                pairs.append((not is_first, -count, name, firsts[number], number))
    ids: dict[int, str] = {}
    for _, _, name, _, number in sorted(pairs):
        if number not in ids and name not in ids.values():
            ids[number] = name
    used = {*known}
    for number in sorted(range(len(clusters)), key=firsts.__getitem__):
        if number not in ids:
            ids[number] = _new_id(firsts[number], used)
            used.add(ids[number])
    changes = list(_changes(clusters, known, shared, ids))
    return Matched([ids[number] for number in range(len(clusters))], changes)


def _changes(
    clusters: Sequence[Collection[str]],
    known: Mapping[str, frozenset[str]],
    shared: Sequence[Mapping[str, int]],
    ids: Mapping[int, str],
) -> Iterable[Change]:
    """Yield a change for each earlier topic that did not simply live on, sorted by id."""
    living = set(ids.values())
    parts: dict[str, list[tuple[int, int]]] = {}
    for number, counts in enumerate(shared):
        for name, count in counts.items():
            parts.setdefault(name, []).append((count, number))
    for name in sorted(known):
        own = parts.get(name, [])
        # A part: a cluster that consists mostly of this topic.
        into = sorted(ids[number] for count, number in own if 2 * count > len(clusters[number]))
        if len(into) > 1:
            yield Change("split", name, tuple(into))
        elif name not in living:
            home = [ids[number] for count, number in own if count >= LEAST_SHARE * len(known[name])]
            yield Change("merged", name, (min(home),)) if home else Change("gone", name)


def _new_id(first: str, used: Collection[str]) -> str:
    """Return an id that depends only on the first member, unless it is in use."""
    number = 0
    while True:
        found = digest(f"topic:{first}:{number}" if number else f"topic:{first}")[:ID_CHARACTERS]
        if found not in used:
            return found
        number += 1
