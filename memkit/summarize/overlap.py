"""Decide by wording whether one fact may replace another.

A model names the facts that its new fact replaces. It can be wrong, and the text that it reads can be
hostile. So a fact may only replace what it is about itself:

    old                           new                                      may replace
    The gateway listens on 7443.  The staging gateway listens on 7443.     yes: same words and number
    The gateway listens on 7443.  The gateway listens on 7444.             yes: same words, another number
    Tests run with `bin/test`.    Tests run with `bin/test`, types with `mypy`.  yes: joined
    It listens on 7443, because A.  It listens on 7444, because B.         yes: the reason may change
    The gateway listens on 7443.  The work on the gateway goes on.         no: one word of two, no number
    Anna wants tabs of 4.         Anna wants reviews within 2 days.        no: the number is another thing's
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Collection

from memkit.index.tokens import Tokenizer
from memkit.summarize.checks import claims

SHARE = 0.6
"""The least share of an old fact's words that a new one has. Half is too few: many facts have two words."""

CORRECTION_SHARE = 0.75
"""The same for a new fact with other names and numbers. It must be about exactly the same thing."""

OWN_SHARE = 0.5
"""The least share of a correction's words that are in the old fact. A list of many things corrects none."""

_LONGEST_FUNCTION_WORD = 3
"""A word of two or three small letters says little in most languages: der, mit, les, est."""

_SHORTEST_STEM = 4

_REASON = re.compile(r",?\s(?:because|due to|so that|weil|damit|parce que|porque)\s", re.IGNORECASE)

_IN_EVERY_FACT = frozenset({"person", "user", "project"})
"""Words that many facts share: "The person prefers …"."""


def may_replace(new: str, old: str) -> bool:
    """Return whether the fact `new` overlaps with `old` enough to replace it, with or without the reasons."""
    return _overlaps(new, old) or _overlaps(_statement(new), _statement(old))


def _statement(text: str) -> str:
    return _REASON.split(text, maxsplit=1)[0]


def _overlaps(new: str, old: str) -> bool:
    values, own_values = _values(old), _values(new)
    terms = set(_tokenizer().tokenize(new))
    is_shared = any(parts <= terms for parts in values)
    words = _words(old)
    if not words:
        return is_shared
    share = _share(words, terms)
    if is_shared or not values:
        return share >= SHARE
    own_share = _share(_words(new), words)
    return bool(own_values) and share >= CORRECTION_SHARE and own_share >= OWN_SHARE


def is_about(text: str, fact: str) -> bool:
    """Return whether the longer `text` has at least half of the words of `fact`."""
    words = _words(fact)
    return bool(words) and _share(words, set(_tokenizer().tokenize(text))) >= OWN_SHARE


def contradicts(new: str, old: str) -> bool:
    """Return whether `new` lacks a name or number of `old` and has another one instead."""
    terms, old_terms = (set(_tokenizer().tokenize(text)) for text in (new, old))
    is_lost = any(not parts <= terms for parts in _values(old))
    return is_lost and any(not parts <= old_terms for parts in _values(new))


@functools.cache
def _tokenizer() -> Tokenizer:
    return Tokenizer()


def _values(text: str) -> list[set[str]]:
    found = (set(_tokenizer().tokenize(value)) for value in claims(text))
    return [terms for terms in found if terms]


def _words(text: str) -> set[str]:
    for value in sorted(claims(text), key=len, reverse=True):
        text = text.replace(value, " ")
    text = text[:1].lower() + text[1:]
    terms = _tokenizer().tokenize(" ".join(filter(_says_something, text.split())))
    return set(terms) - _IN_EVERY_FACT


def _says_something(word: str) -> bool:
    bare = word.strip(string.punctuation)
    return not (bare.islower() and 1 < len(bare) <= _LONGEST_FUNCTION_WORD)


def _share(words: Collection[str], terms: Collection[str]) -> float:
    if not words:
        return 0.0
    return sum(any(_is_same(word, term) for term in terms) for word in words) / len(words)


def _is_same(one: str, other: str) -> bool:
    """Return whether two words differ in their last letters only: the stemmer knows only English."""
    shared = max(_SHORTEST_STEM, min(len(one), len(other)) - 1)
    return one == other or (one.isalpha() and other.isalpha() and one[:shared] == other[:shared])
