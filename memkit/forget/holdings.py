"""Where memkit keeps what is to be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from memkit import anchors
from memkit.capture import spool
from memkit.capture.archive import Archive
from memkit.capture.brief import days
from memkit.capture.day_file import DayFile, Section
from memkit.capture.day_removal import Removal, bullets
from memkit.capture.journal import Journal
from memkit.capture.sessions import Session, Sessions
from memkit.capture.tombstones import Forgotten
from memkit.capture.turn import turn_id
from memkit.forget.selection import Passage, Selection
from memkit.index.current import known_roots
from memkit.paths import Home
from memkit.project import Project


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn or a note of the journal: its day, its heading without anchor, and its id."""

    day: str
    heading: str
    id: str


@dataclass(frozen=True, slots=True)
class DayHolding:
    """What of one day goes; `whole` says that nothing of the file is to stay."""

    project: Project
    day: str
    turns: tuple[Entry, ...]
    notes: tuple[Entry, ...]
    bullets: int
    whole: bool


@dataclass(slots=True)
class Holdings:
    """All that is to go: `forgotten` names every turn of it.

    `archived` are turns by session; `files` are markdown files that go whole, `sessions` the names of those
    of which something goes.
    """

    forgotten: Forgotten
    passages: list[Passage]
    days: list[DayHolding] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    archived: dict[str, frozenset[str]] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    events: list[str] = field(default_factory=list)

    @property
    def turns(self) -> list[Entry]:
        """The turns of the journal."""
        return [entry for day in self.days for entry in day.turns]

    @property
    def notes(self) -> list[Entry]:
        """The notes of the journal."""
        return [entry for day in self.days for entry in day.notes]

    @property
    def bullets(self) -> int:
        """How many bullets go."""
        return sum(day.bullets for day in self.days)

    def __bool__(self) -> bool:
        return bool(self.days or self.files or self.archived or self.passages or self.events)


def find_holdings(home: Home, project: Project, selection: Selection) -> Holdings:
    """All that is kept of `selection` in the memory home, in every project. Reads only.

    Raises `ArchiveError`, `JournalError`.
    """
    return _Search(home, project, selection).run()


def named_turn(session: str, prompt_id: str) -> str:
    """The id of the turn that a prompt began; "" if the prompt has none."""
    return turn_id(session, prompt_id, "", "") if prompt_id else ""


class _Search:
    def __init__(self, home: Home, project: Project, selection: Selection) -> None:
        self._home = home
        self._forgotten = selection.forgotten
        self._found = Holdings(selection.forgotten, selection.passages)
        self._turns = set(selection.forgotten.turns)
        self._minutes = set(selection.forgotten.minutes)
        roots = {project.root, *known_roots(home), *selection.forgotten.roots}
        self._roots = roots | {state.project for state in Sessions(home) if state.project}

    def run(self) -> Holdings:
        self._look_into_archive()
        projects = {Project.at_root(root, self._home).root for root in self._roots}
        journals = [Journal(Project(root)) for root in sorted(projects)]
        covered = {
            (journal.project, day): self._covered(journal.project, day, journal.day(day))
            for journal in journals
            for day in days(journal.project)
        }
        self._look_into_states()
        for (project, day), (turns, notes, whole) in covered.items():
            self._look_into_day(project, day, turns, notes, whole)
        for journal in journals:
            if any(p.whole and p.project == journal.project.root for p in self._forgotten.periods):
                own = {journal.path(day) for day in days(journal.project)}
                self._found.files += sorted(set(journal.directory.rglob("*.md")) - own)
        touched = {one.project.root for one in self._found.days} | set(self._roots_of_files())
        self._found.forgotten = msgspec.structs.replace(
            self._forgotten,
            turns=frozenset(self._turns),
            notes=self._forgotten.notes | {entry.id for entry in self._found.notes},
            minutes=frozenset(self._minutes),
            roots=self._forgotten.roots | touched,
        )
        return self._found

    def _roots_of_files(self) -> Iterator[str]:
        for path in [*self._found.files, *(passage.path for passage in self._found.passages)]:
            yield from (root for root in self._roots if path.is_relative_to(root))

    def _look_into_archive(self) -> None:
        archive = Archive(self._home)
        for session in archive.sessions():
            gone = set()
            for turn in archive.versions(session):
                if self._forgotten.covers(turn.id, turn.project, session, turn.time):
                    gone.add(turn.id)
                    self._note(turn.time)
                    self._roots.update(filter(None, [turn.project]))
            if gone:
                self._found.archived[session] = frozenset(gone)
                self._found.sessions.add(session)
                self._turns |= gone

    def _covered(
        self, project: Project, day: str, content: DayFile
    ) -> tuple[list[Section], list[Section], bool]:
        """The turns and notes of a day that are forgotten, and whether all of it is."""
        turns, notes, session, stay = [], [], "", 0
        for section in content.sections:
            session = section.pairs.get("session", "" if section.is_opening else session)
            began = _began(day, section)
            if "turn" in section.pairs:
                name = section.pairs["turn"]
                if not self._forgotten.covers(name, project.root, session, began):
                    stay += 1
                    continue
                turns.append(section)
                self._turns.add(name)
                self._found.sessions.add(session)
                self._note(began if section.minute else None)
            elif "note" in section.pairs:
                name = section.pairs["note"]
                if name in self._forgotten.notes or self._covers_note(project, began):
                    notes.append(section)
                else:
                    stay += 1
        start = datetime.fromisoformat(day).timestamp()
        whole = not stay and any(
            period.project == project.root and not period.session
            and period.since <= start < period.until
            for period in self._forgotten.periods
        )  # fmt: skip
        return turns, notes, whole

    def _covers_note(self, project: Project, began: datetime) -> bool:
        periods = (period for period in self._forgotten.periods if not period.session)
        return any(one.covers(project.root, "", began.timestamp()) for one in periods)

    def _note(self, began: datetime | None) -> None:
        if began is not None:
            self._minutes.add(int(began.timestamp() // 60))

    def _look_into_day(
        self, project: Project, day: str, turns: list[Section], notes: list[Section], whole: bool
    ) -> None:
        content = Journal(project).day(day)
        removal = Removal(self._turns, self._forgotten.grips)
        found = sum(1 for _ in bullets(content, removal))
        # A turn that another day, project or the archive has named.
        known = {section.pairs["turn"] for section in turns}
        for section in content.sections:
            name = section.pairs.get("turn")
            if name in self._turns and name not in known:
                turns.append(section)
        if turns or notes or found or whole:
            entries = tuple(_entry(day, section, "turn") for section in turns)
            own = tuple(_entry(day, section, "note") for section in notes)
            self._found.days.append(DayHolding(project, day, entries, own, found, whole))

    def _look_into_states(self) -> None:
        """Prompts whose turn is still under way, in the states of sessions and in the spool."""
        for state in Sessions(self._home):
            if is_of_period(state, self._forgotten):
                self._turns.update(filter(None, (named_turn(state.id, p) for p in state.prompts)))
        for path, record in spool.stored(self._home):
            if record is None or not any(name in record for name in spool.TEXT_FIELDS):
                continue
            session = str(record.get("session", ""))
            own = named_turn(session, str(record.get("prompt_id", "")))
            project, time = str(record.get("project", "")), spool.time_of(record)
            if self._forgotten.covers(own, project, session, time) or own in self._turns:
                self._found.events.append(path)
                self._turns.update(filter(None, [own]))
            elif not own and anchors.safe(session) in self._found.sessions:
                self._found.events.append(path)


def is_of_period(state: Session, forgotten: Forgotten) -> bool:
    """Whether a period of what is forgotten is one of this session or its project."""
    return any(
        period.project in ("", state.project) and period.session in ("", anchors.safe(state.id))
        for period in forgotten.periods
    )


def _began(day: str, section: Section) -> datetime:
    return datetime.fromisoformat(f"{day} {section.minute or '00:00'}").astimezone()


def _entry(day: str, section: Section, key: str) -> Entry:
    heading = anchors.strip(section.heading).lstrip("#").strip()
    return Entry(day, heading, section.pairs[key])
