"""Topics as users see them: with their importance today, by id, or for the results of a search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypedDict

from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.overview import TopicCount
from memkit.settings.load import Settings
from memkit.timeline.nodes import week_of
from memkit.topics.files import Relation, StoredTopic, StoredTopics, derived_path, read_derived
from memkit.topics.topic_store import Change, Kept, KeptTopics, changing_kept, read_kept

HALF_LIFE_DAYS = 30.0
SIZE_WEIGHT, RECENCY_WEIGHT, CENTRALITY_WEIGHT = 0.4, 0.4, 0.2


class TopicView(TypedDict):
    """A topic as JSON. Scores are from 0 to 1; `weeks` counts the entries of each."""

    id: str
    label: str
    named: bool
    project: str
    words: list[str]
    entries: int
    first: str
    last: str
    importance: float
    size: float
    recency: float
    centrality: float
    weeks: dict[str, int]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as users see it, with its project's root. All scores are in [0, 1].

    `label` is the user's own if `is_named`, else `made_label`, which a model gave or which is made of words.
    `importance` is the weighted mean of `size_score` (logarithmic, 1 for the largest topic), `recency` (half
    of it is gone 30 days after the last entry), and `centrality`.
    """

    root: str
    stored: StoredTopic
    label: str
    made_label: str
    is_named: bool
    size_score: float
    recency: float
    importance: float

    @property
    def id(self) -> str:
        """Its id, 8 characters."""
        return self.stored.id

    @property
    def first(self) -> str:
        """The ISO day of its first entry."""
        return min(self.stored.days, default="")

    @property
    def last(self) -> str:
        """The ISO day of its last entry."""
        return max(self.stored.days, default="")

    @property
    def weeks(self) -> dict[str, int]:
        """The number of entries in each ISO week, as the timeline names it (`2026-W47`), oldest first."""
        found: dict[str, int] = {}
        for day, count in sorted(self.stored.days.items()):
            name = week_of(date.fromisoformat(day))
            found[name] = found.get(name, 0) + count
        return found

    def as_dict(self) -> TopicView:
        """Return the topic as `memkit topics --json` prints it."""
        one = self.stored
        return {
            "id": one.id, "label": self.label, "named": self.is_named, "project": self.root,
            "words": list(one.words), "entries": one.size, "first": self.first, "last": self.last,
            "importance": round(self.importance, 3), "size": round(self.size_score, 3),
            "recency": round(self.recency, 3), "centrality": one.centrality, "weeks": self.weeks,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TopicList:
    """The topics of a project, the most important first, and what is kept of earlier ones."""

    stored: StoredTopics
    kept: KeptTopics
    topics: tuple[Topic, ...]

    def find(self, prefix: str) -> Topic:
        """Return the topic whose id starts with `prefix`. Raise `NotFoundError`, `AmbiguousIdError`."""
        wanted = prefix.lower()
        found = [one for one in self.topics if wanted and one.id.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(one.id for one in found[:5])
            raise AmbiguousIdError(f"the ID {prefix!r} matches {len(found)} topics: {names}")
        for one in reversed(self.kept.changes):
            if wanted and one.id.startswith(wanted):
                raise NotFoundError(f"the topic {one.id} {one.words} on {one.day}")
        raise NotFoundError(f"there is no topic {prefix!r}; `memkit topics` lists them")

    def related(self, topic: Topic) -> list[tuple[Relation, Topic]]:
        """Return the related topics, the strongest relation first."""
        known = {one.id: one for one in self.topics}
        return [(one, known[one.id]) for one in topic.stored.related if one.id in known]

    def changes_of(self, topic: Topic) -> list[Change]:
        """Return the recorded changes of earlier topics that led to this one, oldest first."""
        return [one for one in self.kept.changes if topic.id in (one.id, *one.into)]

    def holding(self, found: Iterable[tuple[Sequence[str], float]]) -> list[tuple[Topic, float]]:
        """Return the topics of search results, best first, each with its score.

        `found` has the keys of the entries of each result, and its relevance. A topic scores the sum of its
        results.
        """
        topic_of = self.by_member()
        scores: dict[str, float] = {}
        for keys, relevance in found:
            for name in dict.fromkeys(topic_of[key].id for key in keys if key in topic_of):
                scores[name] = scores.get(name, 0.0) + relevance
        pairs = [(one, scores[one.id]) for one in self.topics if one.id in scores]
        return sorted(pairs, key=lambda pair: (-pair[1], -pair[0].importance, pair[0].id))

    def by_member(self) -> dict[str, Topic]:
        """Return the topic of each entry that is in one, by the entry's key."""
        kept = self.kept.topics
        return {key: one for one in self.topics if one.id in kept for key in kept[one.id].members}


def read_topics(
    project: Project, home: Home, settings: Settings, today: date | None = None
) -> TopicList | None:
    """Return the topics of a project as they were computed last, or None. Raise `MemkitError`."""
    today = today or date.today()
    stored = read_derived(derived_path(project, home, settings))
    if stored is None:
        return None
    kept = read_kept(home, project)
    return TopicList(stored, kept, tuple(_ranked(stored, kept.topics, today)))


def topics_in(
    project: Project, home: Home, settings: Settings, since: str, until: str
) -> list[TopicCount] | None:
    """Return the topics with entries in a period (ISO days, inclusive), those with the most entries first.

    Return None if no topics were computed yet. Raise `MemkitError`.
    """
    known = read_topics(project, home, settings)
    if known is None:
        return None
    found = []
    for one in known.topics:
        days = {day: count for day, count in one.stored.days.items() if since <= day <= until}
        if days:
            count = sum(days.values())
            found.append(TopicCount(one.id, one.root, one.label, count, min(days), max(days)))
    return sorted(found, key=lambda one: -one.entries)


def rename(project: Project, home: Home, topic: str, label: str) -> None:
    """Give a topic the user's own label; "" brings the made one back. Raise `MemkitError`."""
    with changing_kept(home, project) as kept:
        if topic not in kept.topics:
            raise NotFoundError(f"there is no topic {topic!r}; `memkit topics` lists them")
        kept.topics[topic] = replace(kept.topics[topic], label=label)


def _ranked(stored: StoredTopics, kept: Mapping[str, Kept], today: date) -> list[Topic]:
    largest = max((one.size for one in stored.topics), default=1)
    found = []
    for one in stored.topics:
        own = kept.get(one.id, Kept())
        by_model = own.current_model_label
        made = (by_model.text if by_model is not None else "") or one.label
        age = (today - date.fromisoformat(max(one.days))).days if one.days else math.inf
        size = math.log1p(one.size) / math.log1p(largest)
        recency = 0.5 ** (max(0, age) / HALF_LIFE_DAYS)
        importance = SIZE_WEIGHT * size + RECENCY_WEIGHT * recency + CENTRALITY_WEIGHT * one.centrality
        label = own.label or made
        found.append(Topic(stored.root, one, label, made, bool(own.label), size, recency, importance))
    return sorted(found, key=lambda one: (-one.importance, -one.stored.size, one.id))
