"""Notes and entries: store, search, show, erase; and messages of other agents' sessions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response

from memkit.browse.names import EntryView
from memkit.forget.locations import LocationsView
from memkit.forget.selection import SelectionFinder
from memkit.interface import InterfaceMemory as Memory
from memkit.search.results import Answer as Found
from memkit.search.results import Filters, SearchAnswer
from memkit.serve.answers import Answer, documented, returns
from memkit.serve.auth import AdministeringOrPage, Reading, Writing, secret_of
from memkit.serve.link import LinkError
from memkit.serve.shapes import (
    MOST_PASSED,
    AllProjects,
    Day,
    ErasedId,
    EventBody,
    File,
    Filter,
    Id,
    Limit,
    NoteBody,
    NoteEdit,
    Passed,
    Stored,
    Taken,
    Text,
    day_named,
    in_range,
)

router = APIRouter(tags=["memory"])


class _Erased(LocationsView):
    erased: bool


class Erasure(_Erased, total=False):
    """The entries that were erased, or would be. The page's key erases with `confirmation`, once."""

    confirmation: str


class SearchPage(SearchAnswer):
    """A page of results. `next` is the `after` of the next page, which may be empty."""

    next: int | None


def page_of(found: Found, limit: int, after: int) -> SearchPage:
    """Return the `limit` results of an answer behind the first `after`."""
    answer, end = found.as_dict(), after + limit
    results = answer["results"][after:end]
    is_last = len(results) < limit or end > MOST_PASSED
    return {**answer, "results": results, "next": None if is_last else end}


_OF_BODIES = documented(400, 413, 415)


@router.post(
    "/memory/store",
    status_code=201,
    responses={**returns(Stored), **returns(Stored, status=201), **_OF_BODIES},
)
async def store_note(body: NoteBody, ask: Writing, request: Request) -> Response:
    """Add a note to today's Markdown. Secrets are redacted. The same note is stored once."""

    def remember(memory: Memory) -> Response:
        with request.app.state.threads.storing:
            note = memory.remember(body.text, *body.tags, metadata=body.metadata, once=True)
        if note.is_new:
            memory.index_soon()
        return Answer(
            Stored(id=note.id, day=note.day, created=note.is_new),
            201 if note.is_new else 200,
            headers={"Location": f"/memory/{note.id}"},
        )

    return await ask(remember)


@router.post(
    "/events",
    status_code=201,
    responses={**returns(Taken), **returns(Taken, status=201), **_OF_BODIES},
)
async def ingest_event(body: EventBody, ask: Writing) -> Response:
    """Add a message to a session of another agent. The same message at the same time is stored once."""

    def take(memory: Memory) -> Response:
        time = in_range(body.time) if body.time else None
        found = memory.ingest(body.session, body.role, body.text, time=time, tool=body.tool)
        if found.is_new:
            memory.index_soon()
        taken = Taken(
            session=found.session, turn=found.turn, created=found.is_new, remembered=found.is_remembered
        )
        return Answer(taken, 201 if found.is_new else 200)

    return await ask(take)


@router.get("/memory/search", responses=returns(SearchPage))
async def search_memory(
    ask: Reading,
    query: Text,
    limit: Limit = 5,
    after: Passed = 0,
    since: Day = "",
    until: Day = "",
    session: Filter = "",
    branch: Filter = "",
    kind: Filter = "",
    path: Filter = "",
    agent: Filter = "",
    file: File = "",
    minimum: Annotated[float | None, Query(ge=0, le=1, description="Least relevance of an entry")] = None,
    all_projects: AllProjects = False,
    details: Annotated[
        bool, Query(description="Add `excerpt` to each result, and `explanation`: how its score came about")
    ] = False,
) -> Response:
    """Search the memory, ranked as the settings say. The same as `memkit search --json`.

    `excerpt` is what a person reads of a result: its title, the sentence that matches best, what came of it,
    and the words of the question in these.
    """

    def find(memory: Memory) -> SearchPage:
        filters = Filters(day_named(since), day_named(until), session, branch, kind, path, agent)
        answer = memory.search(
            query, limit + after, all_projects=all_projects, filters=filters, file=file, minimum=minimum,
            explain=details, excerpts=details,
        )  # fmt: skip
        return page_of(answer, limit, after)

    return await ask(find)


@router.get("/memory/{id}", responses=returns(EntryView, 404, 409))
async def show_entry(id: Id, ask: Reading) -> Response:
    """Return a note, turn, session, day, citation, fact, or search result. A note has tags and metadata."""
    return await ask(lambda memory: memory.show(id).as_dict())


@router.patch("/memory/{id}", responses={**returns(EntryView, 404, 409), **_OF_BODIES})
async def edit_note(id: ErasedId, body: NoteEdit, ask: Writing) -> Response:
    """Give a note new text, and new tags if there are any. It keeps its ID and metadata."""

    def change(memory: Memory) -> EntryView:
        note = memory.edit_note(id, body.text, body.tags)
        memory.index_soon()
        return note.as_dict()

    return await ask(change)


@router.delete("/memory/{id}", responses=returns(Erasure, 404, 409))
async def forget_entry(
    id: ErasedId,
    ask: AdministeringOrPage,
    request: Request,
    dry_run: Annotated[bool, Query(description="Only list what would go")] = False,
    confirmation: Annotated[str, Query(max_length=100, description="The page's, from its dry run")] = "",
) -> Response:
    """Erase an entry for good: from the files, the archive, and the index."""
    page = request.app.state.auth.link_of(secret_of(request))

    def forget(memory: Memory) -> dict[str, Any]:
        if page is None:
            return {"erased": not dry_run, **memory.forget(id, dry_run=dry_run).as_dict()}
        if not dry_run:
            return {"erased": True, **memory.forget(selection=confirmed).as_dict()}
        finder = SelectionFinder(
            memory.project, memory.home, memory.settings, other_projects=memory.other_projects
        )
        selection = finder.select([id])
        found = memory.forget(selection=selection, dry_run=True).as_dict()
        return {"erased": False, **found, "confirmation": page.confirmation_for(selection)}

    if page is not None and not dry_run:
        try:
            confirmed = page.confirmed(confirmation)
        except LinkError as error:
            raise HTTPException(403, str(error)) from error
    return await ask(forget)
