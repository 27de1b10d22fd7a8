"""The block structure of Markdown as ranges of characters, read with markdown-it-py.

Only the block parser runs: inline markup does not bound chunks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise
from operator import itemgetter

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, list_block, table
from markdown_it.token import Token

from memkit import anchors

MAX_LIST_NESTING = 12
"""Token level at which a list marker is plain text; a list and its item are one level each.

At its own limit markdown-it skips the rest of the document, headings included.
"""

TEXT, CODE, MARKUP = range(3)
"""The kind of a line: text (overlap may start there), code (its anchors are not ours), or markup
(headings, HTML, and front matter)."""

_LINE_KINDS = {"fence": CODE, "code_block": CODE, "html_block": MARKUP}
_FRONT_MATTER_KEY = re.compile(r"""["']?[\w.-]+["']?[ \t]*:""")


@dataclass(frozen=True, slots=True)
class Span:
    """A block of Markdown: `body[start:end]`, without the blank lines around it.

    `kind` is markdown-it's name for the block, or "block"; `children` are the blocks inside a list, list
    item, or quote. A top-level heading has a `level`, 1..6, and a `title`.
    """

    start: int
    end: int
    kind: str = "block"
    children: tuple[Span, ...] = ()
    level: int = 0
    title: str = ""

    @property
    def size(self) -> int:
        """The number of characters."""
        return self.end - self.start


class Document:
    """The text of a Markdown file as users see it, and its top-level blocks.

    Attributes:
        lines: the file's lines as written, split at `\\n` only, without the `\\r` of Windows.
        body: these lines without machine anchors, joined by `\\n`; all offsets point into it.
        line_starts: offset of each line in `body`.
        line_kinds: TEXT, CODE, or MARKUP for each line.
        blocks: the top-level blocks in order; together they hold every line that is not blank.
    """

    def __init__(self, text: str) -> None:
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        seen = [anchors.strip(line) if "<!--" in line else line for line in self.lines]
        self.body = "\n".join(seen)
        self.line_starts = list(accumulate((len(line) + 1 for line in seen), initial=0))
        self.line_kinds = bytearray(len(self.lines))
        front_matter = _front_matter_end(self.lines)
        self._mark(0, front_matter, MARKUP)
        # Without front matter, this span holds link definitions before the first block.
        first = Span(0, self.line_starts[front_matter])
        spans = [first, *self._read(self._tokens(front_matter))]
        self.blocks = self.tile(spans, 0, len(self.body))
        self._anchors = [
            (self.line_starts[index], found)
            for index, line in enumerate(self.lines)
            if "<!--" in line
            and self.line_kinds[index] != CODE
            and (found := anchors.parse(line))
        ]

    def anchors(self, start: int, end: int) -> Iterator[dict[str, str]]:
        """Yield the pairs of each line that touches `start`..`end` and has anchors, except in code."""
        index = bisect_left(self._anchors, self.line_starts[self.line_at(start)], key=itemgetter(0))
        while index < len(self._anchors) and self._anchors[index][0] < end:
            yield self._anchors[index][1]
            index += 1

    def line_at(self, offset: int) -> int:
        """Return the index of the line with the character at `offset`."""
        return bisect_right(self.line_starts, offset) - 1

    def is_blank(self, line: int) -> bool:
        """Return whether a line holds nothing except anchors."""
        start, end = self.line_starts[line], self.line_starts[line + 1]
        return not self.body[start:end].strip()

    def tile(self, spans: Sequence[Span], start: int, end: int) -> list[Span]:
        """Return `spans` extended to cover all text in `start`..`end`; leave out blank ones.

        Tokens leave lines out: link definitions, an empty list marker, a lone `>`. Each belongs to the block
        before it.
        """
        starts = [start, *(span.start for span in spans[1:]), end]
        return [
            replace(span, start=first, end=last)
            for span, (begin, stop) in zip(spans, pairwise(starts), strict=True)
            for first, last in self._trim(begin, stop)
        ]

    def _trim(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        text = self.body[start:end]
        content_end = start + len(text.rstrip())
        if content_end == start:
            return
        content_start = start + len(text) - len(text.lstrip())
        line_end = self.body.find("\n", content_end, end)
        yield (max(start, self.body.rfind("\n", start, content_start) + 1), end if line_end < 0 else line_end)

    def _tokens(self, front_matter: int) -> Iterator[Token]:
        lines = [""] * front_matter + self.lines[front_matter:]
        tokens: list[Token] = []
        parser = _parser()
        # Not parser.parse, for which a lone \r ends a line; editors do not count it as one.
        parser.block.parse("\n".join(lines), parser, {}, tokens)
        return iter(tokens)

    def _read(self, tokens: Iterator[Token]) -> list[Span]:
        spans: list[Span] = []
        for token in tokens:
            if token.nesting < 0:
                break
            if token.type == "inline" or token.map is None:
                continue
            first, last = token.map
            start, end = self.line_starts[first], self.line_starts[last]
            kind = token.type.removesuffix("_open")
            if kind in _LINE_KINDS:
                self._mark(first, last, _LINE_KINDS[kind])
            if kind == "heading" and token.level == 0:
                self._mark(first, last, MARKUP)
                title = next(tokens).content
                next(tokens)
                spans.append(Span(start, end, kind, level=int(token.tag[1]), title=title))
                continue
            children = tuple(self._read(tokens)) if token.nesting > 0 else ()
            spans.append(Span(start, end, kind, children))
        return spans

    def _mark(self, first: int, last: int, kind: int) -> None:
        self.line_kinds[first:last] = bytes([kind]) * (last - first)


def _front_matter_end(lines: Sequence[str]) -> int:
    """Return the number of lines of YAML front matter, 0 if there is none.

    CommonMark reads the opening `---` as a rule. It opens front matter if a key follows directly and a
    line `---` or `...` closes it.
    """
    if lines[0].rstrip() != "---" or len(lines) < 2 or not _FRONT_MATTER_KEY.match(lines[1]):
        return 0
    for index in range(2, len(lines)):
        if lines[index].rstrip() in ("---", "..."):
            return index + 1
    return 0


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    # `alt` names the blocks that a rule may interrupt, as in markdown-it's own table of rules.
    parser.block.ruler.at("list", _list, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if not silent and state.level >= MAX_LIST_NESTING:
        return False
    return list_block(state, start, end, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a table as one token: markdown-it's three per cell take 500 times the memory of the text."""
    if not table(state, start, end, True):
        return False
    if silent:
        return True
    parent, state.parentType = state.parentType, "table"
    terminators = state.md.block.ruler.getRules("blockquote")
    line = start + 2
    while (
        line < end
        and not state.isEmpty(line)
        and state.sCount[line] >= state.blkIndent
        and not state.is_code_block(line)
        and not any(rule(state, line, end, True) for rule in terminators)
    ):
        line += 1
    token = state.push("table", "table", 0)
    token.map = [start, line]
    state.line, state.parentType = line, parent
    return True
