"""The topics of a project as they were computed last: `topics.json`, next to the snapshot of that time.

This file is a cache of labels made of words, sizes, days, and relations. Everything else is in `topic_store`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from memkit.embedding.models import space
from memkit.errors import NewerFileError
from memkit.index.catalog import collection_name, snapshot_directory
from memkit.index.chunk import Chunk
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from memkit.state import read_state_or_none, write_state
from memkit.typed import typed

VERSION = 1
"""The format version."""

NAME = "topics.json"

_Count = Annotated[int, msgspec.Meta(ge=0)]


def key_of(chunk: Chunk) -> str:
    """Return the key of a chunk's entry: the turn's id, or the hash of a note. It outlives a move of the
    text.
    """
    return chunk.turns[0] if chunk.kind == "turn" and chunk.turns else chunk.content_hash


class TopicRelation(TypedDict):
    """A `Relation` as JSON, with the topic's label."""

    id: str
    label: str
    strength: float
    together: float
    alike: float


@dataclass(frozen=True, slots=True)
class Relation:
    """A related topic. All in [0, 1]: `strength` is the mean of how often both occur on the same days and
    in the same weeks (`together`) and how much their entries are alike (`alike`).
    """

    id: str
    strength: float
    together: float
    alike: float

    def as_dict(self, label: str) -> TopicRelation:
        """Return the relation as `memkit topics related --json` prints it, with the topic's label."""
        return {
            "id": self.id, "label": label, "strength": self.strength, "together": self.together,
            "alike": self.alike,
        }


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as it was computed.

    `label` and `words` are made of its entries' words. `days` counts the entries of each ISO day.
    `centrality` in [0, 1] is its share of relations. `entries` are ids of chunks, the most typical entry
    first.
    """

    id: str
    label: str
    words: tuple[str, ...]
    size: _Count
    days: dict[str, _Count]
    centrality: float
    related: tuple[Relation, ...]
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredTopics:
    """All topics of a project, largest first, made from the snapshot with this `fingerprint`.

    `entries` counts the points, `noise` those in no topic. `made` is in seconds since the epoch.
    """

    root: str
    fingerprint: str
    made: float
    entries: _Count
    noise: _Count
    topics: tuple[StoredTopic, ...] = ()


def derived_path(project: Project, home: Home, settings: Settings) -> Path:
    """The path of `topics.json` of a project."""
    name = collection_name(project, home, space(settings.embedding))
    return snapshot_directory(home, name) / NAME


def read_derived(path: Path) -> StoredTopics | None:
    """Return the topics in a file, or None if there is none that can be used. Raise `NewerFileError`."""
    return read_state_or_none(path, VERSION, _stored)


def write_derived(path: Path, topics: StoredTopics) -> None:
    """Replace a file of topics. Raise `OSError`."""
    write_state(path, VERSION, asdict(topics))


def drop_outdated(directory: Path, fingerprint: str) -> None:
    """Remove the topics in a directory of snapshots unless they were made from the snapshot `fingerprint`.

    Their labels may hold words of what was erased since. Raise `OSError`.
    """
    path = directory / NAME
    try:
        found = read_derived(path)
    except NewerFileError:
        found = None
    if found is None or found.fingerprint != fingerprint:
        path.unlink(missing_ok=True)


def _stored(value: Mapping[str, Any]) -> StoredTopics:
    found = typed(value, StoredTopics)
    for topic in found.topics:
        for day in topic.days:
            date.fromisoformat(day)
    return found
