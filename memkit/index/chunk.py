"""Chunks, the unit of recall: pieces of Markdown files."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass

LABEL = re.compile(r"^\*\*(?:Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)
"""The labels that memkit writes before the parts of a turn."""

_ENTRY_ID = re.compile("[0-9a-f]{8}")
_TIME = re.compile(r"\A\d\d:\d\d ")
BULLETS = frozenset({"summary", "unverified", "fact"})
"""The kinds of chunks that are bullets. They are their own titles."""

KINDS = ("turn", "summary", "fact", "unverified", "instruction", "note", "team")

LEADING_HEADINGS = re.compile(r"\A(?:#{1,6} .*\n?|\s*\n)+")
"""The headings at the start of a chunk's content, with blank lines between them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one Markdown file, as it is indexed, shown, and cited.

    Attributes:
        content: the source lines `start_line`..`end_line` joined by `\\n`, without machine anchors, as
            users and models see them. Only a piece of an overlong line has less than the whole of its lines.
        source: POSIX path relative to the project root; absolute for a file outside it.
        heading: text of the innermost heading, "" before the first one.
        breadcrumb: all enclosing headings, outermost first: "A > B > C".
        level: level of that heading, 1..6; 0 before the first one.
        start_line: first line, 1-based, counted as editors and `sed -n` do.
        end_line: last line, inclusive.
        content_hash: SHA-256 of `content`, first 16 hex characters.
        kind: "turn", "summary" (a bullet with a citation), "fact" (of a compaction), "unverified" (a
            summary or fact that its sources do not cover), "instruction", "note", or "team" (what somebody
            shared in the repository; see `memkit.projects.team_files`).
        date: ISO date of the text, or "".
        session: session id from the journal's anchors, or "".
        turns: id of the turn that the text is, or ids of the turns that it rests on.
        citations: ids of the bullets in it, or of those that it rests on (`grip:` in an anchor).
        entry_id: id of the turn, bullet, fact, or note that it is, or is a piece of; "" for other text. It
            lasts; the chunk's own id changes when the text moves.
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
    entry_id: str
    branch: str
    domain: str
    whole: bool
    instruction: bool
    source_hash: str

    @property
    def text(self) -> str:
        """The text to embed: the breadcrumb, then the content; of a whole turn or a bullet only its words.

        A whole turn starts with its prompt. Headings that only repeat it are left out: the model reads 256
        tokens and ranks better without them (LoCoMo, fused: session @1 76.3 % with, 77.2 % without). The
        title over a bullet is the session's: with its words, bullets about something else came first.

        A heading at the start of a piece occurs twice on purpose: its words weigh a little more there
        than in the later pieces of the section.
        """
        if self.kind in BULLETS or (self.kind == "turn" and self.whole):
            return self._words or self.content
        return f"{self.breadcrumb}\n{self.content}" if self.breadcrumb else self.content

    @property
    def lexical_text(self) -> str:
        """The text to tokenize: for a turn and a bullet its date and its words, each once; else `text`.

        The headings over a turn repeat its prompt or the session's first one, and BM25 would count those
        words two or three times (LoCoMo: evidence @5 67.8 % with them, 69.5 % without; fused, 71 % and
        75 %). The labels are memkit's own words.
        """
        if self.kind != "turn" and self.kind not in BULLETS:
            return self.text
        return f"{self.date}\n{LABEL.sub('', self._words)}"

    @property
    def is_bare(self) -> bool:
        """Whether it has only headings of a session, which the chunks of its turns repeat."""
        return bool(self.session) and not self.turns and not self._words.strip()

    @property
    def _words(self) -> str:
        """The content without its headings, but with the prompt if only the turn's heading has it."""
        words = LEADING_HEADINGS.sub("", self.content)
        return f"{_TIME.sub('', self.heading)}\n{words}" if self.has_prompt_in_heading else words

    @property
    def has_prompt_in_heading(self) -> bool:
        """Whether it starts a turn whose prompt only its heading has."""
        words = LEADING_HEADINGS.sub("", self.content)
        if self.kind != "turn" or len(words) == len(self.content) or words.startswith("**Asked**"):
            return False
        return _TIME.sub("", self.heading).removesuffix(" …") not in words  # else it is from the answer

    @property
    def text_number(self) -> int:
        """64 signed bits, equal for equal `text`. Moved text finds its vectors by this number."""
        key = "\n".join((self.breadcrumb, self.content_hash, str(self.whole), self.kind))
        return int(digest(key)[:16], 16) - 2**63

    def id(self, model: str, lines: int = 0) -> str:
        """Return the id in the index of `model`, `lines` further down: SHA-256, 64 hex characters."""
        start, end = self.start_line + lines, self.end_line + lines
        return digest(f"markdown:{self.source}:{start}:{end}:{self.content_hash}:{model}")


def harmless_id(name: str) -> str:
    """Return the ID of an entry, or "" for anything else: a stranger's anchor may hold any word."""
    return name if _ENTRY_ID.fullmatch(name) else ""


def digest(text: str) -> str:
    """Return the SHA-256 of `text` in UTF-8, 64 hex characters; lone surrogates are accepted."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


SHOWN_ID_CHARACTERS = 12
"""Characters of a chunk's id that users see. Any unique prefix is accepted, as in git."""

CHUNK_FIELDS = {field.name: field.name for field in dataclasses.fields(Chunk)} | {"citations": "grips"}
"""The fields of a chunk, each with its name on disk. A snapshot with other fields cannot be read."""
