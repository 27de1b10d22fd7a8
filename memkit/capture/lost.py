"""Archived turns that the journal lacks: a `git rebase --abort` may throw days away."""

from __future__ import annotations

import re
from datetime import date, timedelta

from memkit.archive.archive import Archive
from memkit.archive.file import turn_ids
from memkit.capture.ingest import turn_of
from memkit.conversation.turn import Turn
from memkit.errors import MemkitError
from memkit.journal.digest import local_time
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Tombstones
from memkit.projects.git import run_git
from memkit.projects.project import Project
from memkit.settings.load import Settings

_IN_DIFF = re.compile(rb"^[+-].*<!--.* turn:(\S+) ", re.MULTILINE)


def lost_turns(home: Home, project: Project, settings: Settings) -> list[Turn]:
    """Return the archived turns that the journal lacks, oldest first.

    Leave out what was forgotten, and what is older than `memory.keep_days`. In a shared memory, leave out
    what git has or had, on another branch perhaps, and what git cannot have thrown away since it was written:
    somebody removed it. Raise `ArchiveError`, `JournalError`, and if git does not answer,
    `MemkitError`.
    """
    titles = Journal(project).turn_titles()
    forgotten = Tombstones(home).forgotten()
    keep = settings.memory.keep_days
    first = date.today() - timedelta(days=keep) if keep else date.min
    lost = []
    for session, path in Archive(home).files():
        for one in Archive(home).turns(session) if turn_ids(path) - titles.keys() else ():
            is_own = one.project == project.root and bool(one.messages)
            is_kept = is_own and not forgotten.covers(one.id, project.root, session, one.time)
            if is_kept and one.id not in titles and local_time(one.time).date() >= first:
                lost.append(turn_of(session, one))
    if lost and settings.memory.shared:
        answer = run_git(project.root, "log", "--all", "-p", "--format=", "--", project.memory)
        if answer is None or answer[0] != 0:
            raise MemkitError("git did not answer, so archived turns were not compared with it; try again")
        known = set(_IN_DIFF.findall(answer[1]))
        last_reset = _last_reset(project.root)
        lost = [
            turn
            for turn in lost
            if turn.id.encode() not in known and local_time(turn.time).timestamp() < last_reset
        ]
    return sorted(lost, key=lambda turn: local_time(turn.time))


def _last_reset(root: str) -> float:
    """Return when git last threw changes away (seconds since the epoch), 0 for never."""
    options = ("-g", "-1", "--date=unix", "--format=%gd", "-E", "--grep-reflog=^(reset:|rebase.*abort)")
    answer = run_git(root, "log", *options)
    found = re.search(rb"@\{(\d+)\}", answer[1]) if answer else None
    return float(found[1]) if found else 0.0
