"""Check that Claude Code runs the hooks, and that memkit handles their events."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import memkit
from memkit.capture.sessions import Sessions
from memkit.claude_code.files import session_transcripts
from memkit.doctor.finding import FIX, Finding, Subject, moment
from memkit.errors import MemkitError
from memkit.ipc import launch, spool
from memkit.paths import Home
from memkit.settings import load
from memkit.state import parse_json
from memkit.text import plural

RECENT_SECONDS = 7 * 86_400.0
"""Older errors of hooks are not reported."""

LATE_SECONDS = 600.0
"""A hook starts a worker. An event that waits longer than this has none."""

LOCK_SECONDS = 30.0

_FIX_HOOKS = (
    "`claude plugin list` shows whether memkit is on, `claude --debug` what its hooks print; "
    "`memkit import` adds those sessions"
)


def last_events(home: Home) -> dict[str, float]:
    """Return when a hook last ran in each project: seconds since the epoch by root."""
    times = [(one.project, one.last_event) for one in Sessions(home) if one.last_event]
    times += [
        (str(item.record.get("project", "")), spool.time_of(item.record)) for item in _all_events(home)
    ]
    last: dict[str, float] = {}
    for root, when in times:
        if root:
            last[root] = max(when, last.get(root, 0.0))
    return last


def _all_events(home: Home) -> list[spool.Item]:
    return [*spool.unfinished(home), *spool.failed(home)]


def check_hooks(subject: Subject) -> Iterator[Finding]:
    """Find sessions of this project that ran no hook since memkit was installed."""
    if subject.project.is_off:
        return
    known = {session.id for session in Sessions(subject.home)}
    for item in _all_events(subject.home):
        name = os.path.basename(str(item.record.get("transcript", "")))
        known |= {str(item.record.get("session")), name.removesuffix(".jsonl")}
    installed = os.stat(memkit.__file__)
    since = max(installed.st_mtime, installed.st_ctime)
    missed = [
        one
        for one in session_transcripts(subject.project)
        if one.session not in known and one.changed > since
    ]
    if not missed:
        return
    root, count = subject.project.root, plural(len(missed), "session")
    last = last_events(subject.home).get(root)
    if last is None:
        yield Finding(
            "hooks-never-fired",
            "error",
            f"no hook of memkit has ever run in {root}, but Claude Code had {count} there",
            "sessions of this project are not remembered",
            _FIX_HOOKS,
        )
    elif max(one.changed for one in missed) > last:
        yield Finding(
            "hooks-silent",
            "error",
            f"hooks last ran in {root} on {moment(last)}, but Claude Code had {count} since without them",
            "those sessions are not remembered",
            _FIX_HOOKS,
        )


def check_hook_log(subject: Subject) -> Iterator[Finding]:
    """Find recent errors of hooks."""
    recent = list(_recent_errors(subject))
    if recent:
        yield Finding(
            "hook-errors",
            "warning",
            f"hooks failed {plural(len(recent), 'time')} in the last week; the last error: {recent[-1]}",
            "the memory may lack those turns",
            "fix the cause; `memkit logs` shows all errors",
        )


def _recent_errors(subject: Subject) -> Iterator[str]:
    try:
        with open(subject.home.hook_log, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            value = parse_json(line)
            when = datetime.strptime(value["time"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
            error = f"{value['event']}: {value['error']}"
        except (ValueError, KeyError, TypeError):  # cut off by a full disk
            continue
        if subject.now - when < RECENT_SECONDS:
            yield error


def check_failed_events(subject: Subject) -> Iterator[Finding]:
    """Find failed events, and events that memkit will try again, by reason."""
    failed = spool.failed(subject.home)
    for reason, count in Counter(map(_reason, failed)).items():
        is_event = any("event" in item.record for item in failed if _reason(item) == reason)
        yield Finding(
            "event-failed",
            "error",
            f"{plural(count, 'event')} failed for good: {reason}",
            "those turns are not in the memory",
            f"fix the cause, then run {FIX}"
            if is_event
            else f"the file is damaged: delete it in {subject.home.spool}/failed",
        )
    retried = [item for item in spool.unfinished(subject.home) if item.record.get("attempts")]
    for reason, count in Counter(map(_reason, retried)).items():
        what = f"{plural(count, 'event')} failed and will be tried again: {reason}"
        meaning = "those turns are not in the memory yet"
        yield Finding("event-retried", "warning", what, meaning, "fix the cause")


def _reason(item: spool.Item) -> str:
    return str(item.record.get("error") or "the reason is unknown")


def handle_events(subject: Subject) -> str:
    """Handle waiting and failed events, as a worker does. Raise `MemkitError`, also if an event fails."""
    from memkit.capture.worker import work

    if subject.problem is not None:
        raise subject.problem
    spool.retry_failed(subject.home)
    report = work(
        subject.home,
        functools.cache(lambda project: load.load(subject.home, project).settings),
        wait_seconds=LOCK_SECONDS,
    )
    if report.failures:
        raise MemkitError("; ".join(report.failures))
    return f"{plural(report.events, 'event')} handled"


def check_waiting_events(subject: Subject) -> Iterator[Finding]:
    """Find events without a worker, and those of a killed worker."""
    home = subject.home
    if launch.worker_is_running(home):
        return
    claimed = spool.claimed(home)
    if claimed:
        yield Finding(
            "worker-killed",
            "warning",
            f"a worker was killed while it handled {plural(len(claimed), 'event')}",
            "those turns wait for the next worker",
        )
    late = [
        item
        for item in spool.unfinished(home)
        if item.name not in claimed
        and not item.record.get("attempts")
        and subject.now - spool.time_of(item.record) > LATE_SECONDS
    ]
    if late:
        since = moment(spool.time_of(late[0].record))
        yield Finding(
            "events-waiting",
            "warning",
            f"{plural(len(late), 'event')} waiting since {since}, without a worker",
            "searches do not find those turns yet",
        )
