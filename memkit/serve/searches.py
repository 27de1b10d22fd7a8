"""Lexical, vector, and hybrid search, and the state of their index."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from memkit.errors import MemkitError
from memkit.memory import Memory
from memkit.recall.results import Filters
from memkit.serve.answers import Answer
from memkit.serve.asking import Ask, Reading
from memkit.serve.schemas import HybridStatus, IndexOfWords, SearchAnswer
from memkit.serve.shapes import AllProjects, Day, HybridMode, Limit, Text, day_named

router = APIRouter(prefix="/search", tags=["search"])


async def _search(
    ask: Ask, mode: str, query: str, limit: int, since: str, until: str, all_projects: bool
) -> Response:
    def find(memory: Memory) -> Response:
        if mode == "dense" and memory.settings.embedding.provider == "none":
            raise MemkitError("embedding.provider is none, so there are no vectors to search")
        filters = Filters(day_named(since), day_named(until))
        answer = memory.search(query, limit, mode=mode, all_projects=all_projects, filters=filters)
        return Answer(answer.as_dict())

    return await ask(find)  # type: ignore[no-any-return]


@router.get("/lexical", response_model=SearchAnswer)
async def lexical(
    ask: Reading, query: Text, limit: Limit = 10, since: Day = "", until: Day = "",
    all_projects: AllProjects = False,
) -> Response:  # fmt: skip
    """Search by words (BM25)."""
    return await _search(ask, "lexical", query, limit, since, until, all_projects)


@router.get("/vector", response_model=SearchAnswer)
async def vector(
    ask: Reading, query: Text, limit: Limit = 10, since: Day = "", until: Day = "",
    all_projects: AllProjects = False,
) -> Response:  # fmt: skip
    """Search by meaning (vectors). If the model is missing, `degraded_reason` is set."""
    return await _search(ask, "dense", query, limit, since, until, all_projects)


@router.get("/hybrid", response_model=SearchAnswer)
async def hybrid(
    ask: Reading, query: Text, limit: Limit = 10, since: Day = "", until: Day = "",
    mode: HybridMode = "context", all_projects: AllProjects = False,
) -> Response:  # fmt: skip
    """Search by words and vectors together."""
    return await _search(ask, mode, query, limit, since, until, all_projects)


@router.get("/lexical/status", response_model=IndexOfWords)
async def lexical_status(ask: Reading) -> Response:
    """Return what the index of words holds, and whether it is up to date."""
    return await ask(lambda memory: Answer(_words(memory, memory.index_status())))  # type: ignore[no-any-return]


@router.get("/hybrid/status", response_model=HybridStatus)
async def hybrid_status(ask: Reading) -> Response:
    """Return what the indexes of words and vectors hold, and whether they are up to date."""

    def read(memory: Memory) -> Response:
        found, embedding = memory.index_status(), memory.settings.embedding
        vectors = {
            "provider": embedding.provider,
            "model": found["model"],
            "embedded": found["chunks"] - found["missing"],
            "missing": found["missing"],
        }
        return Answer(
            {"mode": memory.settings.search.mode, "lexical": _words(memory, found), "vector": vectors}
        )

    return await ask(read)  # type: ignore[no-any-return]


def _words(memory: Memory, found: dict[str, Any]) -> dict[str, Any]:
    kept = {name: found[name] for name in ("files", "chunks", "in_step")}
    return {**kept, "language": memory.settings.search.language}
