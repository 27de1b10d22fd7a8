"""Cut a Markdown file into chunks along its headings and blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import PurePath, PurePosixPath

from memkit import anchors
from memkit.index.blocks import TEXT, Document, Span
from memkit.index.chunk import Chunk, digest, harmless_id
from memkit.index.memory_files import MemoryFile
from memkit.index.sections import group_sections, is_bullet, read_sections
from memkit.paths import MEMORY_DIRECTORY, OPENCLAW_DAYS
from memkit.privacy.redact import visible
from memkit.projects import team_files
from memkit.settings import ChunkingSettings, Settings

_BYTE_ORDER_MARK = "\ufeff"
_REPLACEMENT = "\ufffd"
_MEMORY = PurePosixPath(PurePath(MEMORY_DIRECTORY).as_posix())
_OPENCLAW_DAY = re.compile(rf"{OPENCLAW_DAYS}/\d{{4}}-\d\d-\d\d\.md", re.ASCII)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_NEWLINE = re.compile(r"\n")
_JOINED = "paragraph and fence"


def chunk_file(file: MemoryFile, settings: Settings) -> tuple[list[Chunk], int]:
    """Return the chunks of a memory file, and the number of its bytes that were not UTF-8."""
    text, replaced = decode(file.data, file.source)
    chunks = chunk_markdown(text, file.source, source_hash=file.hash, options=settings.chunking)
    return chunks, replaced


def decode(data: bytes, source: str = "") -> tuple[str, int]:
    """Return the text of a file, and the number of invalid UTF-8 sequences that became U+FFFD.

    Drop a byte order mark at the start. In the team's folder, also drop anchors and invisible characters, so
    that no text can pass for another. Lines keep their numbers.
    """
    text = data.decode("utf-8", "replace")
    # A U+FFFD in the file starts with a lead byte, so no invalid sequence can include part of it.
    replaced = text.count(_REPLACEMENT) - data.count(_REPLACEMENT.encode())
    text = text.removeprefix(_BYTE_ORDER_MARK)
    return visible(team_files.harmless(text)) if team_files.is_team(source) else text, replaced


def chunk_markdown(text: str, source: str, *, source_hash: str, options: ChunkingSettings) -> list[Chunk]:
    """Return the chunks of a Markdown file, in order.

    Together they have every line that is not blank, except the unedited lines of extracts and overviews: the
    turns have their words already.

    `text` is the result of `decode`, `source` the POSIX path relative to the project root, and `source_hash`
    the SHA-256 of the file's bytes, 64 hex characters. Any text is valid.

    A section is a heading and the text up to the next one. A section above `max_characters` becomes several
    chunks; only uncut code may stay longer. A section below `min_characters` is a fragment: it starts the
    chunk of its first subsection, joins neighboring fragments, or else ends the chunk before it. It never
    joins another turn, session, or date. Turns and summaries are no fragments: each is found by itself. A
    chunk has the heading, breadcrumb, and level of its full section; if it has only fragments, of the
    innermost section around all their text.

    A line above the limit becomes several chunks with the same line number. Equal pieces of it are one chunk
    with one id.

    A section that is appended to the file leaves the chunks of earlier sections unchanged. But if it or the
    section before it is a fragment, the last two chunks before it may change.
    """
    text, numbers = _without_derived(text)
    document = Document(text)
    packer = Packer(document, options)
    file = PurePosixPath(source)
    is_team = team_files.is_team(source)
    is_in_memory = is_team or file.parent == _MEMORY or _OPENCLAW_DAY.fullmatch(source) is not None
    instruction = source.endswith(".instructions.md")
    chunks: dict[tuple[int, int, str], Chunk] = {}
    sections = read_sections(document, file.name, is_team=is_team)
    for group in group_sections(sections, options.min_characters):
        origin = group.origin
        pieces = packer.pack(group.spans)
        for piece in pieces:
            owner = group.owner(piece.own_start, piece.end)
            content = document.body[piece.start : piece.end]
            start_line = numbers[document.line_at(piece.start)] + 1
            end_line = numbers[document.line_at(piece.end - 1)] + 1
            content_hash = digest(content)[:16]
            found = list(document.anchors(piece.start, piece.end))
            named = (pairs.get("turn", pairs.get("turns", "")) for pairs in found)
            turns = [origin.turn] if origin.turn else ",".join(named).split(",")
            proofs = (pairs.get("grip", pairs.get("grips", "")) for pairs in found)
            grips = ",".join(proofs).split(",")
            bullets = {pairs.get("fact") or pairs["grip"] for pairs in found if is_bullet(pairs)}
            own = origin.turn or origin.note or (bullets.pop() if len(bullets) == 1 else "")
            if is_team:
                kind = "team"
            elif instruction:
                kind = "instruction"
            elif origin.turn:
                kind = "turn"
            elif any(is_bullet(pairs) for pairs in found):
                is_doubtful = any(pairs.get("check") == anchors.UNVERIFIED for pairs in found)
                is_fact = any("fact" in pairs for pairs in found)
                kind = "unverified" if is_doubtful else "fact" if is_fact else "summary"
            else:
                kind = "note"
            chunks[start_line, end_line, content_hash] = Chunk(
                content=content, source=source, heading=owner.heading, breadcrumb=owner.breadcrumb,
                level=owner.level, start_line=start_line, end_line=end_line, content_hash=content_hash,
                kind=kind, date=origin.date, session=origin.session,
                turns=tuple(dict.fromkeys(filter(None, turns))),
                citations=tuple(dict.fromkeys(filter(None, grips))),
                entry_id=harmless_id(own), branch=origin.branch,
                domain="" if is_in_memory else file.parent.name,
                whole=len(pieces) == 1, instruction=instruction, source_hash=source_hash,
            )
    return list(chunks.values())


def _without_derived(text: str) -> tuple[str, Sequence[int]]:
    """Return `text` without unedited extracts and overview, and the number of each remaining line, from 0."""
    lines = text.split("\n")
    if "<!--" not in text:
        return text, range(len(lines))
    from memkit.journal.extracts import (  # most files have no anchors, and need no journal
        holds_derived,
        without_derived,
    )

    if not holds_derived(text):
        return text, range(len(lines))
    left = without_derived(lines)
    return "\n".join(lines[number] for number in left), left


@dataclass
class Piece:
    """Neighboring spans that become one chunk.

    `start` is before the first span if the piece repeats lines of the piece before it.
    """

    start: int
    spans: list[Span]

    @property
    def own_start(self) -> int:
        """The offset of the first text that is not in the piece before."""
        return self.spans[0].start

    @property
    def end(self) -> int:
        """The offset after the last character."""
        return self.spans[-1].end

    @property
    def own_size(self) -> int:
        """The number of characters without the overlap."""
        return self.end - self.own_start


class Packer:
    """Packs spans of one document into pieces of bounded size."""

    def __init__(self, document: Document, options: ChunkingSettings) -> None:
        self._document = document
        self._options = options

    def pack(self, spans: Sequence[Span]) -> list[Piece]:
        """Return the pieces of `spans`, in order, with as few cuts as the limit allows.

        Cut between blocks. A block above the limit is cut between its items, nested blocks, blank lines,
        or lines, and a line above the limit between words. Fenced code is never cut.
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
        """Return the start of a piece that begins with `span`: some lines before it, if they fit.

        Never repeat headings (the breadcrumb has them), lines of code, HTML, or front matter (they mean
        nothing alone), or more than half a chunk (it would only be found twice).
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
        if span.size <= limit or span.kind == "fence":
            return [span]
        children = self._children(span)
        if len(children) == 1 and not span.children:
            return self._divide_line(span, limit)
        joined = children if span.kind == _JOINED else self._join_fences(children)
        return [part for child in joined for part in self._divide(child, limit)]

    def _children(self, span: Span) -> list[Span]:
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
