"""Cuts a markdown file into chunks along its headings and blocks."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath

from memkit.index.blocks import Document
from memkit.index.chunk import Chunk, digest
from memkit.index.packing import ChunkOptions, Packer
from memkit.index.sections import group_sections, is_bullet, read_sections
from memkit.paths import MEMORY_DIRECTORY

__all__ = ["Chunk", "ChunkOptions", "chunk_markdown", "decode"]

_BYTE_ORDER_MARK = "\ufeff"
_REPLACEMENT = "\ufffd"
_MEMORY = PurePosixPath(PurePath(MEMORY_DIRECTORY).as_posix())


def decode(data: bytes) -> tuple[str, int]:
    """The text of a file and how many invalid UTF-8 sequences became U+FFFD in it.

    A byte order mark at the start is dropped.
    """
    text = data.decode("utf-8", "replace")
    # A U+FFFD of the file's own begins with a lead byte, so no invalid sequence takes part of it.
    replaced = text.count(_REPLACEMENT) - data.count(_REPLACEMENT.encode())
    return text.removeprefix(_BYTE_ORDER_MARK), replaced


def chunk_markdown(
    text: str, source: str, *, source_hash: str, options: ChunkOptions
) -> list[Chunk]:
    """The chunks of a markdown file, in order; every line that is not blank is in one of them.

    `text` is what `decode` gave, `source` the posix path relative to the project root and
    `source_hash` the SHA-256 of the file's bytes, 64 hex characters. No text is an error.

    A section is a heading and what follows up to the next one. One longer than `max_characters`
    becomes several chunks. One under `min_characters` is a fragment: it opens the chunk of the
    section inside it that follows, gathers with fragments beside it, or else ends the chunk before
    it. It never crosses into another turn, session or date, and turns and summaries are no
    fragments: each is found as itself. A chunk takes heading, breadcrumb and level from its full
    section or, if it holds fragments only, from the innermost section around all their text.

    A line longer than the limit becomes several chunks with that line's number. Equal pieces of it
    are one chunk: same text, same place, same identity.

    A section appended to the file leaves the chunks of earlier sections as they are. Only where
    it, or the section before it, is a fragment, the last two chunks before it may change.
    """
    document = Document(text)
    packer = Packer(document, options)
    file = PurePosixPath(source)
    instruction = source.endswith(".instructions.md")
    chunks: dict[tuple[int, int, str], Chunk] = {}
    for group in group_sections(read_sections(document, file.name), options.min_characters):
        origin = group.origin
        pieces = packer.pack(group.spans)
        for piece in pieces:
            owner = group.owner(piece.own_start, piece.end)
            content = document.body[piece.start : piece.end]
            start_line = document.line_at(piece.start) + 1
            end_line = document.line_at(piece.end - 1) + 1
            content_hash = digest(content)[:16]
            found = list(document.anchors(piece.start, piece.end))
            named = (pairs.get("turn", pairs.get("turns", "")) for pairs in found)
            turns = [origin.turn] if origin.turn else ",".join(named).split(",")
            proofs = (pairs.get("grip", pairs.get("grips", "")) for pairs in found)
            grips = ",".join(proofs).split(",")
            if instruction:
                kind = "instruction"
            elif origin.turn:
                kind = "turn"
            elif any(is_bullet(pairs) for pairs in found):
                is_doubtful = any("check" in pairs for pairs in found)
                is_fact = any("fact" in pairs for pairs in found)
                kind = "unverified" if is_doubtful else "fact" if is_fact else "summary"
            else:
                kind = "note"
            chunks[start_line, end_line, content_hash] = Chunk(
                content=content,
                source=source,
                heading=owner.heading,
                breadcrumb=owner.breadcrumb,
                level=owner.level,
                start_line=start_line,
                end_line=end_line,
                content_hash=content_hash,
                kind=kind,
                date=origin.date,
                session=origin.session,
                turns=tuple(dict.fromkeys(filter(None, turns))),
                citations=tuple(dict.fromkeys(filter(None, grips))),
                branch=origin.branch,
                domain="" if file.parent == _MEMORY else file.parent.name,
                whole=len(pieces) == 1,
                instruction=instruction,
                source_hash=source_hash,
            )
    return list(chunks.values())
