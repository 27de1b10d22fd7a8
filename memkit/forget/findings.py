"""What the rules of today would redact of older text, and where it stands. Never the secret itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from memkit.privacy.redact import MARK, visible

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """One secret: in what (`journal`, `archive`, …), in which file, or session and turn, of it, on which
    line (from 1, None where there are none), and of which kind, as in `[redacted:kind]`.
    """

    where: str
    place: str
    line: int | None
    kind: str

    def as_dict(self) -> dict[str, Any]:
        """As `memkit audit --json` prints it."""
        return asdict(self)


class SecretFinder:
    """Redacts text with `redact`, and notes what that found."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self.found: list[SecretFinding] = []

    def at(self, where: str, place: str, line: int | None = None) -> Redact:
        """`redact` for text that stands on one line, or has none worth naming."""

        def apply(text: str) -> str:
            return self._note(text, lambda offset, kind: SecretFinding(where, place, line, kind))

        return apply

    def lines_of(self, where: str, place: str) -> Callable[[int, str], str]:
        """`redact` for parts of a file, each told with the number of its first line."""

        def apply(line: int, text: str) -> str:
            return self._note(text, lambda offset, kind: SecretFinding(where, place, line + offset, kind))

        return apply

    def _note(self, text: str, make: Callable[[int, str], SecretFinding]) -> str:
        redacted = self._redact(text)
        text = visible(text)  # a color is no secret
        if redacted != text:
            self.found += [make(offset, kind) for offset, kind in added_marks(text, redacted)]
        return redacted


def added_marks(text: str, redacted: str) -> list[tuple[int, str]]:
    """Which marks `redacted` has that `text` had not: the line of `text`, from 0, and the kind of each.

    Both differ, and in nothing but what marks stand for. Where two marks stand close together the line
    can be that of the other one.
    """
    marks = list(MARK.finditer(redacted))
    ends = [*(mark.start() for mark in marks), len(redacted)][1:]
    found = []
    position = marks[0].start() if marks else 0
    for mark, end in zip(marks, ends, strict=True):
        kept = redacted[mark.end() : end]
        if text.startswith(mark[0] + kept, position):
            position += len(mark[0] + kept)
            continue
        found.append((text.count("\n", 0, position), mark[1]))
        after = text.find(kept, position + 1) if end < len(redacted) else len(text) - len(kept)
        position = max(after, position) + len(kept)
    return found or [(0, "secret")]
