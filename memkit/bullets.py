"""Read the bullets of memory files: the lines of summaries and extracts, with their citations.

    - Decided: the staging gateway listens on 7443. <!-- grip:82c57f55 turns:8b52f4fb proof:1f0c22d9 -->
    - Open: is the limit per user? (unverified) <!-- grip:k3f9a1 turns:8b52f4fb check:unverified -->
    - Changed: the limit is 20. (not checked yet) <!-- grip:05ac16a2 turns:8b52f4fb check:unchecked -->

The only parser of bullets. Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memkit import anchors

DECIDED = "Decided: "
OUTCOME = "Outcome: "
OPEN = "Open: "
EDITED = "Edited: "
FAILED = "Failed: "
COMMITTED = "Committed: "
PULL_REQUEST = "Pull request: "
"""The labels of lines made without a model. `memkit.summarize.bullets` has those that a model chooses."""

MARKS = {anchors.UNVERIFIED: f"({anchors.UNVERIFIED})", anchors.UNCHECKED: "(not checked yet)"}
"""What a reader sees, by the value of `check` up to the first dot."""
STILL_FAILING, NOT_RUN_AGAIN = "; still failing", "; not run again"
UNSOLVED = (STILL_FAILING, NOT_RUN_AGAIN)
"""The ends of a line about a failure after which nothing passed."""

SENTENCE_CHARACTERS = 200
"""The longest sentence that can prove a bullet. Longer ones are cut at words."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


class WrittenBullet(NamedTuple):
    """A bullet as it is in a file.

    `text` is the line without list sign and anchors, on one line with single spaces. `id` is the ID of its
    citation. `turns` prove it, above all the sentence with the ID `proof`, "" if unknown. `check` is the
    value of its mark, "" for none. `is_extract` tells that no model made it. Anybody can write such a line
    into a repository: anchors prove nothing.
    """

    line: str
    text: str
    id: str
    turns: tuple[str, ...]
    proof: str
    check: str
    is_extract: bool

    @property
    def words(self) -> str:
        """The text without its mark."""
        return self.text.removesuffix(MARKS.get(self.check.partition(".")[0], "")).rstrip()

    @property
    def claim(self) -> str:
        """The text of a model's bullet without its label and its mark."""
        return self.words.partition(": ")[2]

    @property
    def is_verified(self) -> bool:
        """Whether nothing is known against it, and nothing is left to check."""
        return not self.check

    @property
    def is_doubted(self) -> bool:
        """Whether a check failed. A bullet that is not checked yet is neither verified nor doubted."""
        return self.check == anchors.UNVERIFIED

    @property
    def lasting_id(self) -> str:
        """The ID to print: a summary replaces the lines of an extract, but not the turns that they cite."""
        return next(iter(self.turns if self.is_extract else ()), self.id)


def read_bullet(line: str) -> WrittenBullet | None:
    """Return the bullet of a line, or None. The user may have indented the line, or wrapped it above."""
    if "grip:" not in line:
        return None
    pairs = anchors.parse(line)
    if "grip" not in pairs:
        return None
    text = bullet_words(line)
    shown = (check for check, mark in MARKS.items() if text.endswith(mark))
    known = pairs.get("check", "")
    return WrittenBullet(
        line=line,
        text=text,
        id=pairs["grip"],
        turns=tuple(filter(None, pairs.get("turns", "").split(","))),
        proof=pairs.get("proof", ""),
        check=known if known.partition(".")[0] in MARKS else next(shown, ""),
        is_extract=pairs.get("by") == "extract",
    )


def read_bullets(lines: Iterable[str]) -> Iterator[tuple[int, WrittenBullet]]:
    """Yield each bullet with the number of its line, from 0."""
    for number, line in enumerate(lines):
        bullet = read_bullet(line)
        if bullet is not None:
            yield number, bullet


def bullet_line(words: str, grip: str, turns: str, proof: str = "", check: str = "") -> str:
    """Return a bullet as a line: its label, text, and mark, and the IDs of its citation and proof."""
    mark = f" {MARKS[check.partition('.')[0]]}" if check else ""
    return f"- {words}{mark} {anchors.render(grip=grip, turns=turns, proof=proof, check=check)}"


def bullet_words(line: str) -> str:
    """Return a list item without its sign and anchors, on one line."""
    return " ".join(anchors.strip(line).strip().removeprefix("- ").split())


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a turn's text that can prove a bullet."""
    import textwrap  # compiles expressions that hooks do not need

    for sentence in _SENTENCE_END.split(text):
        yield from textwrap.wrap(sentence, SENTENCE_CHARACTERS)
