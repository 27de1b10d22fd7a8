"""Lexical, vector, and hybrid search, and the state of their index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from memkit.errors import MemkitError
from memkit.memory import Memory
from memkit.recall.results import Filters
from memkit.serve.answers import Answer
from memkit.serve.auth import Reading
from memkit.serve.schemas import HybridStatus, IndexOfWords, SearchAnswer
from memkit.serve.shapes import AllProjects, Day, HybridMode, Limit, Text, day_named

router = APIRouter(prefix="/search", tags=["search"])


@dataclass
class Asked:
    """The parameters that all three searches take."""

    query: Text
    limit: Limit = 10
    since: Day = ""
    until: Day = ""
    all_projects: AllProjects = False

    def find(self, memory: Memory, mode: str) -> Response:
        """Return the answer of a search in this mode. Raise `MemkitError`."""
        filters = Filters(day_named(self.since), day_named(self.until))
        answer = memory.search(
            self.query, self.limit, mode=mode, all_projects=self.all_projects, filters=filters
        )
        return Answer(answer.as_dict())


Search = Annotated[Asked, Depends()]


@router.get("/lexical", response_model=SearchAnswer)
async def lexical(ask: Reading, asked: Search) -> Response:
    """Search by words (BM25)."""
    return await ask(lambda memory: asked.find(memory, "lexical"))


@router.get("/vector", response_model=SearchAnswer)
async def vector(ask: Reading, asked: Search) -> Response:
    """Search by meaning (vectors). If the model is missing, `degraded_reason` is set."""

    def find(memory: Memory) -> Response:
        if memory.settings.embedding.provider == "none":
            raise MemkitError("embedding.provider is none, so there are no vectors to search")
        return asked.find(memory, "dense")

    return await ask(find)


@router.get("/hybrid", response_model=SearchAnswer)
async def hybrid(ask: Reading, asked: Search, mode: HybridMode = "context") -> Response:
    """Search by words and vectors together."""
    return await ask(lambda memory: asked.find(memory, mode))


@router.get("/lexical/status", response_model=IndexOfWords)
async def lexical_status(ask: Reading) -> Response:
    """Return what the index of words holds, and whether it is up to date."""
    return await ask(lambda memory: Answer(_words(memory, memory.index_status())))


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

    return await ask(read)


def _words(memory: Memory, found: dict[str, Any]) -> dict[str, Any]:
    kept = {name: found[name] for name in ("files", "chunks", "in_step")}
    return {**kept, "language": memory.settings.search.language}
