"""Cut a text that exceeds a model's limit into windows that fit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple


class Token(NamedTuple):
    """One token: the characters `start` to `end` of the text, in the word number `word`."""

    start: int
    end: int
    word: int | None


class _Boundary(IntEnum):
    """The place of a cut, from the worst to the best."""

    CHARACTER = 0
    TOKEN = 1
    WORD = 2
    SENTENCE = 3
    LINE = 4
    PARAGRAPH = 5


_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_SENTENCE_END = re.compile(r"[.!?…:;]\s+\Z|[。！？]\s*\Z")

_WORD = re.compile(r"\w+|[^\w\s]")
_PIECE = re.compile(r"[A-Za-z0-9_]{1,2}|\S")
_LAST_OF_TWO_BYTES = "\u07ff"


def rough_tokens(text: str) -> list[Token]:
    """Return tokens for a model whose tokenizer is not available: one per two bytes of UTF-8, without blanks.

    A model nearly always has fewer. A token is about 4 characters of English
    (https://platform.openai.com/tokenizer), 3 of code, 1 or 2 of Chinese. Only long runs of random letters
    and digits can have more.
    """
    tokens: list[Token] = []
    for number, word in enumerate(_WORD.finditer(text)):
        for piece in _PIECE.finditer(text, *word.span()):
            is_short = piece.group() <= _LAST_OF_TWO_BYTES
            tokens += [Token(*piece.span(), number)] * (1 if is_short else 2)
    return tokens


def cut_into_windows(
    text: str, limit: int, tokenize: Callable[[str], Sequence[Token]]
) -> list[str]:
    """Return `text` as windows of at most `limit` tokens each; a text that fits is returned unchanged.

    The windows follow each other without a gap, stripped of blanks, about equally long. A cut is at the best
    boundary (blank line, line end, sentence, word) that keeps the window between half of an equal share and
    `limit`. Among equally good ones it is at the nearest to an equal share.
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
    """Return the index of the first token of the next window."""
    rest = len(tokens) - first
    if rest <= size:
        return len(tokens)
    share = math.ceil(rest / math.ceil(rest / size))
    candidates = range(first + max(1, share // 2), first + size + 1)
    return max(
        candidates,
        key=lambda index: (_boundary(text, tokens, index), -abs(index - first - share)),
    )


def _boundary(text: str, tokens: Sequence[Token], index: int) -> _Boundary:
    """Return the kind of boundary before the token `index`."""
    before, after = tokens[index - 1], tokens[index]
    if after.start < before.end:
        return _Boundary.CHARACTER
    gap = text[before.end : after.start]
    if _BLANK_LINE.search(gap):
        return _Boundary.PARAGRAPH
    if "\n" in gap:
        return _Boundary.LINE
    if _SENTENCE_END.search(text, before.start, after.start):
        return _Boundary.SENTENCE
    if after.word != before.word or after.word is None:
        return _Boundary.WORD
    return _Boundary.TOKEN
