"""`memkit status`."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkit.agents.codex.installation import is_installed
from memkit.cli.context import Context, command
from memkit.cli.output import format_cost, format_size, print_fields, short_path
from memkit.hook.tally import full_tally
from memkit.ipc import launch, spool
from memkit.llm.ledger import Ledger, Total, total
from memkit.settings.load import Settings, may_summarize
from memkit.text import format_time, plural

if TYPE_CHECKING:
    from memkit.settings import SummarizeSettings

MINUTES_PER_DAY = 1440


@command("status")
def status_command(context: Context) -> None:
    """Show what is remembered of this project, what is pending, and what failed.

    \b
      memkit status
      memkit status --json
    """
    from memkit.search.usage import pointers_line

    value = _status(context)
    if context.as_json:
        context.print_json(value)
        return
    print_fields(
        {
            "project": short_path(value["project"]) + (" (off)" if value["off"] else ""),
            "memory": _memory_line(value["memory"]),
            "index": _index_line(value["index"]),
            "archive": _archive_line(value["archive"]),
            **summaries_lines(value["summaries"]),
            "pending": f"{plural(value['waiting'], 'event')}; "
            + ("a worker is running" if value["worker"] else "no worker is running"),
            "service": _service_line(value["service"]),
            "sync": _sync_line(value["sync"]),
            "agents": agents_line(value["agents"]),
            **({"codex": _codex_line(value["codex"]["last_hook"])} if value["codex"] else {}),
            "pointers": pointers_line(value["pointers"]),
            "failed": f"{plural(len(value['failed']), 'event')}; "
            f"{plural(value['hook_errors'], 'hook error')} in the log",
            "home": short_path(value["home"]),
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
    if value["notes"]:
        size += f", {plural(value['notes'], 'note')}"
    if not value["days"]:
        return size
    last = f" to {value['last']}" if value["days"] > 1 else ""
    return f"{size}, {value['first']}{last}"


def _index_line(value: dict[str, Any]) -> str:
    state = "up to date" if value["in_step"] else "out of date until the next search"
    return f"{plural(value['chunks'], 'chunk')}, {value['missing']:,} not embedded, {state}"


def _archive_line(value: dict[str, Any]) -> str:
    size = f"{plural(value['sessions'], 'session')}, {format_size(value['bytes'])}"
    return size if value["enabled"] else f"{size}; off"


def summaries_lines(value: dict[str, Any]) -> dict[str, str]:
    """Return in words what `summaries_state` returns: the state, and what was spent if anything can be."""
    parts = [f"off, because {value['why_off']}", *(["extracts need no model"] if value["extracts"] else [])]
    if value["on"]:
        parts = [value["why_on"], f"{plural(value['waiting'], 'segment')} pending"]
        if value["unannounced"]:
            parts.append("they start after the next session in a terminal has said so")
        elif value["reached"]:
            parts.append("today's budget is used up; they continue tomorrow")
        elif value["when"]:
            parts.append(value["when"])
        if value["given_up"]:
            parts.append(f"{value['given_up']:,} failed; `memkit summarize` tries them again")
    lines = {"summaries": "; ".join(parts)}
    today, month = value["today"], value["month"]
    if value["on"] or month["calls"]:
        lines["spent"] = (
            f"today {today['tokens']:,} of {value['daily_tokens']:,} tokens, {today['cost']}; "
            f"this month {month['tokens']:,}, {month['cost']}"
        )
    return lines


def captured_agents(settings: Settings) -> list[str]:
    """Return the names of the agents whose sessions are captured as they happen."""
    from memkit.agents.registry import CLAUDE_CODE

    watched = settings.capture.agents if settings.service.enabled else ()
    hooked = ["codex"] if is_installed() and "codex" not in watched else []
    return [CLAUDE_CODE.name, *hooked, *watched]


def _codex_state(context: Context) -> dict[str, Any] | None:
    """Return when a hook of Codex last ran, in seconds since the epoch; None if Codex has none of memkit."""
    from memkit.doctor.capture import last_events

    if not is_installed():
        return None
    return {"last_hook": max(last_events(context.home, "codex").values(), default=None)}


def _codex_line(last: float | None) -> str:
    ran = f"the last one ran {format_time(last)}" if last else "none has run yet; /hooks in Codex shows why"
    return f"memkit's hooks are set up; {ran}"


def agents_line(captured: list[str]) -> str:
    """Return in words what `captured_agents` returns."""
    from memkit.agents.registry import AGENTS

    rest = [one.name for one in AGENTS if one.name not in captured]
    return f"{', '.join(captured)} captured" + (f"; {', '.join(rest)} not" if rest else "")


def _sync_line(value: dict[str, Any]) -> str:
    if not value["place"]:
        return "off"
    last = f"{format_time(value['last'])}, {value['result']}" if value["last"] else "never yet"
    return f"{value['place']}; {last}"


def _service_line(value: dict[str, Any]) -> str:
    if not value["running"]:
        return "not running; a session or a search starts it" if value["enabled"] else "off"
    return "running; see `memkit service status`"


def _status(context: Context) -> dict[str, Any]:
    from memkit.archive.archive import Archive
    from memkit.search.usage import usage
    from memkit.service.jobs import JobBook

    settings = context.settings()
    home, project = context.home, context.project
    counted = full_tally(home, project)
    archive = Archive(home).size()
    recall, synced = usage(home), JobBook(home).state("sync")
    return {
        "project": project.root,
        "off": project.is_off,
        "home": home.root,
        "memory": {
            "path": project.memory,
            "days": counted.days,
            "turns": counted.turns,
            "notes": counted.notes,
            "first": counted.first or None,
            "last": counted.day or None,
        },
        "index": context.memory().index_status(),
        "archive": {
            "enabled": settings.archive.enabled,
            "sessions": archive.sessions,
            "bytes": archive.bytes,
        },
        "summaries": summaries_state(context, settings),
        "waiting": len(spool.waiting(home)),
        "worker": launch.worker_is_running(home),
        "service": {"enabled": settings.service.enabled, "running": launch.service_is_running(home)},
        "sync": {"place": settings.sync.place, "last": synced.last, "result": synced.result},
        "agents": captured_agents(settings),
        "codex": _codex_state(context),
        "pointers": recall.pointers,
        "failed": [
            {"file": item.name, **{name: item.record.get(name) for name in ("event", "session", "error")}}
            for item in spool.failed(home)
        ],
        "hook_errors": _count_lines(Path(home.hook_log)),
    }


def summaries_state(context: Context, settings: Settings) -> dict[str, Any]:
    """Return whether a model writes summaries, why not, what waits for it, and what was spent."""
    chosen = settings.summarize
    ledger, today = Ledger(context.home), date.today()
    month = ledger.calls(today.replace(day=1).isoformat())
    spent = total(call for call in month if call.day == today.isoformat())
    state: dict[str, Any] = {
        "on": chosen.is_on,
        "why_off": chosen.why_off,
        "why_on": chosen.why_on if chosen.is_on else "",
        "extracts": chosen.wants_extracts,
        "unannounced": not may_summarize(context.home, settings),
        "daily_tokens": chosen.daily_tokens,
        "today": _spent(spent),
        "month": _spent(total(month)),
    }
    return state | _waiting(context, settings, spent) if chosen.is_on else state


def _spent(sum_of: Total) -> dict[str, Any]:
    cost = format_cost(sum_of) if sum_of.calls else "$0"
    return {"calls": sum_of.calls, "tokens": sum_of.tokens, "usd": sum_of.usd, "cost": cost}


def _waiting(context: Context, settings: Settings, spent: Total) -> dict[str, Any]:
    from memkit.llm import find_provider
    from memkit.llm.calls import Calls, is_budget_reached
    from memkit.summarize.segments import group_into_calls
    from memkit.summarize.summarizer import Summarizer

    chosen = settings.summarize
    summarizer = Summarizer(context.home, lambda _: settings, Calls(context.home, find_provider))
    candidates = summarizer.select(context.project, "")
    following = next(group_into_calls(candidates, chosen), [])
    material = sum(one.segment.tokens for one in following)
    return {
        "provider": "claude-cli" if chosen.provider == "auto" else chosen.provider,
        "waiting": len(candidates),
        "when": when_due(chosen) if any(not one.attempt.count for one in candidates) else "",
        "given_up": sum(1 for one in candidates if one.attempt.given_up),
        "reasons": sorted({one.attempt.reason for one in candidates if one.attempt.reason}),
        "reached": bool(candidates) and is_budget_reached(spent, chosen, material),
    }


def when_due(chosen: SummarizeSettings) -> str:
    """Return how long a segment waits for others to share its call."""
    if chosen.mode == "turn" or not chosen.wait_minutes:
        return ""
    most = "until the day is over"
    if chosen.wait_minutes < MINUTES_PER_DAY:
        hours = chosen.wait_minutes / 60
        wait = plural(int(hours), "hour") if hours.is_integer() else f"{chosen.wait_minutes:g} minutes"
        most = f"{wait} or {most}"
    return f"waiting for more, {most}; `memkit summarize` does it now"


def _count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(1 for _ in file)
