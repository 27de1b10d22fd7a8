"""The unit of recall: a piece of a Markdown file with its location, date, and session."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_LABEL = re.compile(r"^\*\*(?:Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)
KINDS = ("turn", "summary", "fact", "unverified", "instruction", "note")

LEADING_HEADINGS = re.compile(r"\A(?:#{1,6} .*\n?|\s*\n)+")
"""The headings at the start of a chunk's content, with blank lines between them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one Markdown file, as it is indexed, shown, and cited.

    Attributes:
        content: the source lines `start_line`..`end_line` joined by `\\n`, without machine anchors, as
            users and models see them. Only a piece of a line above the limit holds less than its lines.
        source: POSIX path relative to the project root; absolute for a file outside it.
        heading: text of the innermost heading, "" before the first one.
        breadcrumb: all enclosing headings, outermost first: "A > B > C".
        level: level of that heading, 1..6; 0 before the first one.
        start_line: first line, 1-based, counted as editors and `sed -n` do.
        end_line: last line, inclusive.
        content_hash: SHA-256 of `content`, first 16 hex characters.
        kind: "turn", "summary" (a bullet with a citation), "fact" (of a compaction), "unverified" (a
            summary or fact that its sources do not cover), "instruction", or "note".
        date: ISO date of the text, or "".
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
        """The text to embed: the breadcrumb, then the content; for a whole turn only its own words.

        A whole turn starts with its prompt, which its headings only repeat. The model reads 256 tokens
        and ranks better without them (LoCoMo, fused: session @1 76.3 % with, 77.2 % without).

        A heading at the start of a piece occurs twice on purpose: its words weigh a little more there
        than in the later pieces of the section.
        """
        if self.kind == "turn" and self.whole:
            return self._words or self.content
        return f"{self.breadcrumb}\n{self.content}" if self.breadcrumb else self.content

    @property
    def lexical_text(self) -> str:
        """The text to tokenize: for a turn its date and its words, each once; else `text`.

        The headings over a turn repeat its prompt or the session's first one, and BM25 would count those
        words two or three times (LoCoMo: evidence @5 67.8 % with them, 69.5 % without; fused, 71 % and
        75 %). The labels are memkit's own words.
        """
        if self.kind != "turn":
            return self.text
        return f"{self.date}\n{_LABEL.sub('', self._words)}"

    @property
    def _words(self) -> str:
        return LEADING_HEADINGS.sub("", self.content)

    @property
    def text_number(self) -> int:
        """64 signed bits, equal for equal `text`. Moved text finds its vectors by this number."""
        key = "\n".join((self.breadcrumb, self.content_hash, str(self.whole), self.kind))
        return int(digest(key)[:16], 16) - 2**63

    def id(self, model: str) -> str:
        """Return the id in the index of `model`: SHA-256, 64 hex characters."""
        return digest(
            f"markdown:{self.source}:{self.start_line}:{self.end_line}:{self.content_hash}:{model}"
        )


def digest(text: str) -> str:
    """Return the SHA-256 of `text` in UTF-8, 64 hex characters; lone surrogates are accepted."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
