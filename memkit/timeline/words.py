"""The words of a turn, and those that set a stretch of time apart from the rest of the memory."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memkit.index.tokens import Tokenizer

LEAST_TURNS = 2
"""A word of one turn characterizes that turn, not a stretch of several."""

_LONGEST, _SHORTEST = 40, 3
_AROUND = ".,;:!?…()[]{}<>\"'`“”‘’«»*_|→·—–-=~#/\\"
_NAME = re.compile(r"[^\W\d_]")
_FEW_LETTERS = 0.4
_UNSPACED = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7fb]")


def words_of(text: str) -> set[str]:
    """Return the words of a text that may name its subject, in lowercase; a name in code keeps its case.

    Of Chinese and Japanese, which have no spaces, return pairs of characters.
    """
    found: set[str] = set()
    for word in text.split():
        found.update(_terms(word))
    return found


@lru_cache(32_768)
def _terms(raw: str) -> tuple[str, ...]:
    from memkit.index.subject import subject_of
    from memkit.index.tokens import STOP_WORDS

    word = raw.strip(_AROUND)
    if not _SHORTEST <= len(word) <= _LONGEST and not _UNSPACED.search(word):
        return ()
    if _UNSPACED.search(word):
        return tuple(one for one in _tokenizer().tokenize(word) if _UNSPACED.search(one))
    letters = len(_NAME.findall(word))
    if letters < len(word) * _FEW_LETTERS or word.casefold() in STOP_WORDS["english"]:
        return ()
    if not subject_of(word):
        return ()
    is_name = any(not letter.isalpha() for letter in word) or word[1:] != word[1:].lower()
    return (word if is_name else word.casefold(),)


@lru_cache(1)
def _tokenizer() -> Tokenizer:
    from memkit.index.tokens import Tokenizer

    return Tokenizer()


def telling(
    words: Mapping[str, int], turns: int, all_words: Mapping[str, int], all_turns: int, most: int
) -> list[str]:
    """Return the words of some turns that set them apart from all others, the most telling first.

    `words` and `all_words` count the turns that have a word; `turns` and `all_turns` are the numbers of all
    turns. The measure is the log-likelihood ratio of the two counts (Rayson and Garside 2000, "Comparing
    corpora using frequency profiling"). Where there are no other turns, the most frequent words come first.
    """
    others = all_turns - turns
    scores: dict[str, float] = {}
    for word, count in words.items():
        if count < min(LEAST_TURNS, turns):
            continue
        elsewhere = max(0, all_words.get(word, 0) - count)
        if others <= 0:
            scores[word] = count
        elif count * others > elsewhere * turns:
            share = (count + elsewhere) / all_turns
            score = count * math.log(count / (turns * share))
            if elsewhere:
                score += elsewhere * math.log(elsewhere / (others * share))
            scores[word] = score
    return sorted(scores, key=lambda word: (-scores[word], word))[:most]
