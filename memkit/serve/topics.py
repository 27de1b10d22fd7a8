"""Topics. They are computed by a job, by `memkit topics`, or by `POST /topics`, never by another request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from fastapi import APIRouter, Response

from memkit.errors import NotFoundError
from memkit.memory import Memory
from memkit.serve.answers import Answer, documented, returns
from memkit.serve.auth import Reading, Writing
from memkit.serve.shapes import Id, Limit, Text
from memkit.topics.files import TopicRelation
from memkit.topics.topic_list import Topic, TopicView

router = APIRouter(prefix="/topics", tags=["topics"], responses=documented(404, 409))


class TopTopics(TypedDict):
    """The most important topics, and the number of all."""

    topics: list[TopicView]
    all: int


class ScoredTopic(TopicView):
    """A topic of what a search found."""

    score: float


class FoundTopics(TypedDict):
    """The topics of what a search found, best first."""

    topics: list[ScoredTopic]


class RelatedTopics(TypedDict):
    """The topics related to one."""

    id: str
    related: list[TopicRelation]


class TopicsStatus(TypedDict):
    """When topics were computed, in seconds since the epoch, and from what."""

    computed: float | None
    entries: int
    in_no_topic: int
    topics: int
    relations: int


@router.get("", responses=returns(TopTopics))
async def top(ask: Reading, limit: Limit = 20) -> Response:
    """Return the topics of the project, the most important first."""
    return await ask(lambda memory: _top(memory.topics(compute=False).topics, limit))


@router.post("", responses={**returns(TopTopics), **documented(400, 413)})
async def compute(ask: Writing, limit: Limit = 20) -> Response:
    """Return the topics as `GET` does. Compute them if that was never done, which can take a minute."""
    return await ask(lambda memory: _top(memory.topics().topics, limit))


def _top(found: Sequence[Topic], limit: int) -> Response:
    return Answer({"topics": [one.as_dict() for one in found[:limit]], "all": len(found)})


@router.get("/status", responses=returns(TopicsStatus))
async def status(ask: Reading) -> Response:
    """Return when the topics were computed, and from how many entries."""

    def read(memory: Memory) -> Response:
        try:
            found = memory.topics(compute=False)
        except NotFoundError:
            return Answer({"computed": None, "entries": 0, "in_no_topic": 0, "topics": 0, "relations": 0})
        stored = found.stored
        return Answer(
            {
                "computed": stored.made,
                "entries": stored.entries,
                "in_no_topic": stored.noise,
                "topics": len(found.topics),
                "relations": sum(len(one.related) for one in stored.topics),
            }
        )

    return await ask(read)


@router.get("/search", responses=returns(FoundTopics))
async def by_query(ask: Reading, query: Text, limit: Limit = 10) -> Response:
    """Return the topics of what a search finds, best first."""

    def find(memory: Memory) -> Response:
        pairs = memory.topics_about(query, compute=False)[:limit]
        return Answer({"topics": [{**one.as_dict(), "score": round(score, 3)} for one, score in pairs]})

    return await ask(find)


@router.get("/{id}/related", responses=returns(RelatedTopics))
async def related(id: Id, ask: Reading, limit: Limit = 10) -> Response:
    """Return the topics related to one, the strongest relation first."""

    def read(memory: Memory) -> Response:
        found = memory.topics(compute=False)
        topic = found.find(id)
        pairs = found.related(topic)[:limit]
        return Answer({"id": topic.id, "related": [one.as_dict(other.label) for one, other in pairs]})

    return await ask(read)
