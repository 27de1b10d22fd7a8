"""Cutting a text that is longer than a model reads into windows that it reads whole."""

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


class _Bound(IntEnum):
    """What a cut would part, from the worst to the best."""

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
    """Tokens for a model whose tokenizer is not here: one for two bytes of UTF-8, blanks left out.

    That is nearly always more than it has: about 4 characters of English make a token
    (https://platform.openai.com/tokenizer), 3 of code, 1 or 2 of Chinese. Only where nothing but
    random letters and digits stand can it be fewer.
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
    """`text` as windows of at most `limit` tokens each; a text that fits is returned as it is.

    The windows follow each other without a gap, stripped of blanks, about equally long: a cut
    falls on the best bound (blank line, line end, sentence, word) that keeps the window between
    half of an equal share and `limit`, the nearest to an equal share among equally good ones.
    """
    tokens = tokenize(text)
    if len(tokens) <= limit:
        return [text]
    windows = []
    first = 0
    while first < len(tokens):
        room = limit
        while True:
            after = _next_cut(text, tokens, first, room)
            begin = tokens[first].start if first else 0
            end = tokens[after].start if after < len(tokens) else len(text)
            window = text[begin:end].strip()
            # A piece can come to more tokens than it had inside the whole.
            excess = len(tokenize(window)) - limit
            if excess <= 0 or room == 1:
                break
            room = max(1, room - excess)
        if window:  # else all its tokens stand for a part of one character
            windows.append(window)
        first = after
    return windows


def _next_cut(text: str, tokens: Sequence[Token], first: int, room: int) -> int:
    """The index of the token that begins the window after the one beginning with `first`."""
    rest = len(tokens) - first
    if rest <= room:
        return len(tokens)
    share = math.ceil(rest / math.ceil(rest / room))
    candidates = range(first + max(1, share // 2), first + room + 1)
    return max(
        candidates,
        key=lambda index: (_bound(text, tokens, index), -abs(index - first - share)),
    )


def _bound(text: str, tokens: Sequence[Token], index: int) -> _Bound:
    """What a cut before the token `index` would part."""
    before, after = tokens[index - 1], tokens[index]
    if after.start < before.end:
        return _Bound.CHARACTER
    gap = text[before.end : after.start]
    if _BLANK_LINE.search(gap):
        return _Bound.PARAGRAPH
    if "\n" in gap:
        return _Bound.LINE
    if _SENTENCE_END.search(text, before.start, after.start):
        return _Bound.SENTENCE
    if after.word != before.word or after.word is None:
        return _Bound.WORD
    return _Bound.TOKEN
