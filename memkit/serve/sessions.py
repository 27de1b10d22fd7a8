"""Sessions and their turns."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from memkit.browse.history import SessionPage
from memkit.browse.session_view import SessionView
from memkit.browse.transcript import ExchangeView
from memkit.errors import MemkitError
from memkit.interface import InterfaceMemory as Memory
from memkit.serve.answers import returns
from memkit.serve.auth import Reading, ReadingTimeline
from memkit.serve.shapes import AllProjects, Cursor, Day, File, Filter, Id, Rows, day_named

router = APIRouter(tags=["sessions"])

TEXT_CHARACTERS = 20_000


@router.get("/sessions", responses=returns(SessionPage))
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


@router.get("/sessions/{id}", responses=returns(SessionView, 404, 409))
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


@router.get("/turns/{id}/transcript", responses=returns(ExchangeView, 404, 409))
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
