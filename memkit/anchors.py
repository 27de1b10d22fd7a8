"""The machine-readable comments in memory files, such as `<!-- turn:8ad3df7f -->`.

The only parser and writer of anchors. An anchor is an HTML comment with nothing but `key:value` pairs of
known keys. Every other comment is the user's own text.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import re

KEYS = (
    "session", "branch", "summary", "extract", "turn", "turns", "grip", "grips", "chunks", "fact",
    "supersedes", "compacted", "check", "by", "note", "overview", "rollup", "memkit", "shared", "origin",
    "title", "proof",
)  # fmt: skip

END = "<!-- memkit:end -->"
"""The line that ends memkit's sections in a file of OpenClaw's. What follows belongs to others."""

UNVERIFIED = "unverified"
"""The value of `check` for a line that its sources do not fully support."""

UNCHECKED = "unchecked"
"""The value of `check` for a bullet that waits for a second look, before a dot and the verdicts so far."""

VALUE_CHARACTERS = 120
"""The longest value. Longer ones are cut."""

_PAIR = r"(?:{}):[^\s<>]+".format("|".join(KEYS))
# Never start inside a run of spaces: a long run would be tried again from each position.
_ANCHOR = re.compile(
    rf"(?<![ \t])[ \t]*<!--[ \t]+({_PAIR}(?:[ \t]+{_PAIR})*)[ \t]+-->"
)
_HEADING = re.compile(r"^#{2,3} [^\n]*<!--[^\n]*", re.MULTILINE)
_SECTIONS = frozenset({"session", "turn", "note"})
_END = re.compile(rf"^{END}[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_UNSAFE = re.compile(r"[^\w./@+=,-]")


def parse(text: str) -> dict[str, str]:
    """Return the pairs of all anchors in `text`; later ones win. Empty if there is none."""
    found: dict[str, str] = {}
    for match in _ANCHOR.finditer(text):
        for pair in match.group(1).split():
            key, _, value = pair.partition(":")
            found[key] = value
    return found


def split_end(text: str) -> tuple[str, str | None]:
    """Return the text above the line `END`, and that below it (None if there is no such line).

    A line with a session, turn, or note below it counts as text: whoever put it there hides no section.
    """
    if END not in text:
        return text, None
    headings = (line for line in _HEADING.finditer(text) if parse(line[0]).keys() & _SECTIONS)
    match = _END.search(text, max((line.end() for line in headings), default=0))
    return (text, None) if match is None else (text[: match.start()], text[match.end() :])


def own_part(text: str) -> str:
    """Return the text above the line `END`."""
    return split_end(text)[0]


def strip(text: str) -> str:
    """Return `text` without its anchors and the spaces before them."""
    return _ANCHOR.sub("", text)


def render(**pairs: str) -> str:
    """Return one anchor with `pairs`, in this order. Empty values are left out.

    Characters that could end the comment or split a pair become `_`, so no value can forge structure.
    """
    fields = [f"{key}:{safe(value)}" for key, value in pairs.items() if value]
    return "<!-- {} -->".format(" ".join(fields))


def safe(value: str) -> str:
    """Return `value` in a form that fits into an anchor."""
    # Two hyphens would end the comment for a strict parser.
    return re.sub(r"-{2,}", "-", _UNSAFE.sub("_", value))[:VALUE_CHARACTERS]
