"""Quoted memory cannot end the tag it is quoted in.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import Pattern

_FULL_WIDTH = 0xFEE0
"""How far the full-width form of a letter is from the letter."""

# What a reader does not see, or passes over: blanks, control and format characters, fillers, and slashes.
_PASSED_OVER = (
    r"[\s/\uff0f\u2044\u2215\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e01ef]"
)
_OPENS = "<\uff1c\ufe64\u2039\u3008\u27e8\u276e"


def defuse(text: str, tag: str) -> str:
    """`text` in which nothing reads as the tag, opened or closed: its `<` becomes `&lt;`."""
    if not any(letter in text for letter in _OPENS):  # as most: 3 ms of a hook to compile
        return text
    return _tag(tag).sub("&lt;", text)


@lru_cache(8)
def _tag(tag: str) -> Pattern[str]:
    letters = (f"[{letter}{chr(ord(letter) + _FULL_WIDTH)}]" for letter in tag)
    name = "".join(f"{_PASSED_OVER}*{letter}" for letter in letters)
    ends = rf"(?!(?!{_PASSED_OVER})\w)"
    return re.compile(f"[{_OPENS}](?={name}{ends})", re.IGNORECASE)
