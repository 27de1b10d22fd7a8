"""Makes foreign text safe inside a memory file without changing how it reads.

Text of a conversation cannot forge structure: its headings are escaped, comment openers and
anchors neutralised, HTML blocks disarmed, fences closed. Code keeps every character, but for memkit's
own anchors.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]|\x1b\[[0-9;?]*[A-Za-z]")
_OTHER_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_ANCHOR_OPENER = re.compile(r"<!--(?=\s+[a-z]+:)")
_FENCE_OPENER = re.compile(r"^\s*(`{3,}|~{3,})")
_MAX_PASSES = 8


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # 0.05 s, only where memory is written

    return MarkdownIt("commonmark").enable("table").disable("inline")


def safe_block(text: str) -> str:
    """`text` as a block of its own: it opens no heading, comment, HTML block or link definition of
    ours, and leaves no fence open.
    """
    text = _OTHER_LINE_ENDS.sub("\n", text)
    text = _CONTROL.sub("", text).strip("\n").rstrip()
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = _ANCHOR_OPENER.sub("<!- -", text)
    # Escaping one thing can uncover another (a heading that a broken HTML block had swallowed).
    for _ in range(_MAX_PASSES):
        mended = _mend(text)
        if mended == text:
            return text
        text = mended
    # Quoted, no line can bound a section.
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _mend(text: str) -> str:
    lines = text.split("\n")
    tokens = _parser().parse(text)
    code = _code_lines(tokens)
    for number, line in enumerate(lines):
        if number not in code and "<!--" in line:
            lines[number] = line.replace("<!--", "&lt;!--")
    for token in tokens:
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "heading_open":
            _escape_heading(lines, first, end)
        elif token.type == "html_block":
            lines[first] = lines[first].replace("<", "\\<", 1)
        elif token.type == "fence" and token.level == 0 and not _is_closed(lines, token):
            lines.insert(end, token.markup)
            break  # line numbers behind it have moved
    return "\n".join(lines)


def _code_lines(tokens: list[Token]) -> set[int]:
    return {
        number
        for token in tokens
        if token.type in ("fence", "code_block") and token.map
        for number in range(*token.map)
    }


def _escape_heading(lines: list[str], first: int, end: int) -> None:
    match = re.match(r"^([\s>*+\-\d.)]*?)(#{1,6})", lines[first])
    if match:
        lines[first] = f"{match[1]}\\{lines[first][match.end(1) :]}"
        return
    underline = lines[end - 1]  # a setext heading: the underline makes it one
    mark = re.search(r"[=-]", underline)
    if mark:
        lines[end - 1] = f"{underline[: mark.start()]}\\{underline[mark.start() :]}"


def _is_closed(lines: list[str], token: Token) -> bool:
    assert token.map is not None
    first, end = token.map
    if end - first < 2:
        return False
    opener = _FENCE_OPENER.match(lines[first])
    closer = lines[end - 1].strip()
    return bool(opener) and len(closer) >= len(token.markup) and set(closer) == {token.markup[0]}


def one_line(text: str, limit: int) -> str:
    """The first line of `text` that says something, as a heading or list item can hold it.

    White space is folded, comment openers are neutralised, and it is cut at a word, with `…`, to at
    most `limit` characters.
    """
    text = _CONTROL.sub("", _OTHER_LINE_ENDS.sub("\n", text))
    lines = (" ".join(line.split()).lstrip("#>*+- ").rstrip("# ") for line in text.split("\n"))
    line = next((line for line in lines if line and not _FENCE_OPENER.match(line)), "")
    return shorten(line.replace("<!--", "&lt;!--").replace("-->", "--&gt;"), limit)


def shorten(line: str, limit: int) -> str:
    """`line` cut at a word, with ` …`, to at most `limit` characters."""
    if len(line) <= limit:
        return line
    head = line[: limit - 2]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head) + " …"


def cut_middle(text: str, limit: int, hint: str) -> str:
    """`text` with its middle left out when it is longer than `limit` characters.

    Two thirds of the room go to the start and one to the end, cut at line ends where there are
    some; the gap says how many characters are missing and `hint` where they are.
    """
    if len(text) <= limit:
        return text
    head_end = _boundary(text, limit * 2 // 3)
    tail_start = len(text) - limit // 3
    line_end = text.find("\n", tail_start)
    if 0 <= line_end < tail_start + limit // 6:
        tail_start = line_end + 1
    gap = f"[… {tail_start - head_end:,} characters left out; {hint} …]"
    # A fence the cut leaves open is closed before the gap, one it leaves unopened is opened again.
    head, tail = text[:head_end].rstrip(), text[tail_start:].lstrip("\n")
    fence = _open_fence(head)
    if fence is not None:
        head += f"\n{fence}"
        if _open_fence(text[:tail_start]) is not None:
            tail = f"{fence}\n{tail}"
    elif (opened := _open_fence(text[:tail_start])) is not None:
        tail = f"{opened}\n{tail}"
    return f"{head}\n\n{gap}\n\n{tail}"


def _boundary(text: str, wanted: int) -> int:
    line_end = text.rfind("\n", wanted - wanted // 4, wanted)
    return line_end if line_end > 0 else wanted


def _open_fence(text: str) -> str | None:
    """The marks of the fence that `text` ends inside of, if it does."""
    lines = text.split("\n")
    for token in reversed(_parser().parse(text)):
        if token.type == "fence" and token.map and token.map[1] >= len(lines):
            return None if _is_closed(lines, token) else token.markup
    return None
