"""Fit what was found into the room for it: whole chunks, their pieces, and the pieces of one turn.

Imports nothing heavy: a command that asks the service needs no more than this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from memkit.index.chunk import LEADING_HEADINGS, Chunk
from memkit.text import CHARACTERS_PER_TOKEN

SMALLEST_PIECE = 200
"""The fewest characters of a chunk that are worth showing."""

MOST_JOINED = 2500
"""The most characters of a turn in one result, unless one piece is longer.

On the long messages of BEAM, more finds more evidence among ten results, but less fits into 1,000 tokens.
"""


def fill(chunks: Iterable[tuple[int, Chunk]], tokens: int) -> Iterator[tuple[int, Chunk]]:
    """Yield those of the numbered `chunks`, best first, whose text fits into `tokens` in total.

    Leave out opening headings, which the breadcrumb repeats, and lines that an earlier chunk has. Adjust
    `start_line` and `end_line`. Skip a chunk that does not fit and try shorter ones, but cut the best chunk.
    """
    room = tokens * CHARACTERS_PER_TOKEN
    shown: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
    is_first = True
    for number, chunk in chunks:
        if room < SMALLEST_PIECE and not is_first:
            return
        seen = shown[chunk.source]
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


def joined(pieces: Sequence[tuple[int, Chunk]]) -> Chunk:
    """Return the pieces of a turn, which come best first, as one chunk in the order of the text.

    Each comes with its number in the text. A line with `…` is where text is missing. Leave out pieces beyond
    `MOST_JOINED` characters.
    """
    (_, best), *others = pieces
    room = MOST_JOINED - len(best.content)
    shown = [pieces[0]]
    for number, piece in others:
        room -= len(piece.content)
        if room < 0:
            break
        shown.append((number, piece))
    if len(shown) == 1:
        return best
    shown.sort(key=lambda one: one[0])
    content = shown[0][1].content
    for (number, before), (following, after) in pairwise(shown):
        between = "\n\n" if following == number + 1 else "\n…\n"
        if following == number + 1 and after.start_line == before.end_line:  # pieces of one long line
            between = " "
        content += between + after.content
    return replace(best, content=content, start_line=shown[0][1].start_line, end_line=shown[-1][1].end_line)


def _unseen(chunk: Chunk, seen: set[tuple[int, str]]) -> Chunk | None:
    """Return `chunk` without opening headings and `seen` lines at its ends; None if nothing is left.

    The heading of a turn stays if its prompt stands only there.

    A line is known by number and text: the pieces of one long line share its number.
    """
    # Counted from the end: a chunk lacks the lines that memkit derives, which are above its last line.
    first = chunk.end_line - chunk.content.rstrip("\n").count("\n")
    lines = list(enumerate(chunk.content.split("\n"), first))
    if headings := LEADING_HEADINGS.match(chunk.content):
        shown = headings[0].rstrip("\n") if chunk.has_prompt_in_heading else headings[0]
        del lines[: shown.count("\n")]
    while lines and (not lines[0][1].strip() or lines[0] in seen):
        del lines[0]
    while lines and (not lines[-1][1].strip() or lines[-1] in seen):
        del lines[-1]
    if not lines:
        return None
    content = "\n".join(line for _, line in lines)
    return replace(chunk, content=content, start_line=lines[0][0], end_line=lines[-1][0])


def _cut(chunk: Chunk, characters: int) -> Chunk:
    text = chunk.content[:characters]
    kept = text[: text.rfind("\n") + 1].rstrip()
    if len(kept) < characters // 2:
        kept = text[: text.rfind(" ") + 1].rstrip() or text
    return replace(chunk, content=kept, end_line=chunk.start_line + kept.count("\n"))
