"""Archived turns that the journal lacks.

A `git rebase --abort` may throw days away. Earlier versions wrote a command after `!` over the prompt before
it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from memkit.archive import Archive
from memkit.archive.file import ArchiveFile, turn_ids
from memkit.capture.capture import Capture, adoption_marker
from memkit.capture.ingest import turn_of
from memkit.capture.project_list import projects_with_memory
from memkit.claude_code.turn import Turn, is_command_text
from memkit.errors import ArchiveError, MemkitError
from memkit.files import write_durably
from memkit.journal import Journal
from memkit.journal.digest import local_time
from memkit.paths import Home
from memkit.privacy.tombstones import Tombstones
from memkit.projects.git import run_git
from memkit.projects.project import Project
from memkit.settings.load import Settings

logger = logging.getLogger(__name__)

_SEPARATED = b"commands have IDs of their own\n"
"""What a project's `.adopted` holds once `separate_commands` has run."""

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


def separate_commands(home: Home, settings_of: Callable[[Project], Settings]) -> set[str]:
    """Write the turns again that commands after `!` have replaced, once for each adopted memory.

    Return the roots of changed projects. The caller holds the capture lock. Leave out an archive file that
    cannot be read, and try it again the next time. Raise `JournalError`.
    """
    changed: set[str] = set()
    for project in projects_with_memory(home):
        marker = adoption_marker(project, home)
        is_adopted = marker.exists()
        if is_adopted and marker.read_bytes() == _SEPARATED:
            continue
        titles = Journal(project).turn_titles()
        commands = {name for name, title in titles.items() if is_command_text(title)}
        replaced, is_complete = [], True
        for session, path in Archive(home).files() if commands else ():
            try:
                if commands.isdisjoint(turn_ids(path)):
                    continue
                is_shared = ArchiveFile(Path(path)).separate_commands()
                turns = Archive(home).turns(session)
            except ArchiveError as error:
                logger.warning("%s", error)
                is_complete = False
                continue
            for one in turns:
                is_lost = one.id not in titles if one.is_command else one.id in commands
                if is_lost and one.project == project.root and (is_shared or not one.is_command):
                    replaced.append(turn_of(session, one))
        changed |= Capture(home, settings_of(project)).import_turns(replaced, project).projects
        if is_adopted and is_complete:
            write_durably(str(marker), _SEPARATED)
    return changed
