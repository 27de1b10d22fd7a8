"""Merge the memory of one project into that of another.

Anchors identify turns, and content identifies files. So a merge can run twice, or be killed and run again.
The source stays unchanged until `remove_merged`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.sessions import Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import JournalError
from memkit.hook.entries import OwnEntries
from memkit.hook.entries import days as days_of
from memkit.index.memory_files import move_paths
from memkit.index.scanner import Unreadable, is_markdown, scan
from memkit.ipc import unindexed
from memkit.journal.day_file import DayFile, encoded
from memkit.journal.day_merge import merge_day
from memkit.journal.facts import holds_lines, is_fact_file, remembered_text, taken_facts
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project
from memkit.topics import topic_store


@dataclass(slots=True)
class Merged:
    """The numbers of merged turns, of other files, and of sessions whose state and archive were moved."""

    turns: int = 0
    files: int = 0
    sessions: int = 0


def merge(source: Project, target: Project, home: Home, journal: Journal) -> Merged:
    """Merge the memory of `source` into that of `target`; `journal` is the target's.

    The caller holds both locks and updates the index afterwards. Raise `JournalError`, `ArchiveError`,
    `OSError`.
    """
    merged = Merged()
    unindexed.mark(home, target.root)
    forgotten = Tombstones(home).forgotten().within(target.root)
    other = Journal(source)
    own = OwnEntries(home, source.root)
    files, theirs = _files(source), set(source.openclaw_days())
    for day in other.days():
        if day in theirs:
            content = _own_sections(other, day)
        else:
            content = DayFile(_merge_facts(journal, other, f"{day}.md", forgotten))
        if day in theirs and not content.sections:
            continue
        merged.turns += journal.change(
            day,
            lambda day_file, content=content: merge_day(day_file, content, forgotten),  # type: ignore[misc]
            own,
        )
    days = {f"{day}.md" for day in days_of(source)}
    for file in files:
        name = file.relative_to(source.memory)
        if is_fact_file(str(name)):
            merged.files += _merge_fact_file(journal, other, str(name), forgotten)
        elif str(name) not in days:
            merged.files += journal.add_file(name, other.data(file))
    move_paths(home, source.root, target)
    topic_store.move_kept(home, source.root, target)
    merged.sessions = _move_sessions(source, target, home)
    return merged


def _own_sections(other: Journal, day: str) -> DayFile:
    content = DayFile(anchors.own_part(other.text(f"{day}.md")))
    content.replace_opening([f"# {day[:10]}", ""])
    return content


def _merge_facts(journal: Journal, other: Journal, name: str, forgotten: Forgotten) -> str:
    text = remembered_text(other.text(name), name, forgotten)
    change, rest = taken_facts(journal.text(name), text, name)
    if change:
        journal.change_facts(name, change, lambda text: None)  # nothing is replaced
    return rest


def _merge_fact_file(journal: Journal, other: Journal, name: str, forgotten: Forgotten) -> bool:
    """If both projects have one, the target's file gets the facts, and a second file gets all other text."""
    if not journal.text(name):
        text = remembered_text(other.text(name), name, forgotten)
        return journal.add_file(Path(name), encoded(text))
    rest = _merge_facts(journal, other, name, forgotten)
    if holds_lines(journal.text(name), rest):
        return False
    return journal.add_file(Path(name), encoded(rest))


def _files(source: Project) -> list[Path]:
    memory = Path(source.memory)
    unreadable: Unreadable = {}
    found = [file.path for file in scan(Path(source.root), [str(memory)], unreadable=unreadable)]
    for name, reason in unreadable.items():
        raise JournalError(f"{name} cannot be read: {reason}; nothing was merged")
    return [path for path in found if is_markdown(path) and not path.is_symlink()]


def _move_sessions(source: Project, target: Project, home: Home) -> int:
    waiting = SummaryQueue(home)
    moved = set()
    for one in list(waiting):
        if one.root == source.root:
            waiting.add(target.root, one.session, one.days, one.changed)
            waiting.update(one, one.days)
    states = Sessions(home)
    for state in list(states):
        if state.project == source.root:
            state.project = target.root
            states.save(state)
            moved.add(anchors.safe(state.id))
    archive = Archive(home)
    for session in list(archive.sessions()):
        if any(turn.project == source.root for turn in archive.turns(session)):
            archive.rewrite(
                session,
                lambda turn: replace(turn, project=target.root)
                if turn.project == source.root
                else turn,
            )
            moved.add(session)
    return len(moved)


def remove_merged(source: Project, target: Project, home: Home) -> int:
    """Remove the Markdown files of `source` that `target` holds completely. Return their number.

    A file that changed since the merge stays. In OpenClaw's folder, only memkit's sections go. Raise
    `JournalError`, `OSError`.
    """
    journal, other = Journal(target), Journal(source)
    days = set(other.days())
    forgotten = Tombstones(home).forgotten()
    removed = 0
    for file in _files(source):
        name = file.relative_to(source.memory)
        if str(name.parent) == "." and (name.stem in days or is_fact_file(name.name)):
            own = journal.text(name.name)
            text = remembered_text(other.text(name.name), name.name, forgotten)
            change, rest = taken_facts(own, text, name.name)
            if name.stem in days:
                held = DayFile(own or f"# {name.stem}")
                before = list(held.lines)
                is_held = merge_day(held, DayFile(rest), forgotten) == 0 and held.lines == before
            else:
                is_held = holds_lines(own, rest) or journal.holds_file(name, encoded(rest))
            is_held &= not change.added
        else:
            is_held = journal.holds_file(name, other.data(file))
        if is_held:
            file.unlink()
            removed += 1
    for day in source.openclaw_days():
        held, content = journal.day(journal.day_for(day)), _own_sections(other, day)
        before = list(held.lines)
        if content.sections and merge_day(held, content, forgotten) == 0 and held.lines == before:
            removed += other.remove_day(day)
    return removed
