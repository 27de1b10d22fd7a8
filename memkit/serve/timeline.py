"""The timeline: its nodes, what they hold, and the original messages; citations; sessions and their turns."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from memkit.browse.citation import CitationView
from memkit.browse.history import SessionPage
from memkit.browse.session_view import SessionView
from memkit.browse.transcript import ExchangeView
from memkit.errors import MemkitError
from memkit.interface import InterfaceMemory as Memory
from memkit.serve.answers import documented, returns
from memkit.serve.auth import Reading, ReadingTimeline
from memkit.serve.shapes import (
    After,
    AllProjects,
    Cursor,
    Day,
    Depth,
    File,
    Filter,
    Id,
    Node,
    NodeFilter,
    Rows,
    Since,
    Text,
    Until,
    day_named,
    moment_named,
)
from memkit.timeline.events import ChildrenMatches, Events, NodeMatches
from memkit.timeline.view import Calendar, TimelineChildren, TimelineView

router = APIRouter(tags=["timeline"], responses=documented(404, 409))
session_router = APIRouter(tags=["sessions"])


@router.get("/timeline", responses=returns(TimelineView))
async def timeline_root(
    ask: ReadingTimeline, depth: Depth = 0, limit: Rows = 100, after: After = ""
) -> Response:
    """Return the years and months, and what the whole memory is about."""
    return await ask(lambda memory: memory.timeline(depth=depth, limit=limit, after=after))


@router.get("/timeline/{node}", responses=returns(TimelineView))
async def timeline_node(
    node: Node, ask: ReadingTimeline, depth: Depth = 0, limit: Rows = 100, after: After = ""
) -> Response:
    """Return a year, month, week, day, or part of a session: what it was about, and what it consists of."""
    return await ask(lambda memory: memory.timeline(node, depth=depth, limit=limit, after=after))


@router.get("/timeline/{node}/children", responses=returns(TimelineChildren))
async def browse_children(
    node: Node, ask: ReadingTimeline, depth: Depth = 1, limit: Rows = 20, after: After = ""
) -> Response:
    """Return the nodes below a node, page by page: `next` is the `after` of the next page."""

    def browse(memory: Memory) -> TimelineChildren:
        found = memory.timeline(node, depth=depth, limit=limit, after=after)
        return {"path": found["path"], "children": found["children"], "next": found["next"]}

    return await ask(browse)


@router.get("/timeline/{node}/search", responses=returns(NodeMatches))
async def search_node(
    node: Node, ask: ReadingTimeline, query: Text, limit: Rows = 20, after: After = ""
) -> Response:
    """Return the turns, notes, and bullets of a node that have all words, also inside other words."""
    return await ask(lambda memory: memory.scan(query, node, limit=limit, after=after))


@router.get("/timeline/{node}/children/search", responses=returns(ChildrenMatches))
async def search_children(node: Node, ask: ReadingTimeline, query: Text, limit: Rows = 20) -> Response:
    """Return the children of a node in which something has all words, with the first matches of each."""
    return await ask(lambda memory: memory.scan_children(query, node, limit=limit))


@router.get("/calendar/{year}", responses=returns(Calendar))
async def get_calendar(
    year: Annotated[int, Path(ge=1, le=9999, description="A year of the calendar", examples=[2026])],
    ask: ReadingTimeline,
) -> Response:
    """Return how much each day of a year holds. Days that hold nothing are left out."""
    return await ask(lambda memory: memory.calendar(year))


@router.get("/events", responses=returns(Events))
async def events_in_range(
    ask: Reading, since: Since = "", until: Until = "", node: NodeFilter = "", limit: Rows = 50,
    after: After = "",
) -> Response:  # fmt: skip
    """Return the original messages in a range of time, or of a node, page by page."""

    def read(memory: Memory) -> Events:
        begin, end = moment_named(since), moment_named(until, is_end=True)
        return memory.events(node, limit=limit, after=after, since=begin, until=end)

    return await ask(read)


@router.get("/citations/{id}", responses=returns(CitationView))
async def expand_citation(
    id: Id,
    ask: Reading,
    context: Annotated[int, Query(ge=0, le=20, description="Messages before and after the proof")] = 3,
) -> Response:
    """Return the proof of a summary's bullet, and the messages around it."""
    return await ask(lambda memory: memory.cite(id, context).as_dict())


TEXT_CHARACTERS = 20_000


@session_router.get("/sessions", responses=returns(SessionPage))
async def list_sessions(
    ask: ReadingTimeline, day: Day = "", since: Day = "", until: Day = "", branch: Filter = "",
    file: File = "", limit: Rows = 50, after: Cursor = "", all_projects: AllProjects = False,
) -> Response:  # fmt: skip
    """Return the sessions, the last active first; with `day` or `until`, what they did in that period."""
    if day and (since or until):
        raise MemkitError("`day` is a period of its own; leave out `since` and `until`")

    def read(memory: Memory) -> SessionPage:
        first, last = day_named(day or since), day_named(day or until)
        return memory.session_list(
            since=str(first or ""), until=str(last or ""), branch=branch, file=file, limit=limit, after=after,
            all_projects=all_projects,
        )  # fmt: skip

    return await ask(read)


@session_router.get("/sessions/{id}", responses=returns(SessionView, 404, 409))
async def get_session(
    id: Id,
    ask: Reading,
    limit: Rows = 50,
    offset: Annotated[
        int | None,
        Query(ge=0, le=1_000_000, description="The first turn, from 0; by default the page with the turn"),
    ] = None,
) -> Response:
    """Return a session by its ID or by a turn's: its summaries, and its turns with their marks."""
    return await ask(lambda memory: memory.session(id, limit=limit, offset=offset))


@session_router.get("/turns/{id}/transcript", responses=returns(ExchangeView, 404, 409))
async def get_transcript(
    id: Id,
    ask: Reading,
    context: Annotated[int, Query(ge=0, le=20, description="Messages before and after the turn")] = 0,
) -> Response:
    """Return the original messages of a turn, redacted. A text above 20,000 characters is cut."""

    def read(memory: Memory) -> ExchangeView:
        found = memory.session(id, limit=1)
        exchange = memory.transcript(found.id, found.turn, context).as_dict()
        return {**exchange, "messages": _cut(exchange["messages"])}

    return await ask(read)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT_CHARACTERS else f"{value[:TEXT_CHARACTERS]} …"
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in value.items()}
    return [_cut(one) for one in value] if isinstance(value, list) else value
