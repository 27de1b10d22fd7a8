"""The machine-readable comments in memory files, e.g. `<!-- turn:8ad3df7f -->`.

The one parser and the one writer of them. An anchor is an HTML comment that holds only
`key:value` pairs with the keys memkit knows; any other comment is the user's own text.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import re

KEYS = (
    "session", "branch", "summary", "turn", "turns", "grip", "grips", "chunks", "fact", "compacted", "check",
    "note",
)  # fmt: skip

UNVERIFIED = "unverified"
"""The value of `check` for a line that says something its sources do not."""

VALUE_CHARACTERS = 120
"""The longest value; what goes beyond is cut."""

_PAIR = r"(?:{}):[^\s<>]+".format("|".join(KEYS))
# Not from the middle of a run of blanks: a long run would be tried again from each of them.
_ANCHOR = re.compile(
    rf"(?<![ \t])[ \t]*<!--[ \t]+({_PAIR}(?:[ \t]+{_PAIR})*)[ \t]+-->"
)
_UNSAFE = re.compile(r"[^\w./@+=,-]")


def parse(text: str) -> dict[str, str]:
    """The pairs of all anchors in `text`, later ones winning; empty if there is none."""
    found: dict[str, str] = {}
    for match in _ANCHOR.finditer(text):
        for pair in match.group(1).split():
            key, _, value = pair.partition(":")
            found[key] = value
    return found


def strip(text: str) -> str:
    """`text` without its anchors and the blanks before each; everything else unchanged."""
    return _ANCHOR.sub("", text)


def render(**pairs: str) -> str:
    """One anchor holding `pairs`, in the order given; empty values are left out.

    Characters that could end the comment or split a pair become `_`, so no value can forge structure.
    """
    fields = [f"{key}:{safe(value)}" for key, value in pairs.items() if value]
    return "<!-- {} -->".format(" ".join(fields))


def safe(value: str) -> str:
    """`value` as it may stand in an anchor."""
    # Two hyphens would end the comment for a strict parser.
    return re.sub(r"-{2,}", "-", _UNSAFE.sub("_", value))[:VALUE_CHARACTERS]
