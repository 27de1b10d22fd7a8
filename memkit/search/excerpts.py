"""Excerpts: the two lines that a person reads of a result.

The first is the title. The second is the sentence with the most words of the question that the title lacks,
rare words first, or what came of the turn if that has as many of them. A sentence of an answer comes before
those of its prompt, and these before the lines of its tool calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from memkit.bullets import bullet_words
from memkit.hook.entries import heading_words
from memkit.hook.phrases import EMOJI, sentences
from memkit.index.chunk import BULLETS, LABEL, LEADING_HEADINGS, Chunk
from memkit.index.lexical import LexicalIndex
from memkit.journal import sessions
from memkit.journal.turn_parts import read_parts
from memkit.search.results import Excerpt
from memkit.text import one_line

_TIME = re.compile(r"(\d\d:\d\d) +(.*)")
_WORD = re.compile(r"\w+")
_MOST_WORDS = 50

_outcome = lru_cache(256)(sessions.outcome_of)  # whoever types a question gets the same turns at each key


def make_excerpt(chunk: Chunk, outcome: str, lexical: LexicalIndex, question: str) -> Excerpt:
    """Return the excerpt of `chunk` for `question`; `lexical` is the index that has the chunk."""
    weights = lexical.rarities(question)

    def found(text: str) -> set[str]:
        return weights.keys() & lexical.terms(text)

    time, title = _timed(chunk.heading)
    parts = list(_parts(chunk)) if chunk.kind == "turn" else [chunk.content]
    lines = list(dict.fromkeys(line for part in parts for line in sentences_of(part)))
    if chunk.kind in BULLETS and lines:
        title, lines = max(lines, key=lambda line: sum(weights[term] for term in found(line))), []
    known = found(title)

    def gain(text: str) -> float:
        return sum(weights[term] for term in found(text) - known)

    best = (
        max(sentences_of(part), key=lambda line: (gain(line), not line.endswith(":")), default="")
        for part in parts if lines
    )  # fmt: skip
    match = next(filter(gain, best), lines[0] if lines else "")
    if not outcome and not gain(match):  # show how the text begins
        begun = title.rstrip(" .…")
        match = next((one for one in lines if begun not in one and one.rstrip(" .…") not in begun), "")
    elif gain(match) <= gain(outcome):
        match = ""
    words = dict.fromkeys(_WORD.findall(f"{title} {match} {outcome}".lower()))
    matching = [word for word in words if found(word)]
    return Excerpt(time, title, match, outcome, tuple(matching[:_MOST_WORDS]), _session_title(chunk))


def _parts(chunk: Chunk) -> Iterator[str]:
    """Yield the answer of a turn, its prompt, and its tool calls."""
    text = chunk.content
    found = read_parts(text if text.startswith("#") else f"#\n{text}")
    yield found.answer
    yield found.prompt
    yield "\n".join(found.tools)


def outcome_of(section: str, bullet: Chunk | None) -> str:
    """Return what came of a turn: its `bullet`, else what its `section` in the day file tells."""
    if bullet is not None:
        return bullet_words(LEADING_HEADINGS.sub("", bullet.content))
    return _outcome(section)


def _timed(heading: str) -> tuple[str, str]:
    """Return the time at the start of a heading, or "", and the rest without emphasis and emoji."""
    line = one_line(EMOJI.sub("", heading_words(heading).replace("**", "")))
    timed = _TIME.fullmatch(line)
    return (timed[1], timed[2]) if timed else ("", line)


def _session_title(chunk: Chunk) -> str:
    opening = chunk.breadcrumb.removeprefix(chunk.date)
    if chunk.kind == "turn":
        opening = opening.removesuffix(chunk.heading)
    return _timed(opening.strip("> "))[1]


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of an entry, without its headings and labels."""
    for line in LABEL.sub("", LEADING_HEADINGS.sub("", text)).split("\n"):
        yield from sentences(line.lstrip("\\ "))
