"""The history of a file: turns that touched it, bullets, facts, and commits.

Reads the Markdown and asks git, so it needs neither the index nor the service.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from typing import NamedTuple

from memkit import anchors
from memkit.browse.git_marks import is_inside, named_commits, worktree_of
from memkit.bullets import DECIDED, read_bullet
from memkit.errors import JournalError
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.facts import FactFile
from memkit.journal.journal import Journal
from memkit.journal.sessions import shown_bullet, turn_outcome
from memkit.journal.tool_lines import names_file
from memkit.journal.turn_parts import read_parts
from memkit.projects.git import git_output

GIT_SECONDS = 3.0
"""The time that git has to list the commits of a file. Following renames takes long in a big repository."""

MOST_COMMITS = 500
SHORT_HASH = 8


@dataclass(frozen=True, slots=True)
class FileEvent:
    """Something that happened to a file.

    `kind` is "edit" or "read" (a turn), "bullet", "fact", or "commit". `time` is local, `2026-11-20 14:02` or
    a day alone. `title` is a prompt, a bullet, a fact, or the subject of a commit; `outcome` is what came of
    a turn. `id` is that of the entry, or a hash. `commits` has the hashes in the text of a turn.
    """

    kind: str
    time: str
    title: str
    outcome: str
    id: str
    session: str | None = None
    commits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The events of a file, oldest first.

    `names` are its paths from the root, the present one first. `has_git` is False if git has not answered, or
    there is no repository.
    """

    names: tuple[str, ...]
    events: tuple[FileEvent, ...]
    has_git: bool


class _Commit(NamedTuple):
    hash: str
    time: str
    subject: str


def file_history(journal: Journal, file: str, checkout: str, announce: Callable[[str], None]) -> FileHistory:
    """Return the history of `file`, a path from the root of the journal's project, or its last parts.

    Git follows its renames in the worktree around `checkout`. A memory file that cannot be read is reported
    to `announce`, and left out.
    """
    names, commits, has_git = _commits(worktree_of(journal.project.root, checkout), file)
    events: list[FileEvent] = []
    touching: set[str] = set()
    named: set[str] = set()
    texts: list[tuple[str, str]] = []
    days = {journal.path(day) for day in journal.days()}
    for path in journal.markdown():
        try:
            text = journal.text(path)
        except JournalError as error:
            announce(str(error))
            continue
        texts.append((path.name, text))
        if path in days and any(os.path.basename(name) in text for name in names):
            for event in _turns(path.stem[:10], DayFile(text), names, commits):
                events.append(event)
                touching.add(event.id)
                named.update(event.commits)
    for name, text in texts:
        events += _bullets(name, text, names, touching)
    events += [
        FileEvent("commit", one.time, one.subject, "", one.hash[:SHORT_HASH])
        for one in commits
        if one.hash[:SHORT_HASH] not in named
    ]
    events.sort(key=lambda one: one.time if len(one.time) > 10 else f"{one.time} 99")
    return FileHistory(tuple(names), tuple(events), has_git)


def most_telling(events: Sequence[FileEvent], count: int) -> list[FileEvent]:
    """Return at most `count` events in their order: the last edit of each session before anything else, reads
    last, of both the newest.
    """
    ranks: dict[int, int] = {}
    sessions: set[str | None] = set()
    for number in reversed(range(len(events))):
        event = events[number]
        is_last_edit = event.kind == "edit" and event.session not in sessions
        if is_last_edit:
            sessions.add(event.session)
        ranks[number] = 0 if is_last_edit else 2 if event.kind == "read" else 1
    kept = sorted(ranks, key=lambda number: (ranks[number], -number))[:count]
    return [events[number] for number in sorted(kept)]


def _commits(worktree: str, file: str) -> tuple[list[str], list[_Commit], bool]:
    if not worktree or not is_inside(file):
        return [file], [], False
    output = git_output(
        worktree, "log", "-z", "--follow", "--name-status", f"--max-count={MOST_COMMITS}", "--no-ext-diff",
        "--no-textconv", "--no-color", "--format=tformat:%x01%H %ct %s", "HEAD", "--",
        ":(literal)" + file,
        seconds=GIT_SECONDS,
    )  # fmt: skip
    if output is None:
        return [file], [], False
    names, commits = {file: None}, []
    parts = iter(output.decode("utf-8", "replace").split("\0"))
    for part in parts:
        if part.startswith("\x01"):
            commit, seconds, subject = (*part[1:].split(" ", 2), "", "")[:3]
            commits.append(_Commit(commit, _minute(seconds), subject))
        elif status := part.strip():
            paths = [next(parts, "") for _ in range(2 if status[0] in "RC" else 1)]
            if status[0] == "R" and is_inside(paths[0]):
                names[paths[0]] = None
    return list(names), commits, True


def _minute(seconds: str) -> str:
    try:
        return datetime.fromtimestamp(int(seconds)).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


def _turns(day: str, content: DayFile, names: list[str], commits: list[_Commit]) -> Iterator[FileEvent]:
    for heading, turns in content.groups():
        for turn in turns:
            text = content.text(turn)
            calls = [call for call in read_parts(text).file_calls if call.is_at(names, by_end=True)]
            if calls:
                kind = "edit" if any(call.is_edit for call in calls) else "read"
                yield _turn_event(kind, day, heading, turn, text, commits)


def _turn_event(
    kind: str, day: str, heading: Section | None, turn: Section, text: str, commits: list[_Commit]
) -> FileEvent:
    written = named_commits(text)
    made = [one.hash[:SHORT_HASH] for one in commits if any(map(one.hash.startswith, written))]
    return FileEvent(
        kind=kind, time=f"{day} {turn.minute}".strip(), title=unescape(heading_title(turn)),
        outcome=unescape(turn_outcome(text)), id=turn.pairs["turn"],
        session=(heading.pairs.get("session") or None) if heading else None, commits=tuple(made),
    )


def _bullets(name: str, text: str, names: list[str], turns: set[str]) -> Iterator[FileEvent]:
    for _, found in FactFile(text, name).everywhere():
        fact = found.fact
        shown = anchors.strip(fact.shown).removeprefix("- ").replace(f" ({fact.date})", "")
        if _tells(shown, names, not turns.isdisjoint(fact.citations.turns)):
            yield FileEvent("fact", fact.date, unescape(shown), "", found.id)
    session = ""
    for line in text.split("\n"):
        if line.startswith("## "):
            session = anchors.parse(line).get("session", session)
        bullet = read_bullet(line)
        if bullet is not None and not bullet.is_doubted:
            shown = shown_bullet(bullet)
            # An extract's other lines repeat what its turns show.
            is_new = not bullet.is_extract or shown.startswith(DECIDED)
            if is_new and _tells(shown, names, not turns.isdisjoint(bullet.turns)):
                yield FileEvent("bullet", name[:10], unescape(shown), "", bullet.lasting_id, session or None)


def _tells(text: str, names: list[str], cites: bool) -> bool:
    """Return whether a line names the file, or decides something and `cites` a turn that touched it."""
    if names_file(text, names, by_end=True):
        return True
    last = [os.path.basename(name) for name in names]
    return cites and (text.startswith(DECIDED) or names_file(text, last, by_end=True))
