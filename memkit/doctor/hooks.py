"""Whether the client's hooks really fire, and what they told is taken in."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from datetime import datetime

import memkit
from memkit.capture.sessions import Sessions
from memkit.doctor.claude_code import transcripts
from memkit.doctor.finding import MEND, Finding, Subject
from memkit.errors import MemkitError
from memkit.ipc import launch, spool
from memkit.paths import Home
from memkit.settings import load
from memkit.state import parse_json

RECENT_SECONDS = 7 * 86_400.0
"""Errors of hooks are told for so long."""

LATE_SECONDS = 600.0
"""A hook starts who takes its event in; after so long nobody has."""

LOCK_SECONDS = 30.0

_MEND_HOOKS = (
    "`claude plugin list` shows whether memkit is on, `claude --debug` what its hooks say; "
    "`memkit import` brings those sessions in"
)


def last_events(home: Home) -> dict[str, float]:
    """When a hook last fired in each project: seconds since the epoch by root."""
    events = [(one.project, one.last_event) for one in Sessions(home) if one.last_event]
    events += [
        (str(item.record.get("project", "")), spool.time_of(item.record))
        for item in (*spool.unfinished(home), *spool.failed(home))
    ]
    last: dict[str, float] = {}
    for root, when in events:
        if root:
            last[root] = max(when, last.get(root, 0.0))
    return last


def check_hooks(subject: Subject) -> Iterator[Finding]:
    """Whether there are sessions of this project that no hook told of since memkit was installed."""
    if subject.project.is_off:
        return
    known = {session.id for session in Sessions(subject.home)}
    for item in (*spool.unfinished(subject.home), *spool.failed(subject.home)):
        name = os.path.basename(str(item.record.get("transcript", "")))
        known |= {str(item.record.get("session")), name.removesuffix(".jsonl")}
    since = os.stat(memkit.__file__)
    untold = [
        one
        for one in transcripts(subject.project)
        if one.session not in known and one.changed > max(since.st_mtime, since.st_ctime)
    ]
    last = last_events(subject.home).get(subject.project.root)
    newest = max((one.changed for one in untold), default=0.0)
    if untold and last is None:
        yield Finding(
            "hooks-never-fired",
            "error",
            f"no hook of memkit has ever fired in {subject.project.root}, but Claude Code had "
            f"{_sessions(len(untold))} there",
            "sessions of this project are not remembered",
            _MEND_HOOKS,
        )
    elif last is not None and newest > last:
        yield Finding(
            "hooks-silent",
            "error",
            f"hooks last fired in {subject.project.root} on {_moment(last)}, but Claude Code had "
            f"{_sessions(len(untold))} since that they did not tell of",
            "those sessions are not remembered",
            _MEND_HOOKS,
        )


def check_hook_log(subject: Subject) -> Iterator[Finding]:
    """What went wrong in hooks lately."""
    recent = list(_recent_errors(subject))
    if recent:
        yield Finding(
            "hook-errors",
            "warning",
            f"hooks failed {len(recent)} times in the last week; the last error: {recent[-1]}",
            "what they were told may be missing from the memory",
            "mend what it names; `memkit logs` shows all",
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
            said = f"{value['event']}: {value['error']}"
        except (ValueError, KeyError, TypeError):  # cut off by a full disk
            continue
        if subject.now - when < RECENT_SECONDS:
            yield said


def check_failed_events(subject: Subject) -> Iterator[Finding]:
    """Events that were given up, with the reason, and those that are on the way there."""
    failed = spool.failed(subject.home)
    for reason, count in _by_reason(failed):
        is_event = any("event" in item.record for item in failed if _reason(item) == reason)
        yield Finding(
            "event-failed",
            "error",
            f"{_events(count)} given up: {reason}",
            "those turns are not in the memory",
            "`memkit work --retry`, once the reason is gone"
            if is_event
            else f"it cannot be read any more: delete it in {subject.home.spool}/failed",
            fixable=is_event,
        )
    retried = [item for item in spool.unfinished(subject.home) if item.record.get("attempts")]
    for reason, count in _by_reason(retried):
        what = f"{_events(count)} failed and will be tried again: {reason}"
        meaning = "those turns are not in the memory yet"
        yield Finding("event-retried", "warning", what, meaning, "mend what it names")


def _by_reason(items: list[spool.Item]) -> list[tuple[str, int]]:
    reasons = [_reason(item) for item in items]
    return [(reason, reasons.count(reason)) for reason in dict.fromkeys(reasons)]


def _reason(item: spool.Item) -> str:
    return str(item.record.get("error") or "it is not known why")


def retry_events(subject: Subject) -> str:
    """Put back the events that were given up; who takes them in is `take_events`."""
    return f"{_events(spool.retry_failed(subject.home))} put back to be tried again"


def take_events(subject: Subject) -> str:
    """Take in what waits, as a worker does. Raises `MemkitError`, also if an event fails."""
    from memkit.capture.worker import work

    report = work(
        subject.home,
        functools.cache(lambda project: load.load(subject.home, project).settings),
        wait_seconds=LOCK_SECONDS,
    )
    if report.failures:
        raise MemkitError("; ".join(report.failures))
    return f"{_events(report.events)} taken in"


def check_waiting_events(subject: Subject) -> Iterator[Finding]:
    """Events that nobody takes in, and those that a killed worker had in hand."""
    home = subject.home
    if launch.worker_is_running(home):
        return
    claimed = spool.claimed(home)
    if claimed:
        yield Finding(
            "worker-killed",
            "warning",
            f"a worker was killed with {_events(len(claimed))} in hand",
            "those turns wait until the next worker",
            MEND,
            fixable=True,
        )
    late = [
        item
        for item in spool.unfinished(home)
        if item.name not in claimed
        and not item.record.get("attempts")
        and subject.now - spool.time_of(item.record) > LATE_SECONDS
    ]
    if late:
        yield Finding(
            "events-waiting",
            "warning",
            f"{_events(len(late))} waiting since {_moment(spool.time_of(late[0].record))}, "
            "and no worker is at it",
            "those turns cannot be found yet",
            MEND,
            fixable=True,
        )


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _sessions(count: int) -> str:
    return "a session" if count == 1 else f"{count} sessions"


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
