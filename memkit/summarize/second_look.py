"""A second look at a model's bullets: a later call asks whether passages of their turns support each one.

The first look shows the nearest sentences, the next ones the whole turn. `supported` ends it. Two
contradictions or three objections mark the bullet, and one does not: a judge errs too. The mark holds the
answers so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

from memkit.anchors import UNCHECKED, UNVERIFIED
from memkit.bullets import WrittenBullet
from memkit.text import estimate_tokens

YES, NO, UNKNOWN = "yes", "no", "unknown"
VERDICTS = {"supported": YES, "contradicted": NO, "not said": UNKNOWN}

MOST_LOOKS = 3

MOST_QUESTIONS = 40
"""The most questions of a call."""

LOOK_TOKENS = 5_000
"""The most tokens of the questions of a call, in addition to its segments."""

LOOK_SHARE = 0.4
"""Estimated tokens of questions per token of segments."""

ALONE_SECONDS = 72 * 3600.0
"""Questions that no call took along for so long get one of their own. Segments wait for two days at most."""

TAG_TOKENS = 20


@dataclass(frozen=True, slots=True)
class Question:
    """A bullet that waits for a look: where it is, and the passages to show."""

    root: str
    session: str
    day: str
    bullet: WrittenBullet
    passages: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """The estimated length."""
        return estimate_tokens("\n".join([self.bullet.claim, *self.passages])) + TAG_TOKENS


def read_verdicts(value: Any) -> dict[int, str]:
    """Return the verdicts in a model's answer by the number of their question, "" for an unknown word."""
    found: dict[int, str] = {}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("number"), int):
            verdict = str(entry.get("verdict")).strip().casefold().replace("_", " ")
            found.setdefault(entry["number"], VERDICTS.get(verdict, ""))
    return found


def answers_so_far(check: str) -> str:
    """Return the first letters of the answers in an unchecked bullet's mark, `x` for none."""
    return check.partition(".")[2]


def is_waiting(bullet: WrittenBullet) -> bool:
    """Return whether another look may settle an unchecked bullet."""
    return len(answers_so_far(bullet.check)) < MOST_LOOKS


def checked(bullet: WrittenBullet, verdict: str) -> str:
    """Return the bullet's mark after a look: "" if it is supported. Without an answer, `verdict` is ""."""
    if verdict == YES:
        return ""
    answers = answers_so_far(bullet.check) + (verdict[:1] or "x")
    is_doubted = answers.count(NO[0]) > 1 or len(answers.replace("x", "")) == MOST_LOOKS
    return UNVERIFIED if is_doubted else f"{UNCHECKED}.{answers}"


def look_instructions() -> str:
    """Return how to judge the questions of a call."""
    file = resources.files("memkit.summarize").joinpath("second_look_instructions.md")
    return file.read_text(encoding="utf-8")
