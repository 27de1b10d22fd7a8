"""A memory at a glance: its size, its last turn, costs, and health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, TypedDict

import memkit
from memkit.archive.archive import Archive
from memkit.doctor import Finding, open_subject
from memkit.hook.tally import full_tally
from memkit.ipc import spool
from memkit.llm.ledger import Call, Ledger, Total, total, totals
from memkit.paths import Home
from memkit.settings.load import Settings
from memkit.stats import directory_bytes
from memkit.timeline.tree import Timeline

SHOWN_DAYS = 90
"""The days of costs that are shown, the newest ones."""


class Counts(TypedDict):
    """The size of a memory. `entries` are those of the index: parts of turns, notes, bullets."""

    days: int
    sessions: int
    turns: int
    notes: int
    entries: int


class Sizes(TypedDict):
    """Bytes on the disk. Archive and index are those of all projects."""

    memory: int
    archive: int
    index: int


class IndexState(TypedDict):
    """Whether the index has every change of the files, and how many entries have no vector yet."""

    in_step: bool
    missing: int
    model: str


class LastTurn(TypedDict):
    """The last turn that was captured; `title` is that of its part of the session."""

    id: str
    session: str
    time: str
    title: str


@dataclass
class DayCost(Total):
    """The model calls of a day."""

    day: str = ""


@dataclass
class ModelCost(Total):
    """The calls of a model."""

    model: str = ""


class Cost(TypedDict):
    """The model calls of the memory home, as `memkit cost` counts them."""

    total: Total
    today: Total
    month: Total
    daily_tokens: int
    days: list[DayCost]
    models: list[ModelCost]


class MemoryOverview(TypedDict):
    """Sizes, the last turn, costs, and health.

    `waiting` counts the events that are not captured yet, `failed` those that could not be.
    """

    version: str
    project: str
    off: bool
    first: str | None
    last: str | None
    counts: Counts
    bytes: Sizes
    index: IndexState
    last_turn: LastTurn | None
    waiting: int
    failed: int
    cost: Cost
    health: list[Finding]


def overview(
    timeline: Timeline, home: Home, settings: Settings, index: Mapping[str, Any]
) -> MemoryOverview:
    """Return the overview of the project of `timeline`.

    `index` is what `memkit.Memory.index_status` returns. Costs, waiting events, and most of the health are
    those of the whole memory home. The checks of health are those that the service runs every hour. Raise
    `MemkitError`.
    """
    from memkit.doctor.checks import CHECKS, examine  # imports numpy

    counted = full_tally(home, timeline.project)
    hourly = [one for one in CHECKS if one.hourly]
    return {
        "version": memkit.__version__,
        "project": timeline.project.root,
        "off": timeline.project.is_off,
        "first": counted.first or None,
        "last": counted.day or None,
        "counts": {
            "days": counted.days,
            "sessions": counted.sessions,
            "turns": counted.turns,
            "notes": counted.notes,
            "entries": index["chunks"],
        },
        "bytes": {
            "memory": directory_bytes(timeline.project.memory),
            "archive": Archive(home).size().bytes,
            "index": directory_bytes(home.index),
        },
        "index": {"in_step": index["in_step"], "missing": index["missing"], "model": index["model"]},
        "last_turn": _last_turn(timeline),
        "waiting": len(spool.waiting(home)),
        "failed": len(spool.failed(home)),
        "cost": _cost(Ledger(home).calls(), settings.summarize.daily_tokens),
        "health": list(examine(open_subject(home, timeline.project), hourly)),
    }


def _last_turn(timeline: Timeline) -> LastTurn | None:
    for name in reversed(timeline.names):
        segments = timeline.segments_of(date.fromisoformat(name[:10]))
        for one in sorted(segments, key=lambda one: one.ends, reverse=True):
            if one.turns:
                time = f"{name[:10]} {one.ends}".strip()
                return {"id": one.turns[-1], "session": one.session, "time": time, "title": one.title}
    return None


def _cost(calls: list[Call], daily_tokens: int) -> Cost:
    today = date.today()
    days, models = totals(calls, "day"), totals(calls, "model")
    return {
        "total": total(calls),
        "today": days.get(today.isoformat(), Total()),
        "month": total(one for one in calls if one.day >= today.replace(day=1).isoformat()),
        "daily_tokens": daily_tokens,
        "days": [DayCost(**asdict(one), day=day) for day, one in sorted(days.items())[-SHOWN_DAYS:]],
        "models": [ModelCost(**asdict(one), model=name) for name, one in sorted(models.items())],
    }
