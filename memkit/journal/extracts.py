"""Write the lines that memkit makes from other text of a day, and recognize the unedited ones.

    - Edited: src/app.ts ×3, README.md <!-- grip:1f0c44a2 turns:8ad3df7f by:extract -->
    - 14:02 [Staging gateway port](#1402-staging-gateway-port) <!-- overview:90ab33c1 turns:8ad3df7f -->

The first one belongs to an extract, the second one to the overview of a day. `grip` and `overview` are hashes
of the words and the turns. A line that no longer matches its hash belongs to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memkit import anchors
from memkit.journal.markup import short_id

_BY = "extract"
_MARK = "by:extract"
_OVERVIEW = "overview"
_OVERVIEW_MARK = "<!-- overview:"


def extract_line(text: str, turns: Sequence[str]) -> str:
    """Return `text`, which `turns` prove, as a line of a day file."""
    names, text = ",".join(map(anchors.safe, turns)), text.strip()
    return f"- {text} {anchors.render(grip=short_id(_BY, text, names), turns=names, by=_BY)}"


def is_unedited(line: str) -> bool:
    """Return whether a line is from an extract and reads as it was written."""
    if _MARK not in line or not line.startswith("- "):
        return False
    pairs = anchors.parse(line)
    text = anchors.strip(line).removeprefix("- ").rstrip()
    return pairs.get("by") == _BY and pairs.get("grip") == short_id(_BY, text, pairs.get("turns", ""))


def overview_line(text: str, *, turns: str = "", note: str = "") -> str:
    """Return `text` as a line of a day's overview. It stands for the session of `turns`, or for a note."""
    mark = short_id(_OVERVIEW, text, turns, note)
    return f"- {text} {anchors.render(overview=mark, turns=turns, note=note)}"


def is_overview(line: str, *, unedited: bool = False) -> bool:
    """Return whether a line is from an overview; with `unedited`, also whether it reads as it was written."""
    if _OVERVIEW_MARK not in line or "overview" not in (pairs := anchors.parse(line)):
        return False
    return not unedited or line == overview_line(
        anchors.strip(line).removeprefix("- "),
        turns=pairs.get("turns", ""),
        note=pairs.get("note", ""),
    )


def _is_derived(line: str) -> bool:
    return is_unedited(line) or is_overview(line, unedited=True)


def redacted_lines(lines: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines `after` redaction of `lines`, with a new hash for each changed line of ours."""
    if len(lines) != len(after):  # a secret spanned several lines
        return list(after)
    return [
        new if new == old or not _is_derived(old) else _signed(new)
        for old, new in zip(lines, after, strict=True)
    ]


def _signed(line: str) -> str:
    text, pairs = anchors.strip(line).removeprefix("- ").rstrip(), anchors.parse(line)
    if "overview" in pairs:
        return overview_line(text, turns=pairs.get("turns", ""), note=pairs.get("note", ""))
    return extract_line(text, pairs.get("turns", "").split(","))


def holds_derived(text: str) -> bool:
    """Return whether `text` may hold lines of an extract or an overview."""
    return _MARK in text or _OVERVIEW_MARK in text


def without_derived(lines: Sequence[str]) -> list[int]:
    """Return the numbers, from 0, of the lines that remain without unedited extracts and overviews.

    The blank line that follows them goes with them if another one precedes them.
    """
    return remaining(lines, (number for number, line in enumerate(lines) if _is_derived(line)))


def remaining(lines: Sequence[str], gone: Iterable[int]) -> list[int]:
    """Return the numbers of `lines` that are not `gone`.

    Blank lines in a row become one next to a removed line.
    """
    dropped = set(gone)
    kept: list[int] = []
    was_cut = False
    for number, line in enumerate(lines):
        if number in dropped:
            was_cut = True
            continue
        is_blank = not line.strip()
        if not (was_cut and is_blank and kept and not lines[kept[-1]].strip()):
            kept.append(number)
            was_cut = was_cut and is_blank
    while was_cut and kept and not lines[kept[-1]].strip():
        kept.pop()
    return kept
