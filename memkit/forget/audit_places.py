"""Where text of conversations stands beside the index: each place can be looked through and redacted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from memkit.archive.archive import Archive
from memkit.archive.turn import redact_again
from memkit.capture.sessions import Sessions
from memkit.claude_code.exchange import redacted
from memkit.errors import MemkitError
from memkit.files import read_regular
from memkit.forget.findings import Redact, SecretFinder
from memkit.index.chunker import decode
from memkit.ipc import spool
from memkit.journal.journal import Journal
from memkit.journal.old_versions import replaced_files
from memkit.paths import Home
from memkit.state import parse_json


class Place(Protocol):
    """One file, or what is like one."""

    def look(self, finder: SecretFinder) -> None:
        """Have `finder` see all text. Raises `MemkitError`, `OSError`."""

    def fix(self, redact: Redact) -> None:
        """Redact it, durably. The caller holds the index lock. Raises `MemkitError`, `OSError`."""


@dataclass(frozen=True, slots=True)
class AuditedDayFile:
    """A day of the journal."""

    journal: Journal
    day: str
    home: Home

    def look(self, finder: SecretFinder) -> None:
        """See `Place`."""
        place = str(self.journal.path(self.day))
        self.journal.look_at(self.day, finder.lines_of("journal", place))

    def fix(self, redact: Redact) -> None:
        """See `Place`. A turn that may still grow goes on growing."""
        sessions = Sessions(self.home)
        root = self.journal.project.root
        states = {turn: state for state in sessions for turn in state.growing_in(root)}
        growing = {turn: state.growing_in(root)[turn] for turn, state in states.items()}

        def will_write(turn: str, section_hash: str) -> None:
            states[turn].will_write(turn, root, section_hash)
            sessions.save(states[turn])

        self.journal.redact(self.day, lambda line, text: redact(text), growing, will_write)


@dataclass(frozen=True, slots=True)
class ForeignMarkdown:
    """Indexed markdown that memkit did not write, and does not change."""

    path: Path

    def look(self, finder: SecretFinder) -> None:
        """See `Place`."""
        text, _ = decode(read_regular(os.path.realpath(self.path)))
        finder.lines_of("markdown", str(self.path))(1, text)

    def fix(self, redact: Redact) -> None:
        """Nothing: the file is a person's own."""


@dataclass(frozen=True, slots=True)
class ArchivedSession:
    """A session in the archive, if it has a turn of one of the projects at `roots`; None: of any."""

    archive: Archive
    session: str
    roots: Collection[str] | None

    def look(self, finder: SecretFinder) -> None:
        """See `Place`. What later versions of a turn have replaced is text in the file as well."""
        turns = list(self.archive.versions(self.session))
        if self.roots is None or any(turn.project in self.roots for turn in turns):
            for turn in turns:
                place = f"session {self.session} turn {turn.id}"
                redact_again(turn, finder.at("archive", place))

    def fix(self, redact: Redact) -> None:
        """See `Place`."""
        self.archive.rewrite(self.session, lambda turn: redact_again(turn, redact))


@dataclass(frozen=True, slots=True)
class TextFile:
    """A log, what a compaction replaced, or a file that is no more what it should be. Lines of JSON stay
    lines of JSON.
    """

    where: str
    path: Path

    def look(self, finder: SecretFinder) -> None:
        """See `Place`."""
        place = str(self.path)
        self._changed(
            lambda line: finder.at(self.where, place, line), finder.lines_of(self.where, place)
        )

    def fix(self, redact: Redact) -> None:
        """See `Place`. In place: whoever has the log open writes on at its end."""
        text = self._changed(lambda line: redact, lambda line, text: redact(text))
        with self.path.open("r+b") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.truncate()

    def _changed(
        self, in_line: Callable[[int], Redact], in_lines: Callable[[int, str], str]
    ) -> str:
        """The text with the strings of a line of JSON passed through `in_line`, and what stands on other
        lines, as far as they follow each other, through `in_lines`.
        """
        text = self.path.read_bytes().decode("utf-8", "surrogateescape")
        parts = []
        number = 1
        for is_json, group in groupby(
            map(_parsed, text.split("\n")), lambda pair: pair[1] is not None
        ):
            lines = list(group)
            if is_json:
                parts += [
                    _dumped(line, value, in_line(number + n))
                    for n, (line, value) in enumerate(lines)
                ]
            else:
                parts.append(in_lines(number, "\n".join(line for line, _ in lines)))
            number += len(lines)
        return "\n".join(parts)


def _parsed(line: str) -> tuple[str, dict[str, Any] | None]:
    """A line, and the object in it if it is one of JSON."""
    try:
        value = parse_json(line) if line.startswith("{") else None
    except ValueError:
        return line, None
    return line, value if isinstance(value, dict) else None


def _dumped(line: str, value: dict[str, Any] | None, redact: Redact) -> str:
    changed = redacted(value, redact)
    return line if changed == value else json.dumps(changed)


def state_places(home: Home, roots: Collection[str] | None) -> Iterator[Place]:
    """All places under the memory home of the projects at `roots`, of all if None; and the logs, which are
    no project's.
    """
    archive, sessions = Archive(home), Sessions(home)
    for session in archive.sessions():
        yield ArchivedSession(archive, session, roots)
    for path in replaced_files(home, roots):
        yield TextFile("archive", path)
    readable = {sessions.path(state.id) for state in sessions}
    for path in sorted(Path(home.sessions).glob("*.json")):
        if path not in readable:
            yield TextFile("session", path)
    yield from left_behind("session", home.sessions)
    for item in (*spool.failed(home), *spool.unfinished(home)):
        if "event" not in item.record:  # unreadable, maybe from an older memkit
            for path in Path(home.spool).glob(f"*/{item.name}"):
                yield TextFile("spool", path)
    for kept in sorted(Path(home.before_restore).glob("*")):  # laid out like a backup
        yield from state_places(Home(str(kept / "home")), roots)
        for path in sorted((kept / "projects").rglob("*")):
            if path.is_file():
                yield TextFile("replaced", path)
    for path in [*sorted(Path(home.log).glob("*")), Path(home.run, "jobs.json")]:
        if path.is_file():
            yield TextFile("log", path)


def left_behind(where: str, directory: str) -> Iterator[Place]:
    """What writers that were killed left in a directory."""
    for path in sorted(Path(directory).glob(".*.tmp")):
        if path.is_file() and not path.is_symlink():
            yield TextFile(where, path)


def look_through(places: list[Place], finder: SecretFinder, problems: list[str]) -> list[Place]:
    """Those of `places` where something is found; what cannot be read is told in `problems`."""
    found = []
    for place in places:
        before = len(finder.found)
        try:
            place.look(finder)
        except FileNotFoundError:  # taken in, or rotated, since the listing
            continue
        except (MemkitError, OSError) as error:
            problems.append(" ".join(str(error).split()))
        if len(finder.found) > before:
            found.append(place)
    return found
