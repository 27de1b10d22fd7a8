"""The unit of recall: a piece of a markdown file with where, when and to what it belongs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one markdown file, as it is indexed, shown and cited.

    Attributes:
        content: what people and models see: the source lines `start_line`..`end_line` joined by
            `\\n`, without machine anchors. Only a piece of a line longer than the limit holds less
            than its lines.
        source: posix path relative to the project root; absolute for a file outside it.
        heading: text of the innermost heading, "" before the first one.
        breadcrumb: all enclosing headings, outermost first: "A > B > C".
        level: level of that heading, 1..6; 0 before the first one.
        start_line: first line, 1-based, counted as editors and `sed -n` do.
        end_line: last line, inclusive.
        content_hash: SHA-256 of `content`, first 16 hex characters.
        kind: "turn", "summary" (bullets that carry grips), "instruction" or "note".
        date: ISO date the text belongs to, or "".
        session: session id from the journal's anchors, or "".
        turns: ids of the turns the text is, or rests on.
        branch: git branch of the session, or "".
        domain: name of the file's directory, "" at the root and in the memory directory.
        instruction: whether the file is an `*.instructions.md`.
        source_hash: SHA-256 of the whole file's bytes, 64 hex characters.
    """

    content: str
    source: str
    heading: str
    breadcrumb: str
    level: int
    start_line: int
    end_line: int
    content_hash: str
    kind: str
    date: str
    session: str
    turns: tuple[str, ...]
    branch: str
    domain: str
    instruction: bool
    source_hash: str

    @property
    def text(self) -> str:
        """What is embedded and tokenised: the breadcrumb, then the content.

        A heading that opens the content is said twice. That is meant: `content` stays the plain
        source lines, and the piece that holds a heading weighs a little more for its words than
        the later pieces of the same section, which only have it from the breadcrumb.
        """
        return f"{self.breadcrumb}\n{self.content}" if self.breadcrumb else self.content

    def id(self, model: str) -> str:
        """The identity in the index of `model` (design, section 6): SHA-256, 64 hex characters."""
        return digest(
            f"markdown:{self.source}:{self.start_line}:{self.end_line}:{self.content_hash}:{model}"
        )


def digest(text: str) -> str:
    """SHA-256 of `text` in UTF-8, 64 hex characters; lone surrogates are hashed, not refused."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
