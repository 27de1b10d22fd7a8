"""Sessions and their turns."""

from __future__ import annotations

from fastapi import APIRouter, Response

from memkit.errors import MemkitError
from memkit.memory import Memory
from memkit.serve.answers import Answer
from memkit.serve.asking import Reading
from memkit.serve.shapes import Cursor, Day, File, Filter, Rows, SessionPage, day_named

router = APIRouter(tags=["sessions"])


@router.get("/sessions", response_model=SessionPage)
async def listed(
    ask: Reading,
    day: Day = "",
    since: Day = "",
    until: Day = "",
    branch: Filter = "",
    file: File = "",
    limit: Rows = 50,
    after: Cursor = "",
) -> Response:
    """Return the sessions, the last active first; with `day` or `until`, what they did in that period."""
    if day and (since or until):
        raise MemkitError("`day` is a period of its own; leave out `since` and `until`")

    def read(memory: Memory) -> Response:
        first, last = day_named(day or since), day_named(day or until)
        found = memory.session_list(
            since=str(first or ""), until=str(last or ""), branch=branch, file=file, limit=limit, after=after
        )
        return Answer(found)

    return await ask(read)  # type: ignore[no-any-return]
