"""The memory files of one project, and everything that is read from and written to them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from memkit import anchors
from memkit.errors import JournalError
from memkit.files import RefusedFileError, inside
from memkit.hook.entries import DAY_FILE, is_copy, machine_of, note_own, note_redacted
from memkit.hook.entries import days as days_of
from memkit.journal.day_edits import Removal, is_empty, merge, redact_day, remove, remove_lines
from memkit.journal.day_file import DayFile, as_taken, heading_title, is_as_taken
from memkit.journal.day_overview import DayOverview, without_overview
from memkit.journal.day_summaries import set_checks, summarize
from memkit.journal.day_writes import Growing, NearbyDays, insert_note, write_turn
from memkit.journal.digest import Digest, Note, NoteText
from memkit.journal.facts import FactChange, FactFile
from memkit.journal.files import MemoryDirectory, Record, is_crlf
from memkit.paths import OPENCLAW_DAYS, Home
from memkit.projects.project import OPENCLAW, Project

logger = logging.getLogger(__name__)


class Journal:
    """The memory files of one project: turns, bullets, facts, and notes.

    If `shared`, the memory may be in git. Pass the memory `home` to add text: it records what it wrote, and
    nothing else is quoted unasked (see `OwnEntries`). Writes are durable on return. All methods raise
    `JournalError`.
    """

    def __init__(self, project: Project, *, shared: bool = False, home: Home | None = None) -> None:
        self.project = project
        self.directory = Path(project.memory)
        self._home = home
        self._files = MemoryDirectory(project, shared=shared)

    def prepare(self) -> None:
        """Create the memory's folder, and have git ignore it and OpenClaw's unless the memory is shared."""
        with self._files.locked():
            pass

    def days(self) -> list[str]:
        """Return the days (ISO), oldest first."""
        return days_of(self.project)

    def markdown(self) -> list[Path]:
        """Return all Markdown files of this memory, sorted by name. Symlinks are left out.

        Of OpenClaw's folder, only its days.
        """
        return [Path(path) for path in self._markdown()]

    def _markdown(self) -> list[str]:
        theirs = {name: self.project.day_file(name) for name in self.project.openclaw_days()}
        try:
            inside(str(self.directory), self.project.root)
        except OSError as error:
            logger.warning("%s is not read: %s", self.directory, error.strerror)
            return list(theirs.values())
        own = {path[len(str(self.directory)) + 1 :]: path for path in _markdown_in(str(self.directory))}
        return [path for _, path in sorted([*own.items(), *theirs.items()])]

    def renamed_days(self) -> list[str]:
        """Return the files with turns, notes, or bullets that are not named like days; sorted, without
        suffix.

        The user may rename a day or move it to a folder. All methods accept such a name as a day.
        """
        return [
            self.project.name_at(str(path))
            for path in self._other_files()
            if re.search("turn:|note:|grip:", self._files.read_if_used(path))
        ]

    def _other_files(self) -> list[Path]:
        days = {self.project.day_file(day) for day in self.days()}
        return [Path(path) for path in self._markdown() if path not in days]

    def path(self, day: str) -> Path:
        """Return the file of a day."""
        return Path(self.project.day_file(day))

    def day_for(self, date: str) -> str:
        """Return the day file to which entries of an ISO date, or of one of its files, go.

        `DATE.openclaw` if new days go to OpenClaw's folder, and the date has no file in memkit's own: a day
        stays where it began. `DATE.local` if git tracks the usual file: it would commit private turns.
        `MEMORY`, without suffix, works like a day. Raise `JournalError` if git tracks both.
        """
        date = date.removesuffix(OPENCLAW)
        if self._is_for_openclaw(date):
            return date + OPENCLAW
        return self._outside_git(date)

    def _outside_git(self, date: str) -> str:
        if not self.is_public(date):
            return date
        self._files.refuse_tracked(self.path(f"{date}.local"))
        return f"{date}.local"

    def _is_for_openclaw(self, date: str) -> bool:
        path = self.path(date + OPENCLAW)
        if not self._files.is_openclaw(path) or not self._files.may_use_openclaw():
            return False
        try:
            if DayFile(self._files.read(path)).sections:
                return True
        except JournalError as error:
            if isinstance(error.__cause__, RefusedFileError):  # a link, say; the doctor reports it
                return False
            raise
        own = (self.path(date), self.path(f"{date}.local"))
        return self.project.folder == OPENCLAW_DAYS and not any(path.exists() for path in own)

    def is_public(self, day: str) -> bool:
        """Return whether git tracks the file of a day although the memory is not shared."""
        return self._files.is_tracked(self.path(day))

    def day(self, day: str) -> DayFile:
        """Read one day."""
        return DayFile(self.text(f"{day}.md") or f"# {day[:10]}")

    def text(self, name: str | Path) -> str:
        """Read a file by its path or its name in the memory; "" if there is none."""
        return self._files.read(Path(self._place(name)))

    def data(self, name: str | Path) -> bytes:
        """Return the bytes of a file; see `text`."""
        return self._files.data(self._place(name))

    def _place(self, name: str | Path) -> str:
        if isinstance(name, str) and name.endswith(".md"):
            return self.project.day_file(name.removesuffix(".md"))
        return os.path.join(self.directory, name)

    def write(
        self,
        digests: Iterable[Digest],
        growing: Mapping[str, Growing] | None = None,
        will_write: Callable[[Digest, str], None] = lambda digest, day: None,
    ) -> list[Digest]:
        """Write the turns that are missing. Return those that changed a file.

        Replaces the section of a `growing` turn (by ID) if it still reads as it was written. `will_write`
        gets each turn that changes a file, with its day, before the write.
        """
        by_day: dict[str, list[Digest]] = {}
        for digest in digests:
            by_day.setdefault(self.day_for(digest.day), []).append(digest)
        if not by_day:
            return []
        with self._files.locked():
            renamed = self._renamed_turns()
            return [
                digest
                for day, group in sorted(by_day.items())
                for digest in self._write_day(day, group, growing or {}, renamed, will_write)
            ]

    def _renamed_turns(self) -> set[str]:
        turns: set[str] = set()
        for path in self._other_files():
            try:
                turns |= self._titles_in(path).keys()
            except JournalError as error:  # must not stop the capture of another file
                logger.warning("%s", error)
        return turns

    def turn_titles(self) -> dict[str, str]:
        """Return the titles of all turns by ID, from the days and all other files."""
        titles: dict[str, str] = {}
        for path in (*map(self.path, self.days()), *self._other_files()):
            titles |= self._titles_in(path)
        return titles

    def _titles_in(self, path: Path) -> dict[str, str]:
        text = "" if is_copy(path.name) else self._files.read_if_used(path)
        sections = DayFile(text).sections if "turn:" in text else ()
        return {one.pairs["turn"]: heading_title(one) for one in sections if "turn" in one.pairs}

    def _write_day(
        self,
        day: str,
        group: list[Digest],
        growing: Mapping[str, Growing],
        renamed: Collection[str],
        will_write: Callable[[Digest, str], None],
    ) -> list[Digest]:
        nearby = NearbyDays(self._files, day)
        changed: list[Digest] = []

        def change(content: DayFile) -> None:
            changed[:] = [
                digest
                for digest in group
                if (digest.turn not in renamed or content.find_turn(digest.turn) is not None)
                and write_turn(content, digest, growing.get(digest.turn), nearby)
            ]
            for digest in changed:
                will_write(digest, day)

        self._change_day(self.path(day), change, record=self._note_own)
        return changed

    def change(self, day: str, change: Callable[[DayFile], int], own: Container[str]) -> int:
        """Apply `change` to a day and return its result. Begin no overview.

        Record added text that is in `own` as written by this home (see `OwnEntries`).
        """
        results: list[int] = []
        self._change_day(
            self.path(self.day_for(day)),
            lambda content: results.append(change(content)),
            record=lambda before, after: self._note_own(before, after, own),
            may_begin_overview=False,
        )
        return results[-1]

    def redact(
        self,
        day: str,
        redact: Callable[[int, str], str],
        growing: Mapping[str, Growing],
        will_write: Callable[[str, str], None],
    ) -> bool:
        """Pass the text of a day through `redact`, piece by piece. Return whether the file changed.

        Keeps anchors and everything that `redact` returns unchanged. An unedited `growing` section can still
        grow: `will_write` gets its turn and its new hash before the write.
        """
        known = {turn: one.hashes for turn, one in growing.items()}

        is_theirs = self._files.is_openclaw(self.path(day))

        def change(content: DayFile) -> None:
            before = list(content.lines)
            hashes = redact_day(content, redact, known, only_sections=is_theirs)
            if content.lines != before:
                for turn, section in hashes.items():
                    will_write(turn, section)

        def record(before: str, after: str) -> None:
            if self._home is not None:
                before, after = _quotable_part(before), _quotable_part(after)
                note_redacted(self._home, self.project.root, before, after)

        return self._change_day(self.path(day), change, record=record)

    def summarize(
        self,
        day: str,
        turns: Sequence[str],
        bullets: Sequence[str],
        title: str = "",
        *,
        key: str = "summary",
    ) -> bool:
        """Insert the bullets and title of a segment above its turns; see `day_summaries.summarize`.

        Refuse a day that git tracks while the memory is not shared: bullets cannot go elsewhere.
        """
        if self.is_public(day):
            raise JournalError(
                f"git tracks {self.path(day)} and memory.shared is off, so memkit writes no bullets into it"
            )
        return self._change_day(
            self.path(day),
            lambda content: summarize(content, turns, bullets, title, key=key),
            record=self._note_own,
        )

    def set_checks(self, day: str, checks: Mapping[str, str]) -> None:
        """Give bullets of a day, named by their lines, another mark; see `day_summaries.set_checks`."""
        self._change_day(
            self.path(day),
            lambda content: set_checks(content, checks),
            record=self._note_own,
            may_begin_overview=False,
        )

    def change_facts(self, name: str, change: FactChange, keep: Callable[[str], object]) -> bool:
        """Change the facts in the file `name`; see `FactChange.apply`. Return whether that changed it.

        `keep` gets the text about to be replaced. If it raises, nothing is written.
        """

        def apply(before: str) -> str:
            after = change.apply(before, name)
            if after != before:
                keep(before)
            return after

        self._files.refuse_tracked(self.directory / name)
        return self._files.rewrite(self.directory / name, apply, record=self._note_own)

    def add_note(self, note: Note) -> bool:
        """Write a note. Return False if it is already there."""
        return self._change_day(
            self.path(self.day_for(note.day)),
            lambda content: insert_note(content, note),
            record=self._note_own,
        )

    def edit_note(self, day: str, name: str, text: NoteText) -> None:
        """Give a note new text. Its ID and time stay."""

        def change(content: DayFile) -> None:
            for section in content.sections:
                if section.pairs.get("note") == name:
                    end = section.start + len(content.text(section).rstrip().split("\n"))
                    content.put(section.start, end, text.section(name, section.minute).split("\n"))
                    return

        self._change_day(self.path(day), change, record=self._note_own)

    def find_note(self, text: NoteText) -> Note | None:
        """Return the newest note that was written with this text, whatever the user has made of it since."""
        for day in reversed(self.days()):
            written = self.text(f"{day}.md")
            content = DayFile(written if "note:" in written else "")
            for section in content.sections:
                name = section.pairs.get("note", "")
                if name and name == text.id_at(day[:10], section.minute):
                    return Note(name, day[:10], section.minute, content.text(section), is_new=False)
        return None

    def edit(self, day: str, before: bytes, edited: bytes) -> None:
        """Store a user's edit of a day that read `before`; see `merge` for changes made meanwhile."""
        old, new = (data.decode("utf-8", "surrogateescape") for data in (before, edited))
        if is_crlf(old):
            old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")

        def apply(text: str) -> str:
            overview = DayOverview(DayFile(new))  # what the user removed from it stays out
            content = DayFile(merge(old, new, text))
            overview.update(content)
            return content.render()

        self._files.rewrite(self.path(day), apply, record=self._note_own)

    def take_over(self, name: str, data: bytes, own: Container[str]) -> None:
        """Write a whole file, such as one from a backup, replacing any file at `name`.

        `name` is relative to the memory directory, with slashes. Only words in `own` become this home's.
        """
        path = Path(self._place(name))
        if DAY_FILE.match(name):
            path = self.path(self._outside_git(path.stem))
        elif self._files.is_openclaw(path):
            self._files.refuse_tracked(path)
        self._create(path, data, lambda before, after: self._note_own(before, after, own))

    def take(self, day: str, change: Callable[[str], str | None]) -> bool:
        """Replace the text of a day of another machine; None removes the file. Return whether it changed.

        It counts as no entry of this home: the other one may have had it from a repository.
        """
        self._files.refuse_tracked(self.path(day))
        return self._files.rewrite(self.path(day), change)

    def add_file(self, name: Path, data: bytes) -> bool:
        """Add a file that is not a day to the memory. Return False if it is already there.

        If another file has its name, the name gets a number.
        """
        with self._files.locked():
            path = self._place_for(name, data)
            return not path.exists() and self._create(path, data)

    def holds_file(self, name: Path, data: bytes) -> bool:
        """Return whether `add_file` would find the file already there."""
        return self._place_for(name, data).exists()

    def _place_for(self, name: Path, data: bytes) -> Path:
        path = self.directory / name
        number = 1
        while path.exists() and self.data(path) != data:
            number += 1
            path = self.directory / name.with_name(f"{name.stem}-{number}{name.suffix}")
        return path

    def _create(self, path: Path, data: bytes, record: Record | None = None) -> bool:
        text = data.decode("utf-8", "surrogateescape")
        return self._files.rewrite(path, lambda before: text, create=True, record=record)

    def remove(self, day: str, removal: Removal) -> bool:
        """Remove what `removal` names from a day, and the file itself if nothing else is in it.

        Return whether anything was there.
        """
        return self._change_day(self.path(day), lambda content: remove(content, removal), may_vanish=True)

    def remove_facts(self, path: Path, ids: Collection[str]) -> bool:
        """Remove the facts with these IDs, edited or not, from a file. Return whether one was there."""
        return self._change_fact_file(path, lambda content: content.forget(ids))

    def drop_title(self, name: str) -> bool:
        """Remove the title that a model gave the rollup `name`, `2026-W47.md`. Return whether it had one."""
        return self._change_fact_file(self.directory / name, FactFile.drop_title)

    def _change_fact_file(self, path: Path, change: Callable[[FactFile], bool]) -> bool:
        def apply(text: str) -> str:
            content = FactFile(text, path.name)
            return content.render() if change(content) else text

        return self._files.rewrite(path, apply)

    def remove_lines(self, path: Path, start: int, end: int) -> bool:
        """Remove the lines `start` to `end` (from 1, inclusive) from a file.

        Headings of sections and bullets stay. To a day of another machine it is an edit: it does not come
        whole again, as the lines have no IDs.
        """
        return self._change_day(
            path, lambda content: remove_lines(content, start, end), may_vanish=True, is_edit=True
        )

    def remove_older(self, day: str) -> list[str]:
        """Delete the days before `day` (ISO) as `remove_day` does, and return them."""
        older = [known for known in self.days() if known < day]
        if not older:
            return []
        with self._files.locked():
            return [known for known in older if self.remove_day(known)]

    def remove_day(self, day: str) -> bool:
        """Delete a day; in OpenClaw's folder only memkit's sections. Return whether there was anything."""
        path = self.path(day)
        if self._files.is_openclaw(path):
            sections = self.day(day).sections
            turns = [one.pairs["turn"] for one in sections if "turn" in one.pairs]
            notes = [one.pairs["note"] for one in sections if "note" in one.pairs]
            return self.remove(day, Removal(turns, notes=notes))
        is_there = path.exists()
        self._files.remove(path)
        return is_there

    def remove_file(self, path: Path) -> None:
        """Remove a file of the memory directory."""
        self._files.remove(path)

    def remove_left_behind(self) -> None:
        """Remove temporary files of killed writers."""
        with self._files.locked():
            for directory in self._files.directories:
                for path in Path(directory).glob(".*.tmp"):
                    path.unlink(missing_ok=True)

    def _note_own(self, before: str, after: str, among: Container[str] | None = None) -> None:
        """Record that this home wrote what `after` adds to `before`."""
        if self._home is not None:
            before, after = _quotable_part(before), _quotable_part(after)
            note_own(self._home, self.project.root, before, after, among)

    def _change_day(
        self,
        path: Path,
        change: Callable[[DayFile], object],
        *,
        may_vanish: bool = False,
        may_begin_overview: bool = True,
        is_edit: bool = False,
        record: Record | None = None,
    ) -> bool:
        """Calls `change` again if the file changed meanwhile. With `may_vanish`, remove an empty day."""

        is_theirs = self._files.is_openclaw(path)
        is_foreign = machine_of(path.stem) and not is_edit

        def apply(text: str) -> str | None:
            content = DayFile(text or f"# {path.stem[:10]}")
            before = list(content.lines)
            overview = DayOverview(content, may_begin=may_begin_overview and not is_theirs)
            change(content)
            if content.lines == before:
                return text
            overview.update(content)
            if is_theirs:
                content.mark_end()
            if may_vanish and is_empty(content):
                return None
            # What memkit changes in a day of another machine is not the user's edit.
            return as_taken(content.render()) if is_foreign and is_as_taken(text) else content.render()

        return self._files.rewrite(path, apply, record=record)


def _markdown_in(directory: str) -> Iterator[str]:
    """Yield the paths of all Markdown files below a directory, but no links, nor what is behind them."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _markdown_in(entry.path)
                elif entry.name.endswith(".md") and entry.is_file(follow_symlinks=False):
                    yield entry.path
    except (FileNotFoundError, PermissionError):  # as for a file that is not there
        return


def _quotable_part(text: str) -> str:
    return without_overview(anchors.own_part(text))
