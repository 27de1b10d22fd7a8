"""Make foreign text safe inside a memory file without changing how it reads.

Text from a conversation cannot forge structure: headings become bold, comment openers and anchors are
neutralized, HTML blocks are disarmed, and fences are closed. Code keeps every character except trailing
spaces and memkit's own anchors.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import TYPE_CHECKING

from memkit.privacy.redact import visible
from memkit.text import shorten

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_OTHER_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_ANCHOR_OPENER = re.compile(r"<!--(?=\s+[a-z]+:)")
_HEADING_MARK = re.compile(r"(?P<before>[\s>*+\-\d.)]*?)#{1,6}(?P<words>.*?)(?:\s#+)?\s*\Z")
_BOLD = re.compile(r"\*\*|__")
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
FENCED = re.compile(
    r"^(?P<indent>[ \t]*)(?P<marks>`{3,}(?=[^`\n]*$)|~{3,}).*?"
    r"(?:(?P<end>^[ \t]*(?P=marks)[`~]*[ \t]*$)|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""A block of fenced code, up to the end of the text if it is not closed."""

_LIST_MARKS = re.compile(r"^(?:(?:#{1,6}|[-*+>]) )+")
_HTML_START = re.compile(r"^([\s>]*)<")
_GAP = re.compile(r"(?:\A|\n\n)\[…(?: [\d,]+ characters left out[^\n]*)?\](?:\n\n|\Z)")
_MAX_PASSES = 12
ID_CHARACTERS = 8

LEAST_GAP = 200
"""A shorter text is not left out: saying so would take almost as much room."""


@functools.cache
def _parsers() -> tuple[MarkdownIt, ...]:
    """Parsers with and without tables: a table row for one can be a heading for the other."""
    from markdown_it import MarkdownIt  # 0.05 s, only where memory is written

    plain, tables = (MarkdownIt("commonmark").disable("inline") for _ in range(2))
    return plain, tables.enable("table")


def short_id(*parts: str) -> str:
    """Return the ID of a bullet, fact, or note with these parts: 8 hex characters."""
    key = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(key).hexdigest()[:ID_CHARACTERS]


def printable(text: str) -> str:
    """Return the `visible` part of `text`, with `\n` as its only line ending."""
    return visible(_OTHER_LINE_ENDS.sub("\n", text))


def safe_block(text: str) -> str:
    """Return `text` as a block that opens no heading, comment, HTML block, or link definition, and no
    unclosed fence.
    """
    text = "\n".join(line.rstrip() for line in printable(text).split("\n")).strip("\n")
    text = _ANCHOR_OPENER.sub("<!- -", text)
    # Escaping one construct can uncover another, such as a heading inside a broken HTML block.
    for _ in range(_MAX_PASSES):
        fixed = text
        for parser in _parsers():
            fixed = _fix(fixed, parser.parse(fixed))
        fixed = fixed.strip("\n")  # an empty heading at an end leaves an empty line
        if fixed == text:
            return text
        text = fixed
    return _fenced(text)


def _fenced(text: str) -> str:
    runs = (len(match[2]) for line in text.split("\n") if (match := _FENCE.match(line)))
    marks = "`" * max([3, *(run + 1 for run in runs)])
    return f"{marks}\n{text}\n{marks}"


def _fix(text: str, tokens: list[Token]) -> str:
    lines = text.split("\n")
    code = {
        number
        for token in tokens
        if token.type in ("fence", "code_block") and token.map
        for number in range(*token.map)
    }
    for number, line in enumerate(lines):
        if number not in code and "<!--" in line:
            lines[number] = line.replace("<!--", "&lt;!--")
    for token in tokens:
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "heading_open":
            _without_heading(lines, first, end)
        elif token.type == "html_block":
            lines[first] = lines[first].replace("<", "\\<", 1)
            # Once the first line begins no block, each later one could.
            for number in range(first + 1, end):
                lines[number] = _HTML_START.sub(r"\1\<", lines[number])
        elif token.type == "fence" and token.level == 0 and not _is_closed(lines, token):
            lines.insert(end, token.markup)
            break  # later line numbers have moved
    return "\n".join(lines)


def _without_heading(lines: list[str], first: int, end: int) -> None:
    match = _HEADING_MARK.match(lines[first])
    if match:
        words = _BOLD.sub("", match["words"]).strip().rstrip("\\")
        lines[first] = f"{match['before']}**{words}**" if words else match["before"].rstrip()
        return
    underline = lines[end - 1]  # a setext heading, made by its underline
    mark = re.search(r"[=-]", underline)
    if mark:
        lines[end - 1] = underline[: mark.start()].rstrip()


def _is_closed(lines: list[str], token: Token) -> bool:
    assert token.map is not None
    first, end = token.map
    if end - first < 2:
        return False
    closer = re.match(r"^ {0,3}(`{3,}|~{3,})[ \t]*$", lines[end - 1])
    return closer is not None and closer[1].startswith(token.markup)


def one_line(text: str, limit: int) -> str:
    """Return the first line of `text` with content, as a heading or list item can hold it.

    Folds white space, neutralizes comment openers, and cuts at a word, with `…`, to `limit` characters.
    """
    lines = (" ".join(line.split()) + " " for line in printable(text).split("\n"))
    lines = (_LIST_MARKS.sub("", line).strip() for line in lines)
    line = next((line for line in lines if line and not _FENCE.match(line)), "")
    return shorten(line.replace("<!--", "&lt;!--").replace("-->", "--&gt;"), limit)


def cut_middle(text: str, limit: int, hint: str) -> str:
    """Shorten `text` to about `limit` characters by leaving out its middle.

    Two thirds of the room go to the start and one third to the end, cut at line ends or words where possible.
    The gap states how many characters are missing and, if given, the `hint` where to find them.
    """
    if len(text) <= limit:
        return text
    head_end = _boundary(text, limit * 2 // 3)
    tail_start = len(text) - limit // 3
    near = tail_start + limit // 6
    ends = (text.find(sign, tail_start, near) for sign in ("\n", " "))
    tail_start = next((end + 1 for end in ends if end >= 0), tail_start)
    if tail_start - head_end < LEAST_GAP:
        return text
    # Close a fence that the cut leaves open, and reopen one that continues after the gap.
    head, tail = text[:head_end].rstrip(), text[tail_start:].lstrip("\n")
    fence = _open_fence(head)
    if fence is not None:
        head += f"\n{fence}"
        if _open_fence(text[:tail_start]) is not None:
            tail = f"{fence}\n{tail}"
    elif (opened := _open_fence(text[:tail_start])) is not None:
        tail = f"{opened}\n{tail}"
    return f"{head}\n\n{gap(tail_start - head_end, hint)}\n\n{tail}"


def gap(characters: int, hint: str) -> str:
    """Return the mark of text that is left out, with the `hint` where to find it."""
    return f"[… {characters:,} characters left out{f': {hint}' if hint else ' …'}]"


def is_cut_of(shown: str, whole: str) -> bool:
    """Return whether `shown` has gaps, and what it has around them is in `whole`, in this order."""
    parts, text = _around_gaps(shown), "".join(filter(str.isalnum, whole))
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(parts) > 1


def is_same_cut(one: str, other: str) -> bool:
    """Return whether two texts that may have been shortened can be the same, but for their marks."""
    parts = [_around_gaps(text) for text in (one, other)]
    heads, tails = (sorted((part[end] for part in parts), key=len) for end in (0, -1))
    return heads[1].startswith(heads[0]) and tails[1].endswith(tails[0])


def _around_gaps(text: str) -> list[str]:
    return ["".join(filter(str.isalnum, part)) for part in _GAP.split(text)]


def _boundary(text: str, wanted: int) -> int:
    ends = (text.rfind(sign, wanted - wanted // 4, wanted) for sign in ("\n", " "))
    return next((end for end in ends if end > 0), wanted)


def _open_fence(text: str) -> str | None:
    """Return indentation and marks of an open fence. A parser would take seconds for long texts."""
    last = None
    for match in FENCED.finditer(text):
        last = match
    return last["indent"] + last["marks"] if last is not None and last["end"] is None else None
