"""Depth L0, pointers: where the memory mentions the subject of a prompt, in one line next to it."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from memkit.hook.entries import OwnEntries, bullet_words, heading_words
from memkit.index.chunk import LEADING_HEADINGS
from memkit.paths import Home
from memkit.recall.results import Result, SearchRequest
from memkit.recall.search import Searcher
from memkit.text import one_line

MOST_POINTERS = 3
MOST_CHARACTERS = 400
HEADING_CHARACTERS = 80

LEAST_RELEVANCE = 0.4
"""Lowest relevance of a pointer. Higher than for a search: the user did not ask for pointers.

Measured on four conversations of each development set: 93 % of the questions that the memory answers got
pointers, 0.4 to 3 % of the others, and 0 to 7 % of usual coding prompts ("run the tests").
"""

LEAST_WORDS = 3
"""A shorter prompt ("go on", "yes, please") does not name a subject."""

_QUOTES = re.compile("[“”„‟″‶〝〞〟＂❝❞«»]")
_OPENING = "Earlier work on this: "
_CLOSING = ". `memkit expand ID` shows an entry."


@dataclass(frozen=True, slots=True)
class Pointer:
    """One remembered entry: its short id, its day, its heading on one line, and whether it still holds."""

    id: str
    date: str
    heading: str
    is_superseded: bool = False


def find_pointers(
    searcher: Searcher,
    prompt: str,
    session: str,
    shown: Collection[str],
    may_quote: Callable[[Result], bool] = lambda result: True,
) -> list[Pointer]:
    """Return at most three entries on the subject of `prompt`, best first; for most prompts none.

    Leave out entries of `session` itself, ids in `shown`, and results that `may_quote` rejects.
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
        ids = {pointer.id, *(one["id"] for one in result.merged)}
        if not is_own and ids.isdisjoint(shown) and may_quote(result):
            pointers.setdefault((pointer.date, pointer.heading), pointer)
    return list(pointers.values())


def written_by(home: Home) -> Callable[[Result], bool]:
    """Return a function that checks whether this home, or its user, wrote what a pointer would quote.

    It reads the record of a project once.
    """
    record = functools.cache(lambda root: OwnEntries(home, root))

    def is_written(result: Result) -> bool:
        chunk = result.chunk
        if result.root == home.root or os.path.isabs(chunk.source):
            return True  # no repository brings the user's memory, or a file outside of the project
        own = record(result.root)
        if not chunk.citations:
            return bool(chunk.heading) and heading_words(chunk.heading) in own
        lines = LEADING_HEADINGS.sub("", chunk.content).splitlines()
        return all(bullet_words(line) in own for line in lines if line.strip())

    return is_written


def lay_out(pointers: Sequence[Pointer]) -> str:
    """Return the pointers as one statement of at most `MOST_CHARACTERS`, or "" if there are none."""
    text = ""
    room = MOST_CHARACTERS - len(_OPENING) - len(_CLOSING)
    for pointer in pointers:
        mark = ", superseded" if pointer.is_superseded else ""
        named = f"{pointer.date} “{pointer.heading}” ({pointer.id}{mark})".strip()
        addition = f"; {named}" if text else named
        if len(text) + len(addition) > room:
            break
        text += addition
    return f"{_OPENING}{text}{_CLOSING}" if text else ""


def _pointer(result: Result) -> Pointer:
    chunk = result.chunk
    heading = chunk.heading or chunk.content
    if chunk.citations:  # a bullet tells more than the heading of its session
        heading = LEADING_HEADINGS.sub("", chunk.content).removeprefix("- ")
    # A stranger may have written it: no control characters, and nothing that ends the quotation.
    plain = "".join(letter if letter.isprintable() else " " for letter in heading)
    shown = one_line(_QUOTES.sub('"', plain), HEADING_CHARACTERS)
    return Pointer(result.id, chunk.date, shown, bool(result.mark))
