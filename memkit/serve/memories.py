"""Notes and entries: store, search, show, erase; other agents' messages; and the state of the index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import signature
from typing import Annotated, Any, TypedDict

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from memkit.browse.names import EntryView
from memkit.errors import MemkitError
from memkit.forget.locations import LocationsView
from memkit.forget.selection import SelectionFinder
from memkit.interface import InterfaceMemory as Memory
from memkit.search.results import Filters, SearchAnswer
from memkit.serve.answers import Answer, returns
from memkit.serve.auth import AdministeringOrPage, Reading, Writing
from memkit.serve.guard import secret_in
from memkit.serve.link import LinkError
from memkit.serve.shapes import (
    MOST_PASSED,
    AllProjects,
    Day,
    ErasedId,
    EventBody,
    File,
    Filter,
    HybridMode,
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
search_router = APIRouter(prefix="/search", tags=["search"])


class _Erased(LocationsView):
    erased: bool


class Erasure(_Erased, total=False):
    """The entries that were erased, or would be. The page's key erases with `confirmation`, once."""

    confirmation: str


class SearchPage(SearchAnswer):
    """A page of results. `next` is the `after` of the next page, which may be empty."""

    next: int | None


@dataclass
class Asked:
    """The parameters that all searches take."""

    query: Text
    limit: Limit = 5
    after: Passed = 0
    since: Day = ""
    until: Day = ""
    all_projects: AllProjects = False

    def find(self, memory: Memory, filters: Filters, **options: Any) -> SearchPage:
        """Return a page of results. Raise `MemkitError`."""
        filters = replace(filters, since=day_named(self.since), until=day_named(self.until))
        end = self.after + self.limit
        answer = memory.search(
            self.query, end, all_projects=self.all_projects, filters=filters, **options
        ).as_dict()
        results = answer["results"][self.after : end]
        is_last = len(results) < self.limit or end > MOST_PASSED
        return {**answer, "results": results, "next": None if is_last else end}


async def _asked(**given: Any) -> Asked:
    """Return what is asked, in the event loop: for a class, FastAPI goes to a thread and back."""
    return Asked(**given)


vars(_asked)["__signature__"] = signature(Asked)

Search = Annotated[Asked, Depends(_asked)]

_OF_BODIES = (400, 413, 415)


@router.post("/memory/store", status_code=201, responses=returns(Stored, *_OF_BODIES, also=201))
async def store_note(body: NoteBody, ask: Writing, request: Request) -> Response:
    """Add a note to today's Markdown. Secrets are redacted. The same note is stored once."""

    def remember(memory: Memory) -> Response:
        with request.app.state.threads.storing:
            note = memory.remember(body.text, *body.tags, metadata=body.metadata, once=True)
        if note.is_new:
            memory.index_soon()
        stored = Stored(id=note.id, day=note.day, created=note.is_new)
        location = {"Location": f"/memory/{note.id}"}
        return Answer(stored, 201 if note.is_new else 200, headers=location)

    return await ask(remember)


@router.post("/events", status_code=201, responses=returns(Taken, *_OF_BODIES, also=201))
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
    asked: Search,
    session: Filter = "",
    branch: Filter = "",
    kind: Filter = "",
    path: Filter = "",
    agent: Filter = "",
    file: File = "",
    minimum: Annotated[float | None, Query(ge=0, le=1, description="Least relevance of an entry")] = None,
    details: Annotated[
        bool, Query(description="Add `excerpt` to each result, and `explanation`: how its score came about")
    ] = False,
) -> Response:
    """Search the memory, ranked as the settings say. The same as `memkit search --json`.

    `excerpt` is what a person reads of a result: its title, the sentence that matches best, what came of it,
    and the words of the question in these.
    """

    filters = Filters(session=session, branch=branch, kind=kind, path=path, agent=agent)
    options = {"file": file, "minimum": minimum, "explain": details, "excerpts": details}
    return await ask(lambda memory: asked.find(memory, filters, **options))


@router.get("/memory/{id}", responses=returns(EntryView, 404, 409))
async def show_entry(id: Id, ask: Reading) -> Response:
    """Return a note, turn, session, day, citation, fact, or search result. A note has tags and metadata."""
    return await ask(lambda memory: memory.show(id).as_dict())


@router.patch("/memory/{id}", responses=returns(EntryView, 404, 409, *_OF_BODIES))
async def edit_note(id: ErasedId, body: NoteEdit, ask: Writing) -> Response:
    """Give a note new text, and new tags if there are any. It keeps its ID and metadata."""

    def change(memory: Memory) -> EntryView:
        note = memory.edit_note(id, body.text, body.tags)
        memory.index_soon()
        return note.as_dict()

    return await ask(change)


@router.delete("/memory/{id}", responses=returns(Erasure, 404, 409))
async def forget_entry(
    id: ErasedId, ask: AdministeringOrPage, request: Request,
    dry_run: Annotated[bool, Query(description="Only list what would go")] = False,
    confirmation: Annotated[str, Query(max_length=100, description="The page's, from its dry run")] = "",
) -> Response:
    """Erase an entry for good: from the files, the archive, and the index."""
    page = request.app.state.auth.link_of(secret_in(request.scope))

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


class IndexOfWords(TypedDict):
    """The state of the index of words. `in_step` means that it has every change of the files."""

    files: int
    chunks: int
    in_step: bool
    language: str


class IndexOfVectors(TypedDict):
    """The state of the vectors, in chunks."""

    provider: str
    model: str
    embedded: int
    missing: int


class HybridStatus(TypedDict):
    """The state of both indexes. `mode` is how a search ranks unless it says otherwise."""

    mode: str
    lexical: IndexOfWords
    dense: IndexOfVectors


@search_router.get("/lexical", responses=returns(SearchPage))
async def search_lexical(ask: Reading, asked: Search) -> Response:
    """Search by words (BM25)."""
    return await ask(lambda memory: asked.find(memory, Filters(), mode="lexical"))


@search_router.get("/dense", responses=returns(SearchPage))
async def search_dense(ask: Reading, asked: Search) -> Response:
    """Search by meaning (vectors). If the model is missing, `degraded_reason` is set."""

    def find(memory: Memory) -> SearchPage:
        if memory.settings.embedding.provider == "none":
            raise MemkitError("embedding.provider is none, so there are no vectors to search")
        return asked.find(memory, Filters(), mode="dense")

    return await ask(find)


@search_router.get("/hybrid", responses=returns(SearchPage))
async def search_hybrid(ask: Reading, asked: Search, mode: HybridMode = "context") -> Response:
    """Search by words and vectors together."""
    return await ask(lambda memory: asked.find(memory, Filters(), mode=mode))


@search_router.get("/lexical/status", responses=returns(IndexOfWords))
async def lexical_status(ask: Reading) -> Response:
    """Return what the index of words holds, and whether it is up to date."""
    return await ask(lambda memory: _words(memory, memory.index_status()))


@search_router.get("/hybrid/status", responses=returns(HybridStatus))
async def hybrid_status(ask: Reading) -> Response:
    """Return what the indexes of words and vectors hold, and whether they are up to date."""

    def read(memory: Memory) -> HybridStatus:
        found, embedding = memory.index_status(), memory.settings.embedding
        vectors: IndexOfVectors = {
            "provider": embedding.provider, "model": found["model"],
            "embedded": found["chunks"] - found["missing"], "missing": found["missing"],
        }  # fmt: skip
        return {"mode": memory.settings.search.mode, "lexical": _words(memory, found), "dense": vectors}

    return await ask(read)


def _words(memory: Memory, found: dict[str, Any]) -> IndexOfWords:
    return {
        "files": found["files"], "chunks": found["chunks"], "in_step": found["in_step"],
        "language": memory.settings.search.language,
    }  # fmt: skip
