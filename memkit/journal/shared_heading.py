"""The one heading that a session shares with its only turn, and the two headings that it stands for.

    ## 16:30 Fix the flaky test <!-- session:03b1c77e-… branch:main turn:1c9d02aa -->
"""

from __future__ import annotations

from memkit import anchors


class SharedHeading(str):
    """The blank line between the heading of a session and that of its only turn, which share a line in the
    file: `parts` are the two headings as read, and `line` that line.
    """

    parts: tuple[str, str] | None = None
    line = ""


def parted(line: str) -> list[str]:
    """Return a line, or the two headings that it stands for with a blank line between."""
    if line[:3] != "## " or " turn:" not in line:
        return [line]
    pairs = anchors.parse(line)
    if not pairs.keys() >= {"session", "turn"} or "note" in pairs:
        return [line]
    words, turn = heading_words(line), pairs.pop("turn")
    above = f"{words} {anchors.render(**pairs)}"
    below = f"#{words} {anchors.render(turn=turn, branch=pairs.get('branch', ''))}"
    shared = SharedHeading()
    shared.parts, shared.line = (above, below), line
    return [above, shared, below]


def heading_words(heading: str) -> str:
    """Return a heading without its anchor."""
    return anchors.strip(heading).rstrip()
