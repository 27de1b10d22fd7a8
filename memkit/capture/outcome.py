"""What reading transcripts brought, and who decides where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memkit.claude_code.turn import Turn
from memkit.hook.project import Project

Choose = Callable[[Turn], Project | None]
"""Says to which project a turn belongs; None if it is not to be remembered."""


@dataclass(slots=True)
class CaptureOutcome:
    """What reading a transcript brought: turns worth remembering, how many of them were new, how many
    others were left out because memkit is off there, the place is excluded or they were forgotten, the lines
    that were skipped, by kind, and the roots of the projects.
    """

    turns: int = 0
    written: int = 0
    left_out: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    projects: set[str] = field(default_factory=set)

    def add(self, other: CaptureOutcome) -> None:
        """Count what another one brought."""
        self.turns += other.turns
        self.written += other.written
        self.left_out += other.left_out
        self.projects |= other.projects
        for kind, count in other.skipped.items():
            self.skipped[kind] = self.skipped.get(kind, 0) + count
