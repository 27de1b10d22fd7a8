"""The unit of recall: a piece of a markdown file with where, when and to what it belongs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_LABEL = re.compile(r"^\*\*(?:Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)
KINDS = ("turn", "summary", "fact", "unverified", "instruction", "note")

OPENING_HEADINGS = re.compile(r"\A(?:#{1,6} .*\n?|\s*\n)+")
"""The headings that open a chunk's content, blank lines between them included."""


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
        kind: "turn", "summary" (a bullet that carries a grip), "fact" (one of a compaction), "unverified"
            (one of either that says something its sources do not), "instruction" or "note".
        date: ISO date the text belongs to, or "".
        session: session id from the journal's anchors, or "".
        turns: ids of the turns the text is, or rests on.
        citations: ids of the bullets in it, or of those that it rests on (`grip:` in an anchor).
        branch: git branch of the session, or "".
        domain: name of the file's directory, "" at the root and in the memory directory.
        whole: whether it is all of its section, or group of short sections.
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
    citations: tuple[str, ...]
    branch: str
    domain: str
    whole: bool
    instruction: bool
    source_hash: str

    @property
    def text(self) -> str:
        """What is embedded: the breadcrumb, then the content; of a whole turn its own words.

        A piece of a long answer knows from the breadcrumb when, where and to what it belongs. A
        turn in one piece begins with its prompt, which its headings only repeat; the model, which
        reads 256 tokens, does better without them (on LoCoMo, fused: session @1 76.3 and 77.2 %).

        A heading that opens the content of a piece is said twice. That is meant: it weighs a little
        more for its words than the later pieces of the same section.
        """
        if self.kind == "turn" and self.whole:
            return self._words or self.content
        return f"{self.breadcrumb}\n{self.content}" if self.breadcrumb else self.content

    @property
    def lexical_text(self) -> str:
        """What is tokenised: for a turn its date and its words, each once; else `text`.

        The headings over a turn repeat its prompt, or that of the session's first turn, and BM25
        would count those words two or three times (measured on LoCoMo: evidence @5 67.8 % with
        them, 69.5 % without; fused, 71 and 75 %). The labels are memkit's own words.
        """
        if self.kind != "turn":
            return self.text
        return f"{self.date}\n{_LABEL.sub('', self._words)}"

    @property
    def _words(self) -> str:
        return OPENING_HEADINGS.sub("", self.content)

    @property
    def text_number(self) -> int:
        """64 bits, signed, equal for equal `text`: by it the vectors of text that moved are found."""
        key = "\n".join((self.breadcrumb, self.content_hash, str(self.whole), self.kind))
        return int(digest(key)[:16], 16) - 2**63

    def id(self, model: str) -> str:
        """The identity in the index of `model` (design, section 6): SHA-256, 64 hex characters."""
        return digest(
            f"markdown:{self.source}:{self.start_line}:{self.end_line}:{self.content_hash}:{model}"
        )


def digest(text: str) -> str:
    """SHA-256 of `text` in UTF-8, 64 hex characters; lone surrogates are hashed, not refused."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
