"""Takes secrets out of text before anything is written.

Each is replaced by `[redacted:kind]`. What is known by its form is in `secret_formats`, what only its
context gives away in `secret_values`. Not detect-secrets or another library: hooks redact before they
spool, in the user's own `python3`, where only the standard library is certain, and in milliseconds.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Iterable, List, Pattern

from memkit.capture.secret_formats import hide_known
from memkit.capture.secret_values import hide_assigned

MAX_PASSES = 5
"""Of the search. What one pass hides can give the next a new neighbour; two are the usual."""

SKIP = "#skip"
"""The word in a prompt that says: do not remember this turn."""

PRIVATE_TAG = re.compile(r"<(/?)private>", re.IGNORECASE)
"""Begins what is not to be written, or, with the slash that is its group, ends it."""

_SKIP = re.compile(r"(?<!\S)" + SKIP + r"(?![\w-])")
MARK = re.compile(r"\[redacted:([a-z-]+)\]")
"""What stands in the place of a secret, with its kind as the only group."""



def redact(text: str, patterns: Iterable[Pattern[str]] = ()) -> str:
    """`text` without private parts, known key formats, secret assignments and `patterns`.

    Redacting twice changes nothing more.
    """
    text = without_private(text)
    patterns = list(patterns)
    for _ in range(MAX_PASSES):
        before = text
        text = hide_assigned(hide_known(text, _mark), _mark("secret"))
        for pattern in patterns:
            text = _hide_custom(text, pattern)
        if text == before:
            break
    return text


def skips(prompt: str) -> bool:
    """Whether the turn of this prompt is not to be remembered."""
    return _SKIP.search(prompt) is not None


def _mark(kind: str) -> str:
    return "[redacted:{}]".format(kind)


def _hide_custom(text: str, pattern: Pattern[str]) -> str:
    """Hide what a user's pattern matches, but not a part of what already stands for a secret."""
    found = [match.span() for match in pattern.finditer(text) if match.group()]
    if not found:
        return text
    marks = deque(match.span() for match in MARK.finditer(text))
    kept: List[str] = []
    done = 0
    for start, end in found:
        while marks and marks[0][1] <= start:
            marks.popleft()
        if marks and marks[0][0] <= start and end <= marks[0][1]:
            continue
        while marks and marks[0][0] < end:
            start, end = min(start, marks[0][0]), max(end, marks[0][1])
            marks.popleft()
        if start >= done:  # else it is a part of the mark that the one before took with it
            kept += [text[done:start], _mark("custom")]
        done = max(done, end)
    kept.append(text[done:])
    return "".join(kept)


def without_private(text: str) -> str:
    """Cut `<private>` parts, nested ones whole, an unclosed one to the end."""
    if "<private>" not in text.lower():
        return text
    kept: List[str] = []
    depth = position = 0
    for match in PRIVATE_TAG.finditer(text):
        closing = match.group(1) == "/"
        if depth == 0:
            kept.append(text[position : match.start()])
            kept.append(match.group(0) if closing else "[redacted:private]")
        depth = max(0, depth - 1) if closing else depth + 1
        position = match.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept)
