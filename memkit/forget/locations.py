"""Where memkit keeps what is to be forgotten."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.project_list import remembered_projects
from memkit.forget.facts import FactLocation, find_facts
from memkit.forget.old_versions import old_versions
from memkit.forget.selection import ForgetSelection, Passage
from memkit.hook.project import Project
from memkit.hook.session_facts import days
from memkit.index.sections import is_iso_date
from memkit.journal.day_file import DayFile, Section
from memkit.journal.day_removal import Removal, bullets
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Ids


@dataclass(frozen=True, slots=True)
class ForgottenEntry:
    """A turn or a note of the journal: its day, its heading without anchor, and its id."""

    day: str
    heading: str
    id: str


@dataclass(frozen=True, slots=True)
class DayLocation:
    """What of one day goes; `whole` says that nothing of the file is to stay."""

    project: Project
    day: str
    turns: tuple[ForgottenEntry, ...]
    notes: tuple[ForgottenEntry, ...]
    bullets: int
    whole: bool


@dataclass(slots=True)
class Locations:
    """All that is to go: `forgotten` names every turn of it.

    `archived` are turns by session; `files` are markdown files that go whole; `old_versions` those that were
    kept when a compaction or a restore replaced them; `sessions` the names of those of which something goes.
    `shared` names, by root, the turns and notes that another project keeps; `owners` are the projects to
    which turns that stay in the archive go over, by session and turn.
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

    @property
    def by_project(self) -> dict[str, int]:
        """How many turns and notes of the journal go, by the roots of the projects that lose something."""
        found = dict.fromkeys(sorted(self.forgotten.roots), 0)
        for day in self.days:
            count = len(day.turns) + len(day.notes)
            found[day.project.root] = found.get(day.project.root, 0) + count
        return found

    @property
    def turns(self) -> list[ForgottenEntry]:
        """The turns of the journal."""
        return [entry for day in self.days for entry in day.turns]

    @property
    def notes(self) -> list[ForgottenEntry]:
        """The notes of the journal."""
        return [entry for day in self.days for entry in day.notes]

    @property
    def bullets(self) -> int:
        """How many bullets go."""
        return sum(day.bullets for day in self.days)

    def __bool__(self) -> bool:
        return bool(
            self.days or self.files or self.facts or self.archived or self.passages or self.old_versions
        )  # fmt: skip


def find_locations(home: Home, project: Project, selection: ForgetSelection) -> Locations:
    """All that is kept of `selection` in the memory home, in every project. Reads only.

    Raises `ArchiveError`, `JournalError`.
    """
    found = _Search(home, project, selection).run()
    if selection.everywhere:  # with all ids that this has found
        whole = ForgetSelection(found.forgotten, selection.passages, everywhere=True)
        found = _Search(home, project, whole).run()
    return found


class _Search:
    def __init__(self, home: Home, project: Project, selection: ForgetSelection) -> None:
        self._home = home
        self._everywhere = selection.everywhere
        self._forgotten = selection.forgotten
        self._found = Locations(selection.forgotten, selection.passages)
        self._turns = set(selection.forgotten.turns)
        self._minutes = set(selection.forgotten.minutes)
        self._grips = set(selection.forgotten.grips)
        self._notes = set(selection.forgotten.notes)
        self._facts = set(selection.forgotten.facts)
        self._only: dict[str, Ids] = dict(selection.forgotten.only)
        self._holders: dict[str, set[str]] = {}
        self._archive: dict[str, dict[str, tuple[str, datetime | None]]] = {}
        self._archived_in: set[str] = set()
        self._projects = {project, *remembered_projects(home)}
        self._add_projects(selection.forgotten.roots)

    def run(self) -> Locations:
        self._look_into_archive()
        journals = [Journal(one) for one in sorted(self._projects, key=lambda one: one.root)]
        covered = {
            (journal, day): self._covered(journal.project, day, journal.day(day))
            for journal in journals
            for day in (*days(journal.project), *journal.renamed_days())
        }
        self._share()
        for (journal, day), (turns, notes, whole) in covered.items():
            self._look_into_day(journal, day, turns, notes, whole)
        for journal in journals:
            if any(p.whole and p.project == journal.project.root for p in self._forgotten.periods):
                own = {journal.path(day) for day in days(journal.project)}
                files = sorted(set(journal.markdown()) - own)
                self._found.files += [(journal.project, path) for path in files]
        roots = self._forgotten.roots | self._touched()
        self._found.forgotten = msgspec.structs.replace(self._named(), roots=roots)
        self._look_into_facts(journals)
        names = {one.path.name for one in self._text}
        found = old_versions(self._home, self._found.forgotten, names, self._found.sessions)
        self._found.old_versions = list(found)
        return self._found

    def _named(self) -> Forgotten:
        """What is to be forgotten, with all that was found."""
        return msgspec.structs.replace(
            self._forgotten,
            turns=frozenset(self._turns),
            grips=frozenset(self._grips),
            notes=frozenset(self._notes),
            facts=frozenset(self._facts),
            minutes=frozenset(self._minutes),
            only=self._only,
        )

    def _add_turn(self, turn: str, root: str, session: str, began: datetime | float | None) -> None:
        """Note that a turn goes, from all projects or from the one at `root` only."""
        if self._everywhere or self._forgotten.covers_everywhere(turn, session, began):
            self._turns.add(turn)
        else:
            self._add_own(root, Ids(turns=frozenset({turn})))

    def _add_own(self, root: str, ids: Ids) -> None:
        self._only[root] = self._only.get(root, Ids()) | ids

    def _share(self) -> None:
        """Find out which turns other projects hold, too: there they stay, and in the archive."""
        for root, own in self._only.items():
            alone = {turn for turn in own.turns if not self._others(turn)}
            self._turns |= alone
            kept = own.turns - self._turns
            self._only[root] = msgspec.structs.replace(own, turns=kept)
            others = [(turn, self._others(turn)) for turn in kept]
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
                    self._note(began)
                    self._archived_in.update(filter(None, [root]))
            for turn, (root, _) in turns.items():
                if turn not in gone and turn in self._only.get(root, Ids()).turns:
                    self._found.owners.setdefault(session, {})[turn] = min(self._others(turn))
                    self._archived_in.add(root)

    def _others(self, turn: str) -> set[str]:
        """The roots of the projects that keep the turn."""
        holders = self._holders.get(turn, set())
        return {root for root in holders if turn not in self._only.get(root, Ids()).turns}

    def _touched(self) -> set[str]:
        """The roots of the projects whose memory loses something."""
        found = {one.project.root for one in self._found.days}
        found |= {one.project.root for one in self._found.passages}
        found |= {Project.at_root(root, self._home).root for root in self._archived_in}
        return found | {project.root for project, _ in self._found.files}

    def _look_into_facts(self, journals: list[Journal]) -> None:
        for journal in journals:
            own = [one for one in self._text if one.project == journal.project]
            forgotten = self._found.forgotten.within(journal.project.root)
            self._found.facts += find_facts(self._home, journal, forgotten, own)
        for one in self._found.facts:
            if self._is_scoped:
                self._add_own(one.project.root, Ids(facts=frozenset(one.facts)))
            else:
                self._facts |= one.facts.keys()
        roots = self._found.forgotten.roots | {one.project.root for one in self._found.facts}
        self._found.forgotten = msgspec.structs.replace(self._named(), roots=roots)

    @property
    def _is_scoped(self) -> bool:
        """Whether something goes because it is of one project."""
        return not self._everywhere and any(period.project for period in self._forgotten.periods)

    @property
    def _text(self) -> list[Passage]:
        """Where text goes that belongs to no turn: passages, and files that go whole or lose a note."""
        files = list(self._found.files)
        files += [(one.project, Journal(one.project).path(one.day)) for one in self._found.days
                  if one.whole or one.notes]  # fmt: skip
        wholes = (Passage(project, path, 1, sys.maxsize, "", "") for project, path in files)
        return [*self._found.passages, *wholes]

    def _add_projects(self, roots: Iterable[str]) -> None:
        self._projects |= {Project.at_root(root, self._home) for root in roots}

    def _look_into_archive(self) -> None:
        archive = Archive(self._home)
        covered: set[str] = set()
        for session in archive.sessions():
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
        """The turns and notes of a day that are forgotten, and whether all of it is."""
        turns, notes, session, stay = [], [], "", 0
        date = _date(day, content)
        for section in content.sections:
            session = section.pairs.get("session", "" if section.is_opening else session)
            began = _began(date, section)
            if "turn" in section.pairs:
                name = section.pairs["turn"]
                self._holders.setdefault(name, set()).add(project.root)
                if not self._forgotten.covers(name, project.root, session, began):
                    stay += 1
                    continue
                turns.append(section)
                self._add_turn(name, project.root, session, began)
            elif "note" in section.pairs:
                name = section.pairs["note"]
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
                    stay += 1
        is_day = day == f"{date}.local" or day == date
        start = datetime.fromisoformat(date).timestamp() if is_day else 0.0
        whole = is_day and not stay and any(
            period.project == project.root and not period.session
            and period.since <= start < period.until
            for period in self._forgotten.periods
        )  # fmt: skip
        return turns, notes, whole

    def _covers_note(self, project: Project, began: datetime | None) -> bool:
        if began is None:
            return False
        periods = (period for period in self._forgotten.periods if not period.session)
        return any(one.covers(project.root, "", began.timestamp()) for one in periods)

    def _note(self, began: datetime | None) -> None:
        if began is not None:
            self._minutes.add(int(began.timestamp() // 60))

    def _look_into_day(
        self, journal: Journal, day: str, turns: list[Section], notes: list[Section], whole: bool
    ) -> None:
        content, root = journal.day(day), journal.project.root
        own = self._only.get(root, Ids())
        found = list(bullets(content, Removal(self._turns, self._forgotten.grips)))
        self._grips |= {anchors.parse(content.lines[number])["grip"] for number in found}
        found = list(bullets(content, Removal(self._turns | own.turns, self._grips | own.grips)))
        named = {anchors.parse(content.lines[number])["grip"] for number in found}
        if named - self._grips:
            self._add_own(root, Ids(grips=frozenset(named - self._grips)))
        # A turn that another day, project or the archive has named.
        known = {section.pairs["turn"] for section in turns}
        date = _date(day, content)
        session = ""
        for section in content.sections:
            session = section.pairs.get("session", "" if section.is_opening else session)
            name = section.pairs.get("turn", "")
            if name in self._turns or name in own.turns:
                if name not in known:
                    turns.append(section)
                if name in self._turns:
                    self._found.sessions.add(session)
                    self._note(_began(date, section) if section.minute else None)
        if turns or notes or found or whole:
            entries = tuple(_entry(day, section, "turn") for section in turns)
            noted = tuple(_entry(day, section, "note") for section in notes)
            self._found.days.append(
                DayLocation(journal.project, day, entries, noted, len(found), whole)
            )


def _date(day: str, content: DayFile) -> str:
    """Return the ISO date of a day, which a person may have renamed; "" if its name and title do not tell."""
    title = content.lines[0].removeprefix("# ") if content.lines else ""
    return next((text[:10] for text in (Path(day).name, title) if is_iso_date(text[:10])), "")


def _began(date: str, section: Section) -> datetime | None:
    """Return when a section began; None if its date is not known."""
    if not date:
        return None
    return datetime.fromisoformat(f"{date} {section.minute or '00:00'}").astimezone()


def _entry(day: str, section: Section, key: str) -> ForgottenEntry:
    heading = anchors.strip(section.heading).lstrip("#").strip()
    return ForgottenEntry(day, heading, section.pairs[key])
