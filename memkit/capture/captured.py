"""What reading a transcript brought."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Captured:
    """How many turns were worth remembering, how many of them were new, how many others were left out
    because memkit is off there, the place is excluded or they were forgotten, the lines that were skipped, by kind, and the
    roots of the projects.
    """

    turns: int = 0
    written: int = 0
    left_out: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    projects: set[str] = field(default_factory=set)

    def add(self, other: Captured) -> None:
        """Count what `other` brought as well, but for the lines."""
        self.turns += other.turns
        self.written += other.written
        self.left_out += other.left_out
        self.projects |= other.projects
