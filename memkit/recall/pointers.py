"""Depth L0: beside a prompt, where in the memory its subject was spoken of before."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from memkit.hook.own_entries import OwnEntries, bullet_words, heading_words
from memkit.index.chunk import OPENING_HEADINGS
from memkit.paths import Home
from memkit.recall.answers import Result, SearchRequest
from memkit.recall.search import Searcher

MOST_POINTERS = 3
MOST_CHARACTERS = 400
HEADING_CHARACTERS = 80

LEAST_RELEVANCE = 0.4
"""Of each pointer. More than a search asks for: nobody asked, and most prompts need no history.

Measured on four conversations of each development set: of questions that the memory answers 93 % got
pointers, of others 0.4 to 3 %, of usual coding prompts ("run the tests") 0 to 7 %.
"""

LEAST_WORDS = 3
"""A prompt of fewer words (`go on`, `yes, please`) says nothing of what it is about."""

_QUOTES = re.compile("[“”„‟″‶〝〞〟＂❝❞«»]")
_OPENING = "Earlier work on this: "
_CLOSING = ". `memkit expand ID` shows an entry."


@dataclass(frozen=True, slots=True)
class Pointer:
    """One remembered entry: its id as shown, its day, and its heading on one line."""

    id: str
    date: str
    heading: str


def find_pointers(
    searcher: Searcher,
    prompt: str,
    session: str,
    shown: Collection[str],
    may_quote: Callable[[Result], bool] = lambda result: True,
) -> list[Pointer]:
    """At most three entries that have to do with `prompt`, best first; for most prompts none.

    Not of the session itself, nor those whose ids were `shown` in it, nor those that `may_quote` denies.
    """
    if len(prompt.split()) < LEAST_WORDS:
        return []
    request = SearchRequest(prompt, k=MOST_POINTERS + len(shown) + 30, minimum=LEAST_RELEVANCE)
    pointers: dict[tuple[str, str], Pointer] = {}
    for result in searcher.answer(request).results:
        if len(pointers) == MOST_POINTERS:
            break
        pointer = _pointer(result)
        is_own = bool(session) and result.chunk.session == session
        if not is_own and pointer.id not in shown and may_quote(result):
            pointers.setdefault((pointer.date, pointer.heading), pointer)
    return list(pointers.values())


def written_by(home: Home) -> Callable[[Result], bool]:
    """Return a function that tells whether this home, or its user, wrote what a pointer would quote.

    It reads the record of a project once.
    """
    records: dict[str, OwnEntries] = {}

    def is_written(result: Result) -> bool:
        if result.root not in records:
            records[result.root] = OwnEntries(home, result.root)
        return _is_written(home, result, records[result.root])

    return is_written


def _is_written(home: Home, result: Result, own: OwnEntries) -> bool:
    """The user's own memory, and what lies outside of the project, no repository brings."""
    chunk = result.chunk
    if result.root == home.root or os.path.isabs(chunk.source):
        return True
    if not chunk.citations:
        return bool(chunk.heading) and heading_words(chunk.heading) in own
    lines = OPENING_HEADINGS.sub("", chunk.content).splitlines()
    return all(bullet_words(line) in own for line in lines if line.strip())


def lay_out(pointers: Sequence[Pointer]) -> str:
    """The pointers as a statement of facts, at most `MOST_CHARACTERS` long; empty for none."""
    text = ""
    room = MOST_CHARACTERS - len(_OPENING) - len(_CLOSING)
    for pointer in pointers:
        named = f"{pointer.date} “{pointer.heading}” ({pointer.id})".strip()
        addition = f"; {named}" if text else named
        if len(text) + len(addition) > room:
            break
        text += addition
    return f"{_OPENING}{text}{_CLOSING}" if text else ""


def _pointer(result: Result) -> Pointer:
    chunk = result.chunk
    heading = chunk.heading or chunk.content
    if chunk.citations:  # a bullet says more than the heading of its session
        heading = OPENING_HEADINGS.sub("", chunk.content).removeprefix("- ")
    # It may be a stranger's text: one line, no control characters, nothing that ends the quotation.
    plain = "".join(letter if letter.isprintable() else " " for letter in heading)
    plain = " ".join(_QUOTES.sub('"', plain).split())
    if len(plain) > HEADING_CHARACTERS:
        plain = plain[: HEADING_CHARACTERS - 1].rstrip() + "…"
    return Pointer(result.id, chunk.date, plain)
