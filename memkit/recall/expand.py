"""Depth L2: the whole markdown section around a found chunk, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memkit.errors import NotFoundError
from memkit.index.blocks import Document
from memkit.index.chunk import Chunk
from memkit.index.chunker import decode
from memkit.index.snapshot import SHOWN_ID_CHARACTERS, Snapshot
from memkit.paths import Home
from memkit.project import Project
from memkit.recall.transcript import find_transcript


@dataclass(frozen=True, slots=True)
class Section:
    """A section as it stands in its file, lines 1-based and inclusive, without anchors."""

    id: str
    chunk: Chunk
    path: Path
    start_line: int
    end_line: int
    content: str
    turns: tuple[str, ...]
    transcript: Path | None

    def as_dict(self) -> dict[str, Any]:
        """As `memkit expand --json` prints it."""
        return {
            "id": self.id,
            "source": self.chunk.source,
            "path": str(self.path),
            "start_line": self.start_line,
            "end_line": self.end_line,
            "heading": self.chunk.heading,
            "breadcrumb": self.chunk.breadcrumb,
            "kind": self.chunk.kind,
            "date": self.chunk.date,
            "session": self.chunk.session,
            "branch": self.chunk.branch,
            "turns": list(self.turns),
            "transcript": str(self.transcript) if self.transcript else None,
            "content": self.content,
        }


def expand(project: Project, home: Home, snapshot: Snapshot, prefix: str) -> Section:
    """The section around the chunk whose id begins with `prefix`.

    Raises `NotFoundError` if there is no such chunk or its file is gone, `AmbiguousIdError`.
    """
    position = snapshot.find(prefix)
    chunk = snapshot.chunk(position)
    path = Path(project.root) / chunk.source
    try:
        text, _ = decode(path.read_bytes())
    except OSError as error:
        raise NotFoundError(
            f"{path} cannot be read: {error.strerror}; run `memkit index` to bring the index into step"
        ) from error
    document = Document(text)
    start, end = _bounds(document, chunk)
    turns = dict.fromkeys(chunk.turns)
    for pairs in document.anchors(start, end):
        for name in ("turn", "turns"):
            turns |= dict.fromkeys(filter(None, pairs.get(name, "").split(",")))
    return Section(
        id=snapshot.id(position)[:SHOWN_ID_CHARACTERS],
        chunk=chunk,
        path=path,
        start_line=document.line_at(start) + 1,
        end_line=document.line_at(max(start, end - 1)) + 1,
        content=document.body[start:end],
        turns=tuple(turns),
        transcript=find_transcript(home, chunk.session) if chunk.session else None,
    )


def _bounds(document: Document, chunk: Chunk) -> tuple[int, int]:
    """Offsets in `document.body` of the section the chunk is named after, without blank lines around."""
    headings = [block for block in document.blocks if block.kind == "heading"]
    limit = document.line_starts[min(chunk.end_line, len(document.lines)) - 1]
    before = [h for h in headings if h.start <= limit and h.level == chunk.level]
    named = [h for h in before if h.title.startswith(chunk.heading)]
    candidates = named or before
    own = candidates[-1] if candidates else None
    start, level = (own.start, own.level) if own else (0, 6)
    following = (h.start for h in headings if h.start > start and h.level <= level)
    end = next(following, len(document.body))
    while end > start and document.body[end - 1].isspace():
        end -= 1
    return start, end
