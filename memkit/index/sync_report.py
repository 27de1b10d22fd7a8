"""What a pass over a project's memory files did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SyncReport:
    """What a pass changed.

    `missing` chunks have no vector yet, for the reason in `degraded`; `replaced` counts the bytes, by
    source, that were no UTF-8; `unreadable` names, a line each, what could not be read: of that the index
    keeps what it had.
    """

    root: str
    files: int = 0
    chunks: int = 0
    added: int = 0
    deleted: int = 0
    embedded: int = 0
    missing: int = 0
    degraded: str = ""
    replaced: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
