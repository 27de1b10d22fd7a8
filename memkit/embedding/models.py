"""Facts about models by their names: the prefixes they were trained with, and how many tokens they read.

Sources: the models' cards on the model hub, and the providers' documentation of their models.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memkit.settings import AUTO, EmbeddingSettings

WINDOW_TOKENS = 4000
"""The longest window for a model whose tokenizer is not available, even if the model reads more.

By `windows.rough_tokens` that is 8,000 bytes, without blanks. No tokenizer makes more tokens than bytes, so a
model that reads 8,000 tokens loses nothing.
"""


class Prefixes(NamedTuple):
    """The text to put before a query and before a passage."""

    query: str = ""
    passage: str = ""


NO_PREFIXES = Prefixes()


class _Model(NamedTuple):
    name: str  # pattern of the name in lower case, without its owner; matched from the beginning
    tokens: int  # how many it reads
    prefixes: Prefixes = NO_PREFIXES


_RETRIEVAL = "Represent this sentence for searching relevant passages: "
_INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
)

# The first match counts.
_MODELS = (
    _Model("all-minilm", 256),
    _Model("bge-m3", 8192),
    _Model(r"bge-(small|base|large)-zh", 512, Prefixes("为这个句子生成表示以用于检索相关文章：")),
    _Model(r"bge-(small|base|large)", 512, Prefixes(_RETRIEVAL)),
    _Model("embeddinggemma", 2048, Prefixes("task: search result | query: ", "title: none | text: ")),
    _Model("multilingual-e5-large-instruct", 512, Prefixes(f"{_INSTRUCTION}Query: ")),
    _Model(r"(multilingual-)?e5-(small|base|large)", 512, Prefixes("query: ", "passage: ")),
    _Model("mxbai-embed-large", 512, Prefixes(_RETRIEVAL)),
    _Model("nomic-embed-text", 2048, Prefixes("search_query: ", "search_document: ")),
    _Model("qwen3-embedding", 32768, Prefixes(f"{_INSTRUCTION}Query:")),
    _Model(r"snowflake-arctic-embed(2|.*-v2)", 8192, Prefixes("query: ")),
    _Model("snowflake-arctic-embed", 512, Prefixes(_RETRIEVAL)),
)


def prefixes(model: str, query: str = AUTO, passage: str = AUTO) -> Prefixes:
    """Return `query` and `passage`; replace each that is `AUTO` by the known prefix of `model`."""
    known = _find(model)
    wanted = NO_PREFIXES if known is None else known.prefixes
    return Prefixes(
        wanted.query if query == AUTO else query, wanted.passage if passage == AUTO else passage
    )


def tokens_read(model: str, default: int) -> int:
    """Return how many tokens of a text `model` reads; `default` for an unknown model."""
    known = _find(model)
    return default if known is None else known.tokens


def space(chosen: EmbeddingSettings) -> str:
    """Return the name of the vector space; only vectors of one space can be compared.

    A provider's vectors depend on the model and on the prefix of passages. Without a provider, chunks wait
    for the local model's vectors.
    """
    if chosen.provider in ("local", "none"):
        return chosen.model
    passage = prefixes(chosen.model, passage=chosen.passage_prefix).passage
    return f"{chosen.provider}/{chosen.model}" + (f" {passage!r}" if passage else "")


def _find(model: str) -> _Model | None:
    name = model.rpartition("/")[2].lower()
    return next((known for known in _MODELS if re.match(known.name, name)), None)
