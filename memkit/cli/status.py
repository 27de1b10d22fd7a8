"""`memkit status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkit.cli.context import Context, command
from memkit.cli.output import format_size, print_fields
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.settings.load import Settings


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
        state = "out of date until the next search"
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
    parts.append(f"{value['tokens_today']:,} of {value['daily_tokens']:,} tokens today")
    return "; ".join(parts)


def _service_line(value: dict[str, Any]) -> str:
    if not value["running"]:
        return "not running; a session or a search starts it" if value["enabled"] else "off"
    return "running; see `memkit service status`"


def _status(context: Context) -> dict[str, Any]:
    from memkit.archive import Archive
    from memkit.hook.entries import days, newest_entries
    from memkit.index import is_up_to_date, open_chunks, read_files
    from memkit.ipc import launch, spool
    from memkit.recall.usage import usage

    settings = context.settings()
    home, project = context.home, context.project
    known = days(project)
    files = read_files(project, home, settings)
    snapshot = open_chunks(project, home, settings)
    archive = Archive(home).size()
    recall = usage(home)
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
            "chunks": 0 if snapshot is None else len(snapshot),
            "missing": 0 if snapshot is None else snapshot.missing,
            "in_step": not files if snapshot is None else is_up_to_date(snapshot, files, settings),
            "model": settings.embedding.model,
        },
        "archive": {
            "enabled": settings.archive.enabled,
            "sessions": archive.sessions,
            "bytes": archive.bytes,
        },
        "summaries": _summaries(context, settings),
        "waiting": len(spool.waiting(home)),
        "worker": launch.worker_is_running(home),
        "service": {
            "enabled": settings.service.enabled,
            "running": launch.service_is_running(home),
        },
        "pointers": {"given": recall.given, "followed": recall.followed},
        "failed": [
            {"file": item.name, **{name: item.record.get(name) for name in ("event", "session", "error")}}
            for item in spool.failed(home)
        ],
        "hook_errors": _count_lines(Path(home.hook_log)),
    }


def _summaries(context: Context, settings: Settings) -> dict[str, Any]:
    chosen = settings.summarize
    if not chosen.is_on:
        return {"on": False}
    from memkit.llm import find_provider
    from memkit.llm.calls import Calls, is_budget_reached
    from memkit.llm.ledger import Ledger
    from memkit.summarize.segments import group_into_calls
    from memkit.summarize.summarizer import Summarizer

    summarizer = Summarizer(context.home, lambda _: settings, Calls(context.home, find_provider))
    candidates = summarizer.select(context.project, "")
    following = next(group_into_calls(candidates, chosen), [])
    material = sum(one.segment.tokens for one in following)
    today = Ledger(context.home).today()
    return {
        "on": True,
        "provider": chosen.provider,
        "waiting": len(candidates),
        "given_up": sum(1 for one in candidates if one.attempt.given_up),
        "reasons": sorted({one.attempt.reason for one in candidates if one.attempt.reason}),
        "reached": bool(candidates) and is_budget_reached(today, chosen, material),
        "tokens_today": today.tokens,
        "daily_tokens": chosen.daily_tokens,
    }


def _count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(1 for _ in file)
