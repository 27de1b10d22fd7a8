"""Filling a budget of tokens with the best text, nothing in it twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from memkit.index.chunk import OPENING_HEADINGS, Chunk
from memkit.text import CHARACTERS_PER_TOKEN

SMALLEST_PIECE = 200
"""Characters: less of a chunk than that is not worth showing."""


def fill(chunks: Iterable[tuple[int, Chunk]], tokens: int) -> Iterator[tuple[int, Chunk]]:
    """Of `chunks`, best first and numbered, those whose text fits into `tokens` together.

    Their content comes without the headings that open it, which the breadcrumb has, and without
    lines that an earlier one brought; `start_line` and `end_line` follow. One that does not fit is
    passed over for a shorter one, except that the best is cut rather than left out.
    """
    room = tokens * CHARACTERS_PER_TOKEN
    shown: dict[str, set[tuple[int, str]]] = {}
    is_first = True
    for number, chunk in chunks:
        if room < SMALLEST_PIECE and not is_first:
            return
        seen = shown.setdefault(chunk.source, set())
        piece = _unseen(chunk, seen)
        if piece is None:
            continue
        if len(piece.content) > room:
            if not is_first:
                continue
            piece = _cut(piece, room)
        is_first = False
        room -= len(piece.content)
        seen.update(enumerate(piece.content.split("\n"), piece.start_line))
        yield number, piece


def _unseen(chunk: Chunk, seen: set[tuple[int, str]]) -> Chunk | None:
    """`chunk` without its opening headings and lines seen before; None if nothing is left.

    Lines are known by number and text: the pieces of a long line have its number in common.
    """
    lines = chunk.content.split("\n")
    headings = OPENING_HEADINGS.match(chunk.content)
    first = headings[0].count("\n") if headings else 0
    last = len(lines)

    def is_known(place: int) -> bool:
        return not lines[place].strip() or (chunk.start_line + place, lines[place]) in seen

    while first < last and is_known(first):
        first += 1
    while first < last and is_known(last - 1):
        last -= 1
    if first == last:
        return None
    return replace(
        chunk,
        content="\n".join(lines[first:last]),
        start_line=chunk.start_line + first,
        end_line=chunk.start_line + last - 1,
    )


def _cut(chunk: Chunk, characters: int) -> Chunk:
    """`chunk` cut behind a line, or a word if that keeps much more, to at most `characters`."""
    text = chunk.content[:characters]
    kept = text[: text.rfind("\n") + 1].rstrip()
    if len(kept) < characters // 2:
        kept = text[: text.rfind(" ") + 1].rstrip() or text
    return replace(chunk, content=kept, end_line=chunk.start_line + kept.count("\n"))

