"""`memkit status`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from memkit.cli.context import Context, command, counted, plain


@command("status")
def status_command(context: Context) -> None:
    """Show what is remembered of this project, what waits to be taken in, and what failed.

    \b
      memkit status
      memkit status --json
    """
    value = _status(context)
    if context.as_json:
        context.print_json(value)
        return
    memory, index = value["memory"], value["index"]
    days = counted(memory["days"], "day")
    since = f", {memory['first']} to {memory['last']}" if memory["days"] > 1 else ""
    if memory["days"] == 1:
        since = f", {memory['first']}"
    state = (
        "in step" if index["in_step"] else "behind; the next search or `memkit index` mends that"
    )
    lines = {
        "project": value["project"] + (" (switched off)" if value["off"] else ""),
        "memory": f"{days}, {counted(memory['turns'], 'turn')}{since}",
        "index": f"{counted(index['chunks'], 'chunk')}, {index['missing']} not embedded, {state}",
        "archive": _archive_line(value["archive"]),
        "summaries": _summaries_line(value["summaries"]),
        "waiting": f"{counted(value['waiting'], 'event')}; "
        + ("a worker is running" if value["worker"] else "no worker is running"),
        "service": _service_line(value["service"]),
        "pointers": f"{value['pointers']['given']} times given, {value['pointers']['followed']} followed",
        "failed": f"{counted(len(value['failed']), 'event')} given up, "
        f"{counted(value['hook_errors'], 'hook error')} logged",
        "home": value["home"],
    }
    for name, text in lines.items():
        click.echo(f"{name:<11}{plain(text)}")
    for item in value["failed"]:
        context.say(
            f"given up: {item['event']} of session {item['session']}: {item['error']}"
        )
    if value["failed"]:
        context.say("`memkit work --retry` tries them again")
    for reason in value["summaries"].get("reasons", ()):
        context.say(f"not summarized yet: {plain(reason)}")


def _archive_line(value: dict[str, Any]) -> str:
    size = f"{counted(value['sessions'], 'session')}, {value['bytes'] / 1e6:.1f} MB"
    return size if value["enabled"] else f"{size}; switched off"


def _summaries_line(value: dict[str, Any]) -> str:
    if not value["on"]:
        return "off; `memkit config set summarize.provider auto` turns them on"
    parts = [f"by {value['provider']}", f"{counted(value['waiting'], 'segment')} waiting"]
    if value["reached"]:
        parts.append("today's budget is reached, they go on tomorrow")
    if value["given_up"]:
        parts.append(f"{value['given_up']} given up; `memkit summarize` tries them again")
    today = f"{value['tokens_today']:,} of {value['daily_tokens']:,} tokens today"
    return "; ".join([*parts, today])


def _service_line(value: dict[str, Any]) -> str:
    if not value["running"]:
        return "not running; a session or a search starts it" if value["enabled"] else "switched off"
    return "running; `memkit service status` says more"


def _status(context: Context) -> dict[str, Any]:
    from memkit.archive.archive import Archive
    from memkit.hook.session_facts import days, newest_entries
    from memkit.index.current import is_in_step, open_chunks, read_files
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
            "in_step": is_in_step(snapshot, files, settings) if snapshot is not None else not files,
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
    from memkit.summarize.candidates import group_into_calls
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
