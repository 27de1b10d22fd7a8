"""Packs the blocks of a section into pieces of bounded size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from memkit.errors import ConfigError
from memkit.index.blocks import TEXT, Document, Span

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_NEWLINE = re.compile(r"\n")
_JOINED = "paragraph and fence"


@dataclass(frozen=True)
class ChunkOptions:
    """How large chunks are.

    Attributes:
        max_characters: most characters of a chunk's content. Only uncut code may exceed it, with
            the fragment that would otherwise stand alone.
        min_characters: text below this is a fragment and joins its neighbour.
        overlap_lines: lines that a piece of a longer section repeats from the piece before it.

    Raises `ConfigError` if `min_characters` is more than a quarter of `max_characters`: then a
    fragment and the half of a full chunk might not make one.
    """

    max_characters: int = 1500
    min_characters: int = 100
    overlap_lines: int = 2

    def __post_init__(self) -> None:
        if 4 * self.min_characters > self.max_characters:
            raise ConfigError(
                f"chunking.min_characters = {self.min_characters} is more than a quarter of"
                f" chunking.max_characters = {self.max_characters}: lower it or raise the other"
            )


@dataclass
class Piece:
    """Neighbouring spans that become one chunk.

    `start` is before the first span if the piece repeats lines of the piece before it.
    """

    start: int
    spans: list[Span]

    @property
    def own_start(self) -> int:
        """Where the text begins that the piece before does not have."""
        return self.spans[0].start

    @property
    def end(self) -> int:
        """Offset after the last character."""
        return self.spans[-1].end

    @property
    def own_size(self) -> int:
        """Characters without the overlap."""
        return self.end - self.own_start


class Packer:
    """Packs spans of one document."""

    def __init__(self, document: Document, options: ChunkOptions) -> None:
        self._document = document
        self._options = options

    def pack(self, spans: Sequence[Span]) -> list[Piece]:
        """The pieces that hold `spans`, in order: as few cuts as the limit allows, at block bounds.

        A block that does not fit into a piece of its own is cut at the bounds of what it holds:
        items, nested blocks, blank lines, lines, and a line longer than the limit between words.
        Fenced code is never cut.
        """
        limit, minimum = self._options.max_characters, self._options.min_characters
        pieces: list[Piece] = []
        waiting = self._join_fences(spans)[::-1]
        while waiting:
            span = waiting.pop()
            room = limit
            if pieces:
                piece = pieces[-1]
                short = piece.own_size < minimum
                if short and span.end - piece.start > limit:
                    piece.start = piece.own_start
                if span.end - piece.start <= limit:
                    piece.spans.append(span)
                    continue
                left = limit - (span.start - piece.own_start)
                if short and left >= minimum:
                    room = left
            parts = self._divide(span, room)
            if len(parts) > 1:
                waiting.extend(reversed(parts))
            elif pieces and short and span.kind == "fence":
                piece.spans.append(span)
            else:
                pieces.append(Piece(self._overlap(pieces, span), [span]))
        return self._without_short_end(pieces)

    def _without_short_end(self, pieces: list[Piece]) -> list[Piece]:
        """`pieces`, the last of them no fragment where that can be had."""
        limit, minimum = self._options.max_characters, self._options.min_characters
        if len(pieces) < 2 or pieces[-1].own_size >= minimum:
            return pieces
        *others, before, last = pieces
        whole = Piece(before.own_start, before.spans + last.spans)
        if whole.own_size <= limit:
            return [*others, whole]
        halves = [part for span in before.spans for part in self._divide(span, limit // 2)]
        for spans in (before.spans, halves):
            for cut in range(len(spans) - 1, 0, -1):
                head = Piece(before.start, spans[:cut])
                tail = Piece(spans[cut].start, spans[cut:] + last.spans)
                if minimum <= tail.own_size <= limit and minimum <= head.own_size:
                    tail.start = self._overlap([head], tail.spans[0])
                    return [*others, head, tail]
        return [*others, whole] if _ends_in_code(before.spans[-1]) else pieces

    def _overlap(self, pieces: Sequence[Piece], span: Span) -> int:
        """Where a piece starts that begins with `span`: some lines of text before it, if they fit.

        Headings are not repeated, the breadcrumb has them; of code, HTML and front matter the
        last lines say nothing; and lines that fill half a chunk would only be found twice.
        """
        document, options = self._document, self._options
        start = span.start
        line = document.line_at(start)
        if not pieces or document.line_starts[line] < start:
            return start
        missing = options.overlap_lines
        while missing and line > 0:
            line -= 1
            at = document.line_starts[line]
            if (
                document.line_kinds[line] != TEXT
                or at <= pieces[-1].own_start
                or span.start - at > options.max_characters // 2
                or span.end - at > options.max_characters
            ):
                break
            if not document.is_blank(line):
                start = at
                missing -= 1
        return start

    def _join_fences(self, spans: Iterable[Span]) -> list[Span]:
        """Each fence as one span with the paragraph before it, where the two fit into a piece."""
        joined: list[Span] = []
        for span in spans:
            before = joined[-1] if joined else span
            if (
                (before.kind, span.kind) == ("paragraph", "fence")
                and span.end - before.start <= self._options.max_characters
            ):
                joined[-1] = Span(before.start, span.end, _JOINED, (before, span))
            else:
                joined.append(span)
        return joined

    def _divide(self, span: Span, limit: int) -> list[Span]:
        """`span` in parts of at most `limit` characters; uncut code may be larger."""
        if span.size <= limit or span.kind == "fence":
            return [span]
        children = self._children(span)
        if len(children) == 1 and not span.children:
            return self._divide_line(span, limit)
        joined = children if span.kind == _JOINED else self._join_fences(children)
        return [part for child in joined for part in self._divide(child, limit)]

    def _children(self, span: Span) -> list[Span]:
        """The next smaller bounds: nested blocks, else stanzas, else lines."""
        if span.children:
            return self._document.tile(span.children, span.start, span.end)
        body = self._document.body
        for bound in (_BLANK_LINES, _NEWLINE):
            cuts = [Span(m.end(), m.end()) for m in bound.finditer(body, span.start, span.end)]
            if cuts:
                first = Span(span.start, span.start)
                return self._document.tile([first, *cuts], span.start, span.end)
        return [span]

    def _divide_line(self, span: Span, limit: int) -> list[Span]:
        """A line in parts of like length, between words where there are any."""
        body = self._document.body
        parts: list[Span] = []
        start = span.start
        while start < span.end:
            rest = span.end - start
            size = ceil(rest / ceil(rest / limit))
            end = start + size
            space = body.rfind(" ", end - size // 2, end + 1) if end < span.end else -1
            if space >= 0:
                end = space
            if body[start:end].strip():
                parts.append(Span(start, end))
            start = end + (space >= 0)
        return parts


def _ends_in_code(span: Span) -> bool:
    return span.kind == "fence" or (bool(span.children) and _ends_in_code(span.children[-1]))
