"""A memory at a glance: its size, its last turn, costs, and health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import memkit
from memkit.archive.archive import Archive
from memkit.doctor import open_subject
from memkit.doctor.checks import CHECKS, examine
from memkit.hook.tally import full_tally
from memkit.ipc import spool
from memkit.llm.ledger import Call, Ledger, Total, total, totals
from memkit.paths import Home
from memkit.settings.load import Settings
from memkit.stats import directory_bytes
from memkit.timeline.tree import Timeline

SHOWN_DAYS = 90
"""The days of costs that are shown, the newest ones."""


def overview(
    timeline: Timeline, home: Home, settings: Settings, index: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the overview of the project of `timeline`.

    `index` is what `memkit.Memory.index_status` returns. Costs, waiting events, and most of the health are
    those of the whole memory home. The checks of health are those that the service runs every hour. Raise
    `MemkitError`.
    """
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
        "index": {name: index[name] for name in ("in_step", "missing", "model")},
        "last_turn": _last_turn(timeline),
        "waiting": len(spool.waiting(home)),
        "failed": len(spool.failed(home)),
        "cost": _cost(Ledger(home).calls(), settings.summarize.daily_tokens),
        "health": [asdict(one) for one in examine(open_subject(home, timeline.project), hourly)],
    }


def _last_turn(timeline: Timeline) -> dict[str, str] | None:
    for name in reversed(timeline.names):
        segments = timeline.segments_of(date.fromisoformat(name[:10]))
        for one in sorted(segments, key=lambda one: one.ends, reverse=True):
            if one.turns:
                time = f"{name[:10]} {one.ends}".strip()
                return {"id": one.turns[-1], "session": one.session, "time": time, "title": one.title}
    return None


def _cost(calls: list[Call], daily_tokens: int) -> dict[str, Any]:
    today = date.today()
    days = totals(calls, "day")
    return {
        "total": asdict(total(calls)),
        "today": asdict(days.get(today.isoformat(), Total())),
        "month": asdict(total(one for one in calls if one.day >= today.replace(day=1).isoformat())),
        "daily_tokens": daily_tokens,
        "days": [{"day": day, **asdict(one)} for day, one in sorted(days.items())[-SHOWN_DAYS:]],
        "models": [{"model": name, **asdict(one)} for name, one in sorted(totals(calls, "model").items())],
    }
