"""Find every place where memkit keeps something that is to be forgotten."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypedDict

import msgspec

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.project_list import remembered_projects
from memkit.errors import MemkitError
from memkit.forget.old_versions import FactLocation, find_facts, find_old_versions
from memkit.forget.selection import ForgetSelection, Mentioned, Passage
from memkit.hook.entries import DAY_FILE, days
from memkit.index.sections import is_iso_date
from memkit.journal.day_edits import Removal, removed_bullets
from memkit.journal.day_file import DayFile, Section
from memkit.journal.files import original_name, replaced_files
from memkit.journal.journal import Journal
from memkit.journal.team import TeamFolder, WrittenEntry
from memkit.paths import TEAM_DIRECTORY, Home
from memkit.privacy.tombstones import Forgotten, Ids
from memkit.projects.project import Project
from memkit.projects.team import author_folder
from memkit.timeline.nodes import day_of, path_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ForgottenEntry:
    """A turn or a note of the journal: its day, its heading without anchor, and its ID."""

    day: str
    heading: str
    id: str


@dataclass(frozen=True, slots=True)
class DayLocation:
    """The entries to remove from one day; `whole` removes the file."""

    project: Project
    day: str
    turns: tuple[ForgottenEntry, ...]
    notes: tuple[ForgottenEntry, ...]
    bullets: int
    whole: bool

    @property
    def rollups(self) -> list[str]:
        """The names that the rollups of its week, month, and year may have."""
        day = day_of(Path(self.day).name)
        names = path_of(day)[:-1] if day else ()
        return [f"{name}{suffix}.md" for name in names for suffix in ("", ".local")]


class ErasedLines(TypedDict):
    """Lines without an ID, from 1, both ends included."""

    path: str
    start_line: int
    end_line: int


class SharedCopy(TypedDict):
    """An entry that the user shared in the repository."""

    path: str
    line: int
    key: str


class LocationsView(TypedDict):
    """`Locations` as JSON: IDs, counts, and paths. `grips` are citations.

    `archived` counts turns by session, `projects` turns and notes by root. `team` are the user's own copies
    in the repository.
    """

    turns: list[str]
    grips: list[str]
    notes: list[str]
    bullets: int
    days: list[str]
    archived: dict[str, int]
    passages: list[ErasedLines]
    facts: list[str]
    files: list[str]
    old_versions: list[str]
    projects: dict[str, int]
    shared: dict[str, int]
    team: list[SharedCopy]


@dataclass(slots=True)
class Locations:
    """Everything that is to be erased; `forgotten` names every entry of it.

    `files` are Markdown files that are removed. `old_versions` are copies of replaced files. `archived` are
    turns by session, and `sessions` the sessions (as in anchors) that lose turns. `shared` names, by root,
    the entries that another project keeps. `owners` are the new projects of turns that stay in the archive,
    by session and turn. `team` are the user's own entries in the repositories, which hold a copy of what is
    forgotten.
    """

    forgotten: Forgotten
    passages: list[Passage]
    days: list[DayLocation] = field(default_factory=list)
    files: list[tuple[Project, Path]] = field(default_factory=list)
    facts: list[FactLocation] = field(default_factory=list)
    old_versions: list[Path] = field(default_factory=list)
    archived: dict[str, frozenset[str]] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    shared: dict[str, frozenset[str]] = field(default_factory=dict)
    owners: dict[str, dict[str, str]] = field(default_factory=dict)
    team: list[tuple[Project, WrittenEntry]] = field(default_factory=list)

    @property
    def by_project(self) -> dict[str, int]:
        """The number of turns and notes to remove, by the root of each project that loses something."""
        found = dict.fromkeys(sorted(self.forgotten.roots), 0)
        for day in self.days:
            count = len(day.turns) + len(day.notes)
            found[day.project.root] = found.get(day.project.root, 0) + count
        return found

    @property
    def turns(self) -> list[ForgottenEntry]:
        """The turns to remove from the journal."""
        return [entry for day in self.days for entry in day.turns]

    @property
    def notes(self) -> list[ForgottenEntry]:
        """The notes to remove from the journal."""
        return [entry for day in self.days for entry in day.notes]

    @property
    def bullets(self) -> int:
        """The number of bullets to remove."""
        return sum(day.bullets for day in self.days)

    def as_dict(self) -> LocationsView:
        """Return what `memkit forget --json` prints of it: ids, counts, and paths."""
        return {
            "turns": sorted(self.forgotten.turns), "grips": sorted(self.forgotten.grips),
            "notes": [entry.id for entry in self.notes], "bullets": self.bullets,
            "days": [day.day for day in self.days],
            "archived": {session: len(turns) for session, turns in self.archived.items()},
            "passages": [
                {"path": str(one.path), "start_line": one.start, "end_line": one.end} for one in self.passages
            ],
            "facts": sorted({name for one in self.facts for name in one.facts}),
            "files": [str(path) for _, path in self.files],
            "old_versions": [str(path) for path in self.old_versions], "projects": self.by_project,
            "shared": {root: len(turns) for root, turns in sorted(self.shared.items())},
            "team": [{"path": one.path, "line": one.start, "key": one.key} for _, one in self.team],
        }

    def __bool__(self) -> bool:
        return bool(
            self.days or self.files or self.facts or self.archived or self.passages or self.old_versions
            or self.team
        )  # fmt: skip


def find_locations(home: Home, project: Project, selection: ForgetSelection) -> Locations:
    """Find `selection` in the home and in every project. Raise `ArchiveError`, `JournalError`."""
    found = _Finder(home, project, selection).run()
    if selection.everywhere:  # again, with all IDs of the first run
        whole = replace(selection, forgotten=found.forgotten)
        found = _Finder(home, project, whole).run()
    return found


class _Finder:
    """One search. It collects IDs as it goes: those forgotten everywhere, and those of one project only."""

    def __init__(self, home: Home, project: Project, selection: ForgetSelection) -> None:
        forgotten = selection.forgotten
        self._home = home
        self._everywhere = selection.everywhere
        self._forgotten = forgotten
        self._mentions = selection.mentions
        self._found = Locations(forgotten, selection.passages)
        self._turns = set(forgotten.turns)
        self._minutes = set(forgotten.minutes)
        self._grips = set(forgotten.grips)
        self._notes = set(forgotten.notes)
        self._facts = set(forgotten.facts)
        self._only: dict[str, Ids] = dict(forgotten.only)
        self._holders: dict[str, set[str]] = {}
        """The roots of the projects that hold a turn, or a note (as "note ID")."""
        self._archive: dict[str, dict[str, tuple[str, datetime | None]]] = {}
        """The project and time of each archived turn, by session and turn."""
        self._archived_in: set[str] = set()
        self._projects = {project, *remembered_projects(home)}
        self._add_projects(forgotten.roots)

    def run(self) -> Locations:
        self._search_archive()
        journals = [Journal(one) for one in sorted(self._projects, key=lambda one: one.root)]
        named = [(one, day) for one in journals for day in (*days(one.project), *one.renamed_days())]
        covered = {
            (journal, day): self._covered(journal.project, day, journal.day(day))
            for journal, day in named
            if self._may_hold(self._mentions.of_day(journal, day))
        }
        self._share()
        for journal, day in named:
            if self._may_hold(self._mentions.of_day(journal, day)):
                self._search_day(journal, day, *covered.get((journal, day), ([], [], False)))
        for journal in journals:
            if any(p.whole and p.project == journal.project.root for p in self._forgotten.periods):
                own = {journal.path(day) for day in days(journal.project)}
                files = sorted(set(journal.markdown()) - own)
                self._found.files += [(journal.project, path) for path in files]
        self._update_forgotten(self._forgotten.roots | self._touched())
        self._search_facts(journals)
        names = {one.path.name for one in self._passages}
        found = find_old_versions(self._home, self._found.forgotten, names, self._found.sessions)
        self._found.old_versions = list(dict.fromkeys([*found, *self._old_rollups()]))
        for journal in journals:
            self._found.team += self._in_team(journal.project)
        shared = {project.root for project, _ in self._found.team}
        self._update_forgotten(self._found.forgotten.roots | shared)
        return self._found

    def _may_hold(self, mentioned: Mentioned) -> bool:
        if self._forgotten.periods:
            return True
        own = (self._turns, self._grips, self._notes, self._facts)
        if not all(map(mentioned.ids.isdisjoint, own)):
            return True
        others = self._only.values()
        return any(mentioned.ids & (one.turns | one.grips | one.notes | one.facts) for one in others)

    def _in_team(self, project: Project) -> Iterator[tuple[Project, WrittenEntry]]:
        """Yield what the user shares in a repository that is a copy of something forgotten."""
        if not os.path.isdir(os.path.join(project.root, TEAM_DIRECTORY)):
            return
        try:
            own = TeamFolder(project, author_folder(project.root), shared=False).entries()
        except MemkitError as error:  # no repository, or git does not know who the user is
            logger.warning("what is shared in %s is not looked at: %s", project.root, error)
            return
        gone = self._found.forgotten.within(project.root)
        ids = gone.turns | gone.grips | gone.notes | gone.facts
        is_whole = any(one.whole and one.project == project.root for one in self._forgotten.periods)
        yield from ((project, one) for one in own if is_whole or one.origin in ids)

    def _old_rollups(self) -> Iterator[Path]:
        """Yield copies of the rollups of days that lose something: nothing tells what a title rests on."""
        for one in self._found.days:
            names = one.rollups
            for path in replaced_files(self._home, {one.project.root}):
                if original_name(path) in names:
                    yield path

    def _update_forgotten(self, roots: frozenset[str] | set[str]) -> None:
        self._found.forgotten = msgspec.structs.replace(
            self._forgotten, turns=frozenset(self._turns), grips=frozenset(self._grips),
            notes=frozenset(self._notes), facts=frozenset(self._facts), minutes=frozenset(self._minutes),
            only=self._only, roots=frozenset(roots),
        )  # fmt: skip

    def _add_turn(self, turn: str, root: str, session: str, began: datetime | float | None) -> None:
        if self._everywhere or self._forgotten.covers_everywhere(turn, session, began):
            self._turns.add(turn)
        else:
            self._add_own(root, Ids(turns=frozenset({turn})))

    def _add_own(self, root: str, ids: Ids) -> None:
        self._only[root] = self._only.get(root, Ids()) | ids

    def _add_minute(self, began: datetime | None) -> None:
        if began is not None:
            self._minutes.add(int(began.timestamp() // 60))

    def _add_projects(self, roots: Iterable[str]) -> None:
        self._projects |= {Project.at_root(root, self._home) for root in roots}

    def _search_archive(self) -> None:
        archive = Archive(self._home)
        covered: set[str] = set()
        for session, path in archive.files():
            if not self._may_hold(self._mentions.of_archive(path)):
                continue
            turns = self._archive[session] = {}
            for turn in archive.versions(session):
                root = Project.at_root(turn.project, self._home).root if turn.project else ""
                turns[turn.id] = root, turn.time
                if self._forgotten.covers(turn.id, turn.project, session, turn.time):
                    self._add_turn(turn.id, root, session, turn.time)
                    covered.update(filter(None, [turn.project]))
        self._add_projects(covered)

    def _covered(
        self, project: Project, day: str, content: DayFile
    ) -> tuple[list[Section], list[Section], bool]:
        """Return the turns and notes of a day that are forgotten, and whether the whole file is forgotten."""
        turns, notes, session, kept = [], [], "", 0
        date = _date(day, content)
        for section in content.sections:
            session = _session_of(section, session)
            began = _began(date, section)
            if name := section.pairs.get("turn"):
                self._holders.setdefault(name, set()).add(project.root)
                if self._forgotten.covers(name, project.root, session, began):
                    turns.append(section)
                    self._add_turn(name, project.root, session, began)
                else:
                    kept += 1
            elif name := section.pairs.get("note"):
                self._holders.setdefault(f"note {name}", set()).add(project.root)
                if name in self._forgotten.within(project.root).notes:
                    notes.append(section)
                elif self._covers_note(project, began):
                    notes.append(section)
                    if self._everywhere:
                        self._notes.add(name)
                    else:
                        self._add_own(project.root, Ids(notes=frozenset({name})))
                else:
                    kept += 1
        return turns, notes, not kept and self._covers_day(project, day, date)

    def _covers_day(self, project: Project, day: str, date: str) -> bool:
        if not DAY_FILE.match(f"{day}.md"):  # a file that the user named
            return False
        begins = _local(date)
        start = begins.timestamp() if begins else 0.0
        periods = (one for one in self._forgotten.periods if one.project == project.root and not one.session)
        return any(one.since <= start < one.until for one in periods)

    def _covers_note(self, project: Project, began: datetime | None) -> bool:
        if began is None:
            return False
        periods = (period for period in self._forgotten.periods if not period.session)
        return any(one.covers(project.root, "", began.timestamp()) for one in periods)

    def _share(self) -> None:
        """Keep the turns and notes that other projects hold, there and in the archive."""
        for root, own in self._only.items():
            alone = {turn for turn in own.turns if not self._other_holders(turn)}
            self._turns |= alone
            kept = own.turns - self._turns
            self._only[root] = msgspec.structs.replace(own, turns=kept)
            others = [(turn, self._other_holders(turn)) for turn in kept]
            for note in own.notes:
                others.append((note, self._holders.get(f"note {note}", set()) - self._only.keys()))
            for name, roots in others:
                for other in roots:
                    before = self._found.shared.get(other, frozenset())
                    self._found.shared[other] = before | {name}
        self._only = {root: ids for root, ids in self._only.items() if ids != Ids()}
        for session, turns in self._archive.items():
            gone = frozenset(self._turns & turns.keys())
            if gone:
                self._found.archived[session] = gone
                self._found.sessions.add(session)
                for turn in gone:
                    root, began = turns[turn]
                    self._add_minute(began)
                    self._archived_in.update(filter(None, [root]))
            for turn, (root, _) in turns.items():
                if turn not in gone and turn in self._only.get(root, Ids()).turns:
                    self._found.owners.setdefault(session, {})[turn] = min(self._other_holders(turn))
                    self._archived_in.add(root)

    def _other_holders(self, turn: str) -> set[str]:
        holders = self._holders.get(turn, set())
        return {root for root in holders if turn not in self._only.get(root, Ids()).turns}

    def _search_day(
        self, journal: Journal, day: str, turns: list[Section], notes: list[Section], whole: bool
    ) -> None:
        content, root = journal.day(day), journal.project.root
        own = self._only.get(root, Ids())
        removal = Removal(self._turns, self._forgotten.grips)
        self._grips |= {bullet.id for _, bullet in removed_bullets(content, removal)}
        removal = Removal(self._turns | own.turns, self._grips | own.grips)
        found = [bullet for _, bullet in removed_bullets(content, removal)]
        named = {bullet.id for bullet in found}
        if named - self._grips:
            self._add_own(root, Ids(grips=frozenset(named - self._grips)))
        known = {section.pairs["turn"] for section in turns}
        date, session = _date(day, content), ""
        for section in content.sections:
            session = _session_of(section, session)
            name = section.pairs.get("turn", "")
            if name in self._turns or name in own.turns:
                if name not in known:  # found by another day or project, or by the archive
                    turns.append(section)
                if name in self._turns:
                    self._found.sessions.add(session)
                    self._add_minute(_began(date, section) if section.minute else None)
        if turns or notes or found or whole:
            entries = tuple(_entry(day, section, "turn") for section in turns)
            noted = tuple(_entry(day, section, "note") for section in notes)
            self._found.days.append(DayLocation(journal.project, day, entries, noted, len(found), whole))

    def _search_facts(self, journals: list[Journal]) -> None:
        is_scoped = not self._everywhere and any(period.project for period in self._forgotten.periods)
        for journal in journals:
            own = [one for one in self._passages if one.project == journal.project]
            forgotten = self._found.forgotten.within(journal.project.root)
            self._found.facts += find_facts(self._home, journal, forgotten, own, self._mentions)
        for one in self._found.facts:
            if is_scoped:
                self._add_own(one.project.root, Ids(facts=frozenset(one.facts)))
            else:
                self._facts |= one.facts.keys()
        roots = {one.project.root for one in self._found.facts}
        self._update_forgotten(self._found.forgotten.roots | roots)

    @property
    def _passages(self) -> list[Passage]:
        """The selected passages, and the whole of each file that is removed or loses a note."""
        files = list(self._found.files)
        files += [(one.project, Journal(one.project).path(one.day)) for one in self._found.days
                  if one.whole or one.notes]  # fmt: skip
        wholes = (Passage(project, path, 1, sys.maxsize, "", "") for project, path in files)
        return [*self._found.passages, *wholes]

    def _touched(self) -> set[str]:
        found = {one.project.root for one in self._found.days}
        found |= {one.project.root for one in self._found.passages}
        found |= {Project.at_root(root, self._home).root for root in self._archived_in}
        return found | {project.root for project, _ in self._found.files}


def _session_of(section: Section, session: str) -> str:
    return section.pairs.get("session", "" if section.is_opening else session)


def _date(day: str, content: DayFile) -> str:
    title = content.lines[0].removeprefix("# ") if content.lines else ""
    return next((text[:10] for text in (Path(day).name, title) if is_iso_date(text[:10])), "")


def _began(date: str, section: Section) -> datetime | None:
    return _local(f"{date} {section.minute or '00:00'}") if date else None


def _local(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None


def _entry(day: str, section: Section, key: str) -> ForgottenEntry:
    heading = anchors.strip(section.heading).lstrip("#").strip()
    return ForgottenEntry(day, heading, section.pairs[key])
