"""Small helpers for text that users and models read.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date


def one_line(text: str, limit: int = 0) -> str:
    """Return `text` with each run of white space as one space, shortened to `limit` characters if given."""
    line = " ".join(text.split())
    return shorten(line, limit) if limit else line


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, cut at a word and ended by `…` where it is cut.

    A text whose last space lies in the first half is cut in the middle of the word.
    """
    if len(text) <= limit:
        return text
    cut = text[: max(0, limit - 2)]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip() + " …"


def printable(text: str, instead: str = " ") -> str:
    """Return `text` with `instead` in the place of each control character: a stranger may have written it."""
    return "".join(letter if letter.isprintable() else instead for letter in text)


def encodable(text: str) -> str:
    """Return `text` as UTF-8 can hold it: each lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def moment(seconds: float | None) -> str | None:
    """Return a time in seconds since the epoch as in RFC 3339; None for none and 0."""
    from datetime import datetime  # not for the hooks, which start often

    return datetime.fromtimestamp(round(seconds)).astimezone().isoformat() if seconds else None


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: `1 turn`, `1,200 turns`; `many` is for irregular nouns."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_time(seconds: float) -> str:
    """Return a point in time (seconds since the epoch) in local time, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def midnight(day: date) -> float:
    """Return when a day begins in local time, in seconds since the epoch; 0 for a day before 1970."""
    from datetime import datetime  # hooks import this module, and few need it

    if day.year < 1970:  # time zones do not reach the first day of the calendar
        return 0.0
    try:
        return max(0.0, datetime(day.year, day.month, day.day).astimezone().timestamp())
    except (ValueError, OverflowError):  # nor the last one
        return float("inf")


CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English text and code."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a model reads `text` as. A Chinese or Japanese letter is one token."""
    wide = sum(1 for letter in text if letter >= "\u2e80")
    return wide + (len(text) - wide + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
# Characters that a reader does not see or skips: blanks, control and format characters, fillers, slashes.
_SKIPPED = (
    r"[\s/\uff0f\u2044\u2215\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e01ef]"
)
_BRACKETS = "<\uff1c\ufe64\u2039\u3008\u27e8\u276e"
_FULL_WIDTH = 0xFEE0
"""The distance in code points from a letter to its full-width form."""


def defuse(text: str, tag: str) -> str:
    """Return `text` with each `tag` made harmless, so that quoted text cannot end the quotation."""
    if not any(bracket in text for bracket in _BRACKETS):  # usually: compiling costs a hook 3 ms
        return text
    import re

    letters = (f"[{letter}{chr(ord(letter) + _FULL_WIDTH)}]" for letter in tag)
    name = "".join(f"{_SKIPPED}*{letter}" for letter in letters)
    end = rf"(?!(?!{_SKIPPED})\w)"
    return re.sub(f"[{_BRACKETS}](?={name}{end})", "&lt;", text, flags=re.IGNORECASE)
