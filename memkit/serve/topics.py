"""Topics, and the files of the work on them.

Topics are computed by a job, by `memkit topics`, or by `POST /topics`, never by another request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from fastapi import APIRouter, Query, Response

from memkit.browse.file_history import FileEvent, most_telling
from memkit.errors import NotFoundError
from memkit.interface import InterfaceMemory as Memory
from memkit.serve.answers import documented, returns
from memkit.serve.auth import Reading, Writing
from memkit.serve.shapes import Id, Limit, Text
from memkit.text import moment
from memkit.topics.file_map import FileMap
from memkit.topics.files import TopicRelation
from memkit.topics.topic_list import Topic, TopicView

router = APIRouter(prefix="/topics", tags=["topics"], responses=documented(404, 409))
file_router = APIRouter(prefix="/files", tags=["files"])

MOST_EVENTS = 200

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
    """When topics were computed, and from what."""

    computed: str | None
    entries: int
    in_no_topic: int
    topics: int
    relations: int


@router.get("", responses=returns(TopTopics))
async def top_topics(ask: Reading, limit: Limit = 20) -> Response:
    """Return the topics of the project, the most important first."""
    return await ask(lambda memory: _top(memory.topics(compute=False).topics, limit))


@router.post("", responses={**returns(TopTopics), **documented(400, 413)})
async def compute_topics(ask: Writing, limit: Limit = 20) -> Response:
    """Return the topics as `GET` does. Compute them if that was never done, which can take a minute."""
    return await ask(lambda memory: _top(memory.topics().topics, limit))


def _top(found: Sequence[Topic], limit: int) -> TopTopics:
    return {"topics": [one.as_dict() for one in found[:limit]], "all": len(found)}


@router.get("/status", responses=returns(TopicsStatus))
async def topics_status(ask: Reading) -> Response:
    """Return when the topics were computed, and from how many entries."""

    def read(memory: Memory) -> TopicsStatus:
        try:
            found = memory.topics(compute=False)
        except NotFoundError:
            return {"computed": None, "entries": 0, "in_no_topic": 0, "topics": 0, "relations": 0}
        stored = found.stored
        return {
            "computed": moment(stored.made),
            "entries": stored.entries,
            "in_no_topic": stored.noise,
            "topics": len(found.topics),
            "relations": sum(len(one.related) for one in stored.topics),
        }

    return await ask(read)


@router.get("/search", responses=returns(FoundTopics))
async def search_topics(ask: Reading, query: Text, limit: Limit = 10) -> Response:
    """Return the topics of what a search finds, best first."""

    def find(memory: Memory) -> FoundTopics:
        pairs = memory.topics_about(query, compute=False)[:limit]
        return {"topics": [{**one.as_dict(), "score": round(score, 3)} for one, score in pairs]}

    return await ask(find)


@router.get("/{id}/related", responses=returns(RelatedTopics))
async def related_topics(id: Id, ask: Reading, limit: Limit = 10) -> Response:
    """Return the topics related to one, the strongest relation first."""

    def read(memory: Memory) -> RelatedTopics:
        found = memory.topics(compute=False)
        topic = found.find(id)
        pairs = found.related(topic)[:limit]
        return {"id": topic.id, "related": [one.as_dict(other.label) for one, other in pairs]}

    return await ask(read)


class FileHistoryView(TypedDict):
    """The history of a file, oldest first; `all` counts also the events that are left out."""

    file: str
    names: list[str]
    git: bool
    events: list[FileEvent]
    all: int


@file_router.get("", responses=returns(FileMap))
async def busiest_files(ask: Reading, limit: Limit = 40) -> Response:
    """Return the files that were edited most, by topic, and how often in each of the last 26 weeks."""
    return await ask(lambda memory: memory.files(limit))


@file_router.get("/history", responses=returns(FileHistoryView))
async def file_history(
    ask: Reading,
    file: Annotated[
        str,
        Query(
            min_length=1, max_length=1000, description="A path from the project's root",
            examples=["src/app.py"],
        ),
    ],
) -> Response:
    """Return the turns that edited or read a file, what was decided, and its commits, as `memkit why`."""
    def read(memory: Memory) -> FileHistoryView:
        found = memory.why(file)
        shown = most_telling(found.events, MOST_EVENTS)
        return {
            "file": file, "names": list(found.names), "git": found.has_git, "events": shown,
            "all": len(found.events),
        }

    return await ask(read)
