"""Turn text into the terms of lexical search: words, identifiers whole and in parts, CJK bigrams.

Documents and queries go through the same `Tokenizer`, so a term is found however it was written:
`policycontroller`, `policy`, and `controller` all find `PolicyController`.
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from itertools import chain, pairwise

import snowballstemmer

from memkit.errors import ConfigError
from memkit.subject import STOP_WORDS

VERSION = 1
"""Raise it with every change of what `tokenize` returns: indexes of another version are stale."""

PART_WEIGHT = -2 / 3
"""In a question, each of a name's n terms weighs n to this power: together they are worth n^(1/3) words.

At full weight, `ecommerce-api` counts three times, and "which logger does ecommerce-api use" finds what
introduces ecommerce-api. Of the powers 0, -1/2, -2/3, -3/4, and -1, this one helps coding chats and costs
the others nothing (`docs/benchmarks.md`).
"""

LONGEST_TERM = 100
"""Longer runs, in characters, are data such as base64 or minified code. They are dropped."""

_CACHED_LEXEMES = 32_768

_ENGLISH_ASKING = """
    across brought bring chat chats conversation conversations discuss discussed discussing
    discussion discussions mention mentioned mentions please recall remember remind summarise
    summarize summary tell throughout walk
"""

ASKING_WORDS = {"english": frozenset(_ENGLISH_ASKING.split())}
"""Words about asking and not about the subject ("remind me what we discussed about …").

They are dropped from questions that have other words, never from documents.
"""

_QUOTES = "\"'`“”‘’«»"

# `\w` lacks combining marks, which are parts of words in Hindi, Tamil, Thai, pointed Hebrew, …
_MARKS = "".join(
    chr(code) for code in range(0x300, 0x1E00) if unicodedata.category(chr(code)).startswith("M")
)
_LETTER = rf"[^\W\d_{_MARKS}]"
_CJK = re.compile(
    "([\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb"
    "\uf900-\ufaff\U00020000-\U0003ffff]+)"
)

# A number with thousands separators, or words joined by single connectors: a path, a dotted or
# hyphenated name, `std::vector`, `host:port`. No alternative can match in two ways, so the time is
# linear in the text.
_LEXEME = r"\d{{1,3}}(?:,\d{{3}})+(?!\d)|{word}+(?:(?:::|[./\\:@'’-]){word}+)*"
_ASCII_LEXEME = re.compile(_LEXEME.format(word=r"\w"), re.ASCII)
_UNICODE_LEXEME = re.compile(_LEXEME.format(word=rf"[\w{_MARKS}]"))
_PLAIN_WORD = re.compile(rf"[\w{_MARKS}]+")
_START = 3  # letters that stemming keeps

# From the outside in: `src/app.py:12`, then `src/app.py`, `app.py`, `app`. Dots between digits
# stay: the parts of a version, a decimal, or an address mean nothing alone.
_SEPARATORS = [re.compile(p) for p in (r"[:@]+", r"[/\\]", r"(?<!\d)\.|\.(?!\d)", r"[-_]+")]
_APOSTROPHE = re.compile("['’]")
_IDENTIFIER = re.compile(r"[\d./\\:@_-]")

# Matches the shape of a name, see `_humps`: `HTML5`, `URLs`, `HTTP` before `Server`, `Server`.
_HUMP = re.compile(r"A+s?0+|A+s?(?![as])|A?[as]+0*|0+")
_LETTERS_NUMBER = re.compile(rf"(v|{_LETTER}{{2,}})(\d[\d.]*)")
_NUMBER_UNIT = re.compile(rf"(\d[\d.]*)({_LETTER}{{1,4}})")

# Canonical ordering of combining marks is quadratic in the length of a run of them. No language has
# more than 30 in a row (Unicode Standard Annex 15, section 13, Stream-Safe Text Format).
_ENDLESS_MARKS = re.compile(r"([^\w\s\x00-\x7f]{30})[^\w\s\x00-\x7f]+")


@lru_cache(maxsize=4)
def tokenizer_of(language: str) -> Tokenizer:
    """Return the tokenizer of a language, whose caches all share. Raise `ConfigError`."""
    return Tokenizer(language)


class Tokenizer:
    """Turns text into terms. `language` is a Snowball algorithm, such as `english` or `german`.

    Raise `ConfigError` for a language that Snowball does not know. Safe to share between threads.
    """

    def __init__(self, language: str = "english") -> None:
        try:
            self._stemmer = snowballstemmer.stemmer(language)
        except KeyError:
            known = ", ".join(sorted(snowballstemmer.algorithms()))
            raise ConfigError(f"No stemmer for the language {language!r}: choose one of {known}.") from None
        self.language = language
        self._stop_words = STOP_WORDS.get(language, frozenset())
        self._stemmer_lock = threading.Lock()  # a Snowball stemmer keeps its word as state
        self._stem = lru_cache(_CACHED_LEXEMES)(self._stem_word)
        self._cached_terms = lru_cache(_CACHED_LEXEMES)(self._terms)
        self._asking_words = ASKING_WORDS.get(language, frozenset())

    @property
    def signature(self) -> str:
        """Everything the terms depend on besides the text; equal signatures mean equal terms."""
        # snowballstemmer uses PyStemmer where that is installed.
        package = "PyStemmer" if type(self._stemmer).__module__ == "Stemmer" else "snowballstemmer"
        return (
            f"memkit {VERSION}, {self.language}, {package} {metadata.version(package)}, "
            f"Unicode {unicodedata.unidata_version}"
        )

    def tokenize(self, text: str) -> list[str]:
        """Return the terms of `text` in order, repeated as often as they occur.

        An identifier gives itself and its parts, each once. Terms are NFKC and case-folded, natural
        words are stemmed, and stop words are dropped. The time is linear in the length of `text`.
        """
        return list(chain.from_iterable(self._groups(text, frozenset())))

    def question(self, text: str) -> dict[str, float]:
        """Return the terms of a question with their weights, in order.

        Leave out `ASKING_WORDS` if other words are left. A word weighs 1 each time, the terms of a name
        less, see `PART_WEIGHT`.
        """
        # Whole words, not stems: "reminder" and "conversion" have the same stems as some of them.
        groups = list(self._groups(text, self._asking_words)) or self._groups(text, frozenset())
        weights: dict[str, list[float]] = {}
        for terms in groups:
            for term in terms:
                weights.setdefault(term, []).append(len(terms) ** PART_WEIGHT)
        # `fsum` is exact: the order of the words makes no difference.
        return {term: math.fsum(found) for term, found in weights.items()}

    def pairs(self, text: str, like: str = "") -> Iterator[tuple[str, str]]:
        """Yield the stems of each two plain words that follow each other; stop words are left out.

        With `like`, words that begin as none of its words does are "": stemming them all takes long.
        """
        starts = {word[:_START] for word in _PLAIN_WORD.findall((like or text).lower())}
        words = (word for word in _PLAIN_WORD.findall(text.lower()) if word not in self._stop_words)
        return pairwise(self._stem(word) if word[:_START] in starts else "" for word in words)

    def identifier(self, text: str) -> str | None:
        """Return the one term for all of `text` if it is one name, maybe quoted or called; else None."""
        name = text.strip().strip(_QUOTES).removesuffix("()")
        if not name.isascii():
            name = unicodedata.normalize("NFKC", name)
        lexemes = _UNICODE_LEXEME.findall(name)
        if len(lexemes) != 1 or lexemes[0].strip("_") != name.strip("_") or _CJK.search(name):
            return None
        return next(self._term(name.strip("_")), None)

    def _groups(self, text: str, dropped: frozenset[str]) -> Iterator[tuple[str, ...]]:
        if text.isascii():
            yield from self._words(_ASCII_LEXEME.findall(text), dropped)
            return
        text = unicodedata.normalize("NFKC", _ENDLESS_MARKS.sub(r"\1", text))
        for position, run in enumerate(_CJK.split(text)):
            if position % 2:  # what the pattern's group captured
                yield from ((run[i : i + 2],) for i in range(max(1, len(run) - 1)))
            else:
                yield from self._words(_UNICODE_LEXEME.findall(run), dropped)

    def _words(self, lexemes: list[str], dropped: frozenset[str]) -> Iterator[tuple[str, ...]]:
        if dropped:
            lexemes = [lexeme for lexeme in lexemes if lexeme.strip("_").lower() not in dropped]
        # Long lexemes are rare and would fill the cache.
        terms_of = (
            self._cached_terms(lexeme) if len(lexeme) <= LONGEST_TERM else self._terms(lexeme)
            for lexeme in lexemes
        )
        return filter(None, terms_of)

    def _terms(self, lexeme: str) -> tuple[str, ...]:
        if lexeme.lower().endswith(("n't", "n’t")):  # don't, can't: function words all
            return ()
        words = _APOSTROPHE.split(lexeme.replace(",", ""))
        if len(words) > 1:  # what's, l'homme, O'Brien
            words = [word for word in words if not _is_letter(word)]
        found = chain.from_iterable(self._parts(word, 0) for word in words)
        return tuple(dict.fromkeys(found))

    def _parts(self, name: str, level: int) -> Iterator[str]:
        name = name.strip("_")
        yield from self._term(name)
        for deeper in range(level, len(_SEPARATORS)):
            parts = _SEPARATORS[deeper].split(name)
            if len(parts) > 1:
                for part in parts:
                    if not _is_letter(part):
                        yield from self._parts(part, deeper + 1)
                return
        if len(name) > LONGEST_TERM:
            return
        for hump in _humps(name):
            if _is_letter(hump):
                continue
            if hump != name:
                yield from self._term(hump)
            number = _LETTERS_NUMBER.fullmatch(hump) or _NUMBER_UNIT.fullmatch(hump)
            if number:
                for part in number.groups():
                    if not _is_letter(part):
                        yield from self._term(part)

    def _term(self, name: str) -> Iterator[str]:
        term = _fold(name)
        if 0 < len(term) <= LONGEST_TERM and term not in self._stop_words:
            yield term if _IDENTIFIER.search(term) else self._stem(term)

    def _stem_word(self, word: str) -> str:
        with self._stemmer_lock:
            return str(self._stemmer.stemWord(word))


def _is_letter(part: str) -> bool:
    return len(part) == 1 and not part.isdigit()


def _fold(word: str) -> str:
    """Return `word` in toNFKC_Casefold (Unicode 3.13)."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word.casefold()).casefold())


def _humps(name: str) -> list[str]:
    """Split `PolicyController` into `Policy` and `Controller`; a name in one case is one hump."""
    if name in (name.lower(), name.upper()) or name[1:].islower():
        return [name]
    shape = "".join("A" if c.isupper() else "0" if c.isdigit() else "s" if c == "s" else "a" for c in name)
    return [name[match.start() : match.end()] for match in _HUMP.finditer(shape)]
