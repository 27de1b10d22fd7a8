"""Lexical, dense, and hybrid search, and the state of their index."""

from __future__ import annotations

from typing import Any, TypedDict

from fastapi import APIRouter, Response

from memkit.errors import MemkitError
from memkit.interface import InterfaceMemory as Memory
from memkit.search.results import Filters
from memkit.serve.answers import returns
from memkit.serve.auth import Reading
from memkit.serve.memories import Search, SearchPage
from memkit.serve.shapes import HybridMode

router = APIRouter(prefix="/search", tags=["search"])


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


@router.get("/lexical", responses=returns(SearchPage))
async def search_lexical(ask: Reading, asked: Search) -> Response:
    """Search by words (BM25)."""
    return await ask(lambda memory: asked.find(memory, Filters(), mode="lexical"))


@router.get("/dense", responses=returns(SearchPage))
async def search_dense(ask: Reading, asked: Search) -> Response:
    """Search by meaning (vectors). If the model is missing, `degraded_reason` is set."""

    def find(memory: Memory) -> SearchPage:
        if memory.settings.embedding.provider == "none":
            raise MemkitError("embedding.provider is none, so there are no vectors to search")
        return asked.find(memory, Filters(), mode="dense")

    return await ask(find)


@router.get("/hybrid", responses=returns(SearchPage))
async def search_hybrid(ask: Reading, asked: Search, mode: HybridMode = "context") -> Response:
    """Search by words and vectors together."""
    return await ask(lambda memory: asked.find(memory, Filters(), mode=mode))


@router.get("/lexical/status", responses=returns(IndexOfWords))
async def lexical_status(ask: Reading) -> Response:
    """Return what the index of words holds, and whether it is up to date."""
    return await ask(lambda memory: _words(memory, memory.index_status()))


@router.get("/hybrid/status", responses=returns(HybridStatus))
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
