"""Prefixes and token limits of known models, and windows: texts cut to fit a model.

Sources: the models' cards on the model hub, and the providers' documentation of their models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memkit.settings import AUTO, EmbeddingSettings

WINDOW_TOKENS = 4000
"""The longest window for a model whose tokenizer is not available, even if the model reads more.

By `rough_tokens` that is 8,000 bytes, without blanks. No tokenizer makes more tokens than bytes, so a model
that reads 8,000 tokens loses nothing.
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
_INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"

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
    wanted = _find(model).prefixes
    return Prefixes(wanted.query if query == AUTO else query, wanted.passage if passage == AUTO else passage)


def tokens_read(model: str, default: int) -> int:
    """Return the most tokens of a text that `model` reads; `default` for an unknown model."""
    return _find(model).tokens or default


def space(chosen: EmbeddingSettings) -> str:
    """Return the name of the vector space; only vectors of one space can be compared.

    A provider's vectors depend on the model and on the prefix of passages, at Azure on the deployment, which
    may have another model. Without a provider, chunks wait for the local model's vectors.
    """
    if chosen.provider in ("local", "none"):
        return chosen.model
    passage = prefixes(chosen.model, passage=chosen.passage_prefix).passage
    name = f"{chosen.provider}/{chosen.model}"
    if chosen.provider == "openai" and chosen.azure_deployment:
        name += f"@{chosen.azure_deployment}"
    return name + (f" {passage!r}" if passage else "")


def _find(model: str) -> _Model:
    name = model.rpartition("/")[2].lower()
    return next((known for known in _MODELS if re.match(known.name, name)), _Model("", 0))


class Token(NamedTuple):
    """One token: the characters `start` to `end` of the text, in the word number `word`."""

    start: int
    end: int
    word: int | None


_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_SENTENCE_END = re.compile(r"[.!?…:;]\s+\Z|[。！？]\s*\Z")

_WORD = re.compile(r"\w+|[^\w\s]")
_PIECE = re.compile(r"[A-Za-z0-9_]{1,2}|\S")
_LAST_OF_TWO_BYTES = "\u07ff"


def rough_tokens(text: str) -> list[Token]:
    """Return tokens for a model whose tokenizer is not available: one per two bytes of UTF-8, without blanks.

    A model's own tokenizer nearly always makes fewer. A token is about 4 characters of English
    (https://platform.openai.com/tokenizer), 3 of code, 1 or 2 of Chinese. Only long runs of random letters
    and digits can have more.
    """
    tokens: list[Token] = []
    for number, word in enumerate(_WORD.finditer(text)):
        for piece in _PIECE.finditer(text, *word.span()):
            is_short = piece.group() <= _LAST_OF_TWO_BYTES
            tokens += [Token(*piece.span(), number)] * (1 if is_short else 2)
    return tokens


def cut_into_windows(text: str, limit: int, tokenize: Callable[[str], Sequence[Token]]) -> list[str]:
    """Return `text` as windows of at most `limit` tokens each; a text that fits is returned unchanged.

    The windows follow each other without a gap, stripped of blanks, about equally long. Each cut is at the
    best boundary (blank line, line end, sentence, word) that makes the window at least half an equal share
    and at most `limit` tokens. Of equally good boundaries, it takes the one nearest to an equal share.
    """
    tokens = tokenize(text)
    if len(tokens) <= limit:
        return [text]
    windows = []
    first = 0
    while first < len(tokens):
        size = limit
        while True:
            after = _next_cut(text, tokens, first, size)
            begin = tokens[first].start if first else 0
            end = tokens[after].start if after < len(tokens) else len(text)
            window = text[begin:end].strip()
            # A piece can have more tokens by itself than it had inside the whole.
            excess = len(tokenize(window)) - limit
            if excess <= 0 or size == 1:
                break
            size = max(1, size - excess)
        if window:  # it is empty if all its tokens are parts of one character
            windows.append(window)
        first = after
    return windows


def _next_cut(text: str, tokens: Sequence[Token], first: int, size: int) -> int:
    rest = len(tokens) - first
    if rest <= size:
        return len(tokens)
    share = math.ceil(rest / math.ceil(rest / size))
    candidates = range(first + max(1, share // 2), first + size + 1)
    return max(candidates, key=lambda index: (_boundary(text, tokens, index), -abs(index - first - share)))


def _boundary(text: str, tokens: Sequence[Token], index: int) -> int:
    """Return how good a cut before the token `index` is, from 0 (in a character) to 5 (at a blank line)."""
    before, after = tokens[index - 1], tokens[index]
    if after.start < before.end:
        return 0
    gap = text[before.end : after.start]
    if _BLANK_LINE.search(gap):
        return 5
    if "\n" in gap:
        return 4
    if _SENTENCE_END.search(text, before.start, after.start):
        return 3
    return 2 if after.word != before.word or after.word is None else 1
