"""`memkit status`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memkit.cli.context import Context, command
from memkit.cli.output import format_size, plural, print_fields


@command("status")
def status_command(context: Context) -> None:
    """Show what is remembered of this project, what is pending, and what failed.

    \b
      memkit status
      memkit status --json
    """
    value = _status(context)
    if context.as_json:
        context.print_json(value)
        return
    print_fields(
        {
            "project": value["project"] + (" (off)" if value["off"] else ""),
            "memory": _memory_line(value["memory"]),
            "index": _index_line(value["index"]),
            "archive": _archive_line(value["archive"]),
            "summaries": _summaries_line(value["summaries"]),
            "pending": f"{plural(value['waiting'], 'event')}; "
            + ("a worker is running" if value["worker"] else "no worker is running"),
            "service": _service_line(value["service"]),
            "pointers": f"{value['pointers']['given']:,} shown, {value['pointers']['followed']:,} followed",
            "failed": f"{plural(len(value['failed']), 'event')}; "
            f"{plural(value['hook_errors'], 'hook error')} in the log",
            "home": value["home"],
        }
    )
    for item in value["failed"]:
        context.say(f"failed: {item['event']} of session {item['session']}: {item['error']}")
    if value["failed"]:
        context.say("`memkit work --retry` tries them again")
    for reason in value["summaries"].get("reasons", ()):
        context.say(f"not summarized yet: {reason}")


def _memory_line(value: dict[str, Any]) -> str:
    size = f"{plural(value['days'], 'day')}, {plural(value['turns'], 'turn')}"
    if not value["days"]:
        return size
    last = f" to {value['last']}" if value["days"] > 1 else ""
    return f"{size}, {value['first']}{last}"


def _index_line(value: dict[str, Any]) -> str:
    state = "up to date"
    if not value["in_step"]:
        state = "out of date; the next search or `memkit index` updates it"
    return f"{plural(value['chunks'], 'chunk')}, {value['missing']:,} not embedded, {state}"


def _archive_line(value: dict[str, Any]) -> str:
    size = f"{plural(value['sessions'], 'session')}, {format_size(value['bytes'])}"
    return size if value["enabled"] else f"{size}; off"


def _summaries_line(value: dict[str, Any]) -> str:
    if not value["on"]:
        return "off (setting summarize.provider)"
    parts = [f"by {value['provider']}", f"{plural(value['waiting'], 'segment')} pending"]
    if value["reached"]:
        parts.append("today's budget is used up; they continue tomorrow")
    if value["given_up"]:
        parts.append(f"{value['given_up']:,} failed; `memkit summarize` tries them again")
    return "; ".join(
        [*parts, f"{value['tokens_today']:,} of {value['daily_tokens']:,} tokens today"]
    )


def _service_line(value: dict[str, Any]) -> str:
    if not value["running"]:
        return "not running; a session or a search starts it" if value["enabled"] else "off"
    return "running; see `memkit service status`"


def _status(context: Context) -> dict[str, Any]:
    from memkit.archive import Archive
    from memkit.hook.entries import days, newest_entries
    from memkit.index import is_up_to_date, open_chunks, read_files
    from memkit.ipc import launch, spool
    from memkit.recall import usage as events

    settings = context.settings()
    home, project = context.home, context.project
    known = days(project)
    files = read_files(project, home, settings)
    snapshot = open_chunks(project, home, settings)
    archive = Archive(home).size()
    usage = events.usage(home)
    return {
        "project": project.root,
        "off": project.is_off,
        "home": home.root,
        "memory": {
            "path": project.memory,
            "days": len(known),
            "turns": sum(1 for _ in newest_entries(project, known)),
            "first": known[0] if known else None,
            "last": known[-1] if known else None,
        },
        "index": {
            "files": len(files),
            "chunks": len(snapshot) if snapshot is not None else 0,
            "missing": snapshot.missing if snapshot is not None else 0,
            "in_step": is_up_to_date(snapshot, files, settings) if snapshot is not None else not files,
            "model": settings.embedding.model,
        },
        "archive": {
            "enabled": settings.archive.enabled,
            "sessions": archive.sessions,
            "bytes": archive.bytes,
        },
        "summaries": _summaries(context),
        "waiting": len(spool.waiting(home)),
        "worker": launch.worker_is_running(home),
        "service": {
            "enabled": settings.service.enabled,
            "running": launch.service_is_running(home),
        },
        "pointers": {"given": usage.given, "followed": usage.followed},
        "failed": [
            {
                "file": item.name,
                "event": item.record.get("event"),
                "session": item.record.get("session"),
                "error": item.record.get("error"),
            }
            for item in spool.failed(home)
        ],
        "hook_errors": _count_lines(Path(home.hook_log)),
    }


def _summaries(context: Context) -> dict[str, Any]:
    settings = context.settings().summarize
    if not settings.is_on:
        return {"on": False}
    from memkit.llm import find_provider
    from memkit.llm.calls import Calls, is_budget_reached
    from memkit.llm.ledger import Ledger
    from memkit.summarize.segments import group_into_calls
    from memkit.summarize.summarizer import Summarizer

    summarizer = Summarizer(
        context.home, lambda _: context.settings(), Calls(context.home, find_provider)
    )
    candidates = summarizer.select(context.project, "")
    following = next(group_into_calls(candidates, settings), [])
    material = sum(one.segment.tokens for one in following)
    today = Ledger(context.home).today()
    return {
        "on": True,
        "provider": settings.provider,
        "waiting": len(candidates),
        "given_up": sum(1 for one in candidates if one.attempt.given_up),
        "reasons": sorted({one.attempt.reason for one in candidates if one.attempt.reason}),
        "reached": bool(candidates) and is_budget_reached(today, settings, material),
        "tokens_today": today.tokens,
        "daily_tokens": settings.daily_tokens,
    }


def _count_lines(path: Path) -> int:
    if not os.path.exists(path):
        return 0
    with path.open("rb") as file:
        return sum(1 for _ in file)
