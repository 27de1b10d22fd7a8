"""Keep the memories of a person's machines the same, through a place that the person has (`places`).

A machine sends what it wrote itself: days and archived turns of each project, and what was ever forgotten. It
takes those of the others. A project is known by its git remote, else by its name. A day of another machine
stays a file of its own, `2026-11-20.laptop-3f2a.md`, until the user edits it; then it only gets new turns.

What a machine left says what was sent, and the state what was taken. So a killed run can run again.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import secrets
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import msgspec

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn, redact_again
from memkit.capture.project_list import remembered_projects
from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, durable_together, make_private_directory, read_regular, write_durably
from memkit.forget.erase import forget
from memkit.forget.selection import ForgetSelection
from memkit.hook.entries import MACHINE, machine_of, own_file
from memkit.ipc import unindexed
from memkit.journal.day_edits import Removal, is_empty, redact_day, remove
from memkit.journal.day_file import DayFile, as_taken, encoded, is_as_taken
from memkit.journal.day_merge import merge_day, whole_day
from memkit.journal.day_writes import dates_around
from memkit.journal.journal import Journal
from memkit.llm.calls import exclusive_lock
from memkit.locks import Announce, capture_lock
from memkit.maintenance.places import digest, open_place
from memkit.paths import Home
from memkit.privacy.redact import redact, rules, visible
from memkit.privacy.tombstones import Forgotten, Ids, Tombstones
from memkit.projects.git import normalize_remote, remote_of, tracked_in
from memkit.projects.git_files import git_directory_of
from memkit.projects.project import OPENCLAW, Project, Registry
from memkit.settings.load import Settings
from memkit.state import parse_json, read_state_or_none
from memkit.text import one_line, plural, printable
from memkit.typed import typed

VERSION = 1
"""The format version of the manifest and of the state."""

LOCK_SECONDS = 60.0

_SENT_AT_ONCE = 64_000_000
_TAKEN_AT_ONCE = 8_000_000
"""Bytes: a killed run has lost at most that much, and capture waits no longer than for that."""

_MOST_DAY_BYTES = 8_000_000
_MOST_UNPACKED = 64 * 1024 * 1024

_ID = re.compile(r"(?:turn|note):([^\s<>]+)")
_SAFE_ID = re.compile(r"[\w./@+=,-]{1,120}")
_Name = Annotated[str, msgspec.Meta(pattern=rf"\A(day \d{{4}}-\d\d-\d\d |session {_SAFE_ID.pattern}\Z)")]
_Object = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Source = tuple[str, Callable[[], bytes]]
_Step = tuple[Callable[[], None], int]
"""What is left to do under the lock for an object, and the bytes that it holds meanwhile."""


class _Manifest(msgspec.Struct):
    """What a machine left: objects by `day DATE PROJECT` or `session ID`. Projects have keys, no paths.

    `number` grows with each one. `rules` are those by which all objects were redacted.
    """

    version: int = VERSION
    machine: str = ""
    number: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] = 0
    rules: str = ""
    forgotten: Forgotten = Forgotten()
    objects: dict[_Name, _Object] = {}


class _State(msgspec.Struct):
    """What this machine sent and took.

    `written` has the digests of its own manifests. `sent` has, by the names of a manifest, the stamp of the
    files and the object ("" for none). `taken` has, by machine and `day DATE ROOT` (a digest) or
    `session ID`, the object, and the IDs of a day or the unknown projects of a session. `seen` has the number
    of a manifest of which everything was taken, and a digest of it and of the projects here.
    """

    version: int = VERSION
    written: list[str] = []
    sent: dict[str, tuple[str, str]] = {}
    taken: dict[str, dict[str, list[str]]] = {}
    seen: dict[str, tuple[int, str]] = {}


@dataclass(slots=True)
class SyncReport:
    """Objects sent and taken, other machines, projects that only they have, roots to index, and problems."""

    sent: int = 0
    taken: int = 0
    machines: list[str] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)
    roots: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def machine_name(home: Home, *, is_taken: bool = False) -> str:
    """Return the name of this machine in a place. The first call makes it. Raise `OSError`."""
    path = os.path.join(home.sync, "machine")
    name = read_regular(path, 100).decode("ascii", "replace").strip() if os.path.exists(path) else ""
    if is_taken or not re.fullmatch(MACHINE, name):
        host = re.sub("[^a-z0-9]+", "-", socket.gethostname().split(".")[0].lower()).strip("-")[:24]
        name = f"{host or 'machine'}-{secrets.token_hex(2)}"
        make_private_directory(home.sync)
        write_durably(path, f"{name}\n".encode("ascii"))
    return name


def projects_by_key(projects: Iterable[Project], home: Home) -> dict[str, list[Project]]:
    """Return projects by the key that their clones on all machines share."""
    registry = Registry.read(home)
    found: dict[str, list[Project]] = {}
    for project in sorted(set(projects), key=lambda one: one.root):
        remote = normalize_remote(remote_of(project.root) or "")
        key = f"git {remote}" if remote else f"name {registry.name_of(project.root)}"
        key = key.encode("utf-8", "replace").decode("utf-8")  # a folder can have any bytes for a name
        found.setdefault("user" if project.memory == home.memory else key, []).append(project)
    return found


def _changed(path: str | Path) -> float:
    """Return when a file was last changed, 0 for a missing one."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_mtime
    return 0.0


def sync(home: Home, settings_of: Callable[[Project], Settings], announce: Announce) -> SyncReport:
    """Sync all known projects with the place of the settings. Raise `MemkitError`, `OSError`."""
    from filelock import FileLock

    make_private_directory(home.sync)
    with FileLock(os.path.join(home.sync, "lock"), LOCK_SECONDS, mode=PRIVATE_FILE):
        run = _Run(home, settings_of, announce)
        others = run.read()
        if run.forget(others):  # and with it the local copy of a git place
            others = run.read()
        run.send()
        run.take(others)
        return run.report


class _Run:
    def __init__(self, home: Home, settings_of: Callable[[Project], Settings], announce: Announce) -> None:
        self._home = home
        self._settings_of = settings_of
        self._announce = announce
        self._settings = settings_of(Project.of_user(home))
        patterns = self._settings.capture.compiled_patterns()
        self._redact = partial(redact, patterns=patterns)
        self._rules = digest(repr([rules(), *(one.pattern for one in patterns)]).encode())
        self._archive = Archive(home)
        self._place = open_place(self._settings.sync.place, home)
        self._state_path = os.path.join(home.sync, "state.json")
        known = read_state_or_none(self._state_path, VERSION, lambda value: typed(value, _State))
        self._state = known or _State()
        self._last = _changed(self._state_path)
        there = {one for one in remembered_projects(home) if any(map(os.path.isdir, (one.root, one.memory)))}
        self._projects = projects_by_key({*there, Project.of_user(home)}, home)  # a new machine has none yet
        self._keys = {one.root: key for key, group in self._projects.items() for one in group}
        written = {root: _changed(own_file(home, root)) for root in self._keys}  # an entry of its own
        last = {key: max(group, key=lambda one: written[one.root]) for key, group in self._projects.items()}
        # A name alone proves nothing, so the user must have worked there.
        self._takers = {k: one for k, one in last.items() if written[one.root] or not k.startswith("name ")}

    def _save(self) -> None:
        write_durably(self._state_path, msgspec.json.encode(self._state))  # ten times as fast as json

    def read(self) -> dict[str, tuple[str, _Manifest]]:
        """Return the digest and the manifest of each other machine."""
        self.report, self._own, found = SyncReport(), _Manifest(), {}
        machine, machines = machine_name(self._home), self._place.machines()
        for name in machines:
            try:
                data = self._place.manifest(name)
                value = parse_json(data)
                if isinstance(value, dict) and value.get("version", VERSION) != VERSION:
                    raise MemkitError("another version of memkit wrote it; update memkit on all machines")
                manifest = typed(value, _Manifest)
                if name == machine:
                    if not self._state.written or digest(data) in self._state.written:
                        self._own = manifest
                        continue
                    machine = machine_name(self._home, is_taken=True)  # this disk is a clone, or was cloned
                _check(manifest, name, self._state.seen.get(name, (0, ""))[0])
                found[name] = digest(data), manifest
            except (ValueError, RecursionError, MemkitError) as error:
                if name != machine:
                    self.report.problems.append(f"nothing is taken from {name}: {one_line(str(error), 200)}")
        self._machine = machine
        self.report.machines = [name for name in machines if name != machine]
        return found

    def forget(self, others: Mapping[str, tuple[str, _Manifest]]) -> bool:
        """Erase here what was forgotten elsewhere, and what a killed run left. Return if there was any."""
        tombstones = Tombstones(self._home)
        known, theirs = tombstones.forgotten(), Forgotten()
        roots = {key: [one.root for one in group] for key, group in self._projects.items()}
        for _, manifest in others.values():
            theirs |= _renamed(manifest.forgotten, roots)
        if known | theirs == known and tombstones.unfinished() is None:
            return False
        with exclusive_lock(self._home, LOCK_SECONDS, self._announce):
            user, selection = Project.of_user(self._home), ForgetSelection(forgotten=theirs)
            _, problems = forget(self._home, user, selection, self._settings_of, self._announce)
        if problems:
            raise MemkitError(f"not everything was erased that another machine forgot: {'; '.join(problems)}")
        return True

    def send(self) -> None:
        """Send what changed, what was forgotten first."""
        sources = dict(self._sources())
        keys = {root: [key] for root, key in self._keys.items()}
        forgotten = self._own.forgotten | _renamed(Tombstones(self._home).forgotten(), keys)
        sent = {name: ("", stored) for name, stored in self._own.objects.items()}
        if self._own.rules == self._rules:
            there = self._own.objects
            sent |= {name: one for name, one in self._state.sent.items() if one[1] == there.get(name, "")}
        is_forgetting = forgotten != self._own.forgotten
        sent = {name: one for name, one in sent.items()
                if name in sources and (one[0] == sources[name][0] or not is_forgetting)}  # fmt: skip

        def put(objects: Mapping[str, bytes]) -> None:
            listed = {name: stored for name, (_, stored) in sent.items() if stored}
            by = self._rules if all(stamp for stamp, _ in sent.values()) else ""
            own = _Manifest(VERSION, self._machine, self._own.number, by, forgotten, listed)
            if own != self._own:
                own.number = max(int(time.time()), own.number + 1)
                manifest = msgspec.json.encode(own, order="deterministic")
                self._state.written = [*self._state.written[-99:], digest(manifest)]
                self._save()  # a killed run is not somebody else
                self._place.put(self._machine, manifest, objects, set(listed.values()))
                self._own = own
            if self._state.sent != sent:
                self._state.sent = dict(sent)
                self._save()
            self.report.sent += len(objects)

        if is_forgetting:
            put({})
        objects: dict[str, bytes] = {}
        size = 0
        for name, (stamp, make) in sorted(sources.items()):
            before, known = sent.get(name, ("", ""))
            if before == stamp:
                continue
            sent.pop(name, None)
            try:
                data = make()
            except FileNotFoundError:  # deleted since
                continue
            except MemkitError as error:
                self.report.problems.append(f"not sent: {error}")
                continue
            stored = self._place.name_of(data) if data else ""
            if stored and stored != known:
                objects[stored] = data
                size += len(data)
            sent[name] = stamp, stored
            if size > _SENT_AT_ONCE:
                put(objects)
                objects, size = {}, 0
        put(objects)

    def _sources(self) -> Iterator[tuple[str, _Source]]:
        for key, projects in self._projects.items():
            by_date: dict[str, list[tuple[Journal, str]]] = {}
            for project in filter(self._travels, projects):
                journal, tracked = Journal(project), cache(partial(tracked_in, project.root))
                for day in journal.days():
                    folder, name = os.path.split(journal.path(day))
                    if not machine_of(day) and name not in tracked(folder):  # it may be a colleague's
                        by_date.setdefault(day[:10], []).append((journal, day))
            for date, files in by_date.items():
                with contextlib.suppress(FileNotFoundError):  # deleted since
                    stamp = " ".join(_stamp(journal.path(day)) for journal, day in files)
                    yield f"day {date} {key}", (stamp, partial(self._make_day, date, files))
        for session, path in self._archive.files():
            with contextlib.suppress(FileNotFoundError):
                yield f"session {session}", (_stamp(path), partial(self._make_session, session))

    def _travels(self, project: Project) -> bool:
        """Return whether days of a project are synced: git brings those of a memory that it shares."""
        return not (self._settings_of(project).memory.shared and git_directory_of(project.root))

    def _make_day(self, date: str, files: list[tuple[Journal, str]]) -> bytes:
        for path in (journal.path(name) for journal, name in files):
            if path.stat().st_size > _MOST_DAY_BYTES:  # from a repository: redacting it takes gigabytes
                raise MemkitError(f"{path} is larger than {_MOST_DAY_BYTES:,} bytes")
        parts = [DayFile(anchors.own_part(journal.text(f"{name}.md"))) for journal, name in files]
        for part, (_, name) in zip(parts, files, strict=True):
            if name.endswith(OPENCLAW):  # the text above is OpenClaw's
                part.replace_opening([f"# {date}", ""])
        day = whole_day(parts)
        redact_day(day, lambda line, text: self._redact(text), {})
        return b"" if is_empty(day) else encoded(day.render())

    def _make_session(self, session: str) -> bytes:
        turns = []
        for turn in self._archive.turns(session):
            key = self._keys.get(Project.at_root(turn.project, self._home).root)
            if key is not None and not turn.machine:
                turns.append(replace(redact_again(turn, self._redact), project=key))
        text = json.dumps(msgspec.to_builtins(turns))
        return zlib.compress(text.encode("utf-8", "replace")) if turns else b""

    def take(self, others: Mapping[str, tuple[str, _Manifest]]) -> None:
        """Take what is new. Of a turn that several machines have, that of the first one known stays."""
        takers = digest(repr([(key, one.root) for key, one in self._takers.items()]).encode())
        for machine in sorted(others, key=[*self._state.taken, *others].index):
            name, manifest = others[machine]
            seen, problems = f"{name} {takers}", len(self.report.problems)
            if self._state.seen.get(machine, (0, ""))[1] != seen:
                self._take_from(machine, manifest)
                if len(self.report.problems) == problems:
                    self._state.seen[machine] = manifest.number, seen
                self._save()

    def _take_from(self, machine: str, manifest: _Manifest) -> None:
        taken = self._state.taken.setdefault(machine, {})
        clean = visible if manifest.rules == self._rules else lambda text: self._redact(visible(text))
        was_deleted = cache(partial(self._was_deleted, machine))
        wanted: dict[str, list[Callable[[str, bytes], _Step]]] = {}
        for name, stored in sorted(manifest.objects.items()):
            kind, one, *rest = name.split(" ", 2)
            if kind == "session":
                before, *unknown = taken.get(name, [""])
                is_new = before != stored or not self._takers.keys().isdisjoint(unknown)
                if is_new and self._settings.archive.enabled:
                    wanted.setdefault(stored, []).append(partial(self._session, machine, one, clean))
                continue
            project = self._takers.get(rest[0])
            if project is None:
                self.report.elsewhere.add(one_line(printable(rest[0]), 100))
            elif self._travels(project):
                here = f"day {one} {digest(os.fsencode(project.root))}"
                if was_deleted(project):
                    taken.pop(here, None)
                if taken.get(here, [""])[0] != stored:
                    wanted.setdefault(stored, []).append(partial(self._day, machine, project, here, clean))
        steps: list[_Step] = []
        for stored, data in self._place.read(machine, list(wanted)):
            for prepare in wanted.pop(stored, ()):
                with self._reporting(machine):
                    steps.append(prepare(stored, data))
            if sum(size for _, size in steps) > _TAKEN_AT_ONCE:
                self._apply(machine, steps)
                steps = []
        self._apply(machine, steps)
        if wanted:
            self.report.problems.append(f"{plural(len(wanted), 'file')} of {machine} cannot be read yet")

    def _was_deleted(self, machine: str, project: Project) -> bool:
        """Return whether a memory has no day of a machine, nor one that is older than the last run."""
        days, path = Journal(project).days(), Journal(project).path
        return all(machine_of(day) != machine and _changed(path(day)) > self._last for day in days)

    @contextlib.contextmanager
    def _reporting(self, machine: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, OverflowError, RecursionError, zlib.error, MemkitError) as error:
            self.report.problems.append(f"not taken from {machine}: {one_line(str(error))}")

    def _apply(self, machine: str, steps: Sequence[_Step]) -> None:
        if not steps:
            return
        with durable_together(), capture_lock(self._home, LOCK_SECONDS, self._announce):
            self._forgotten = Tombstones(self._home).forgotten()
            self._held: dict[str, dict[str, set[str] | None]] = {}
            for do, _ in steps:
                with self._reporting(machine):
                    do()
                    self.report.taken += 1
        self._save()

    def _day(
        self, machine: str, project: Project, name: str, clean: Callable[[str], str], stored: str, data: bytes
    ) -> _Step:
        if len(data) > _MOST_DAY_BYTES:
            raise ValueError(f"{name} is larger than {_MOST_DAY_BYTES:,} bytes")
        content = DayFile(visible(data.decode("utf-8")))
        if clean is not visible:
            redact_day(content, lambda line, text: clean(text), {})
        date = name.split()[1]
        if content.lines[0].split()[:2] != ["#", date]:
            raise ValueError(f"{date} of {machine} does not begin with its date")
        content.rest = None
        shared = self._settings_of(project).memory.shared
        day, journal = f"{date}.{machine}", Journal(project, shared=shared, home=self._home)
        known = self._state.taken[machine].get(name)
        ids, before = _ids(content), set((known or [])[1:])

        def change(present: str) -> str | None:
            gone = self._gone(content, date, project.root) | self._held_near(journal, day)
            gone |= before - _ids(DayFile(present))  # removed by the user
            remove(content, Removal(gone, self._forgotten.within(project.root).grips, gone))
            is_removed = known and not present.strip()
            if is_removed or (ids and not content.sections):  # or other files have all of it
                content.replace_opening(content.lines[:1])
            if is_as_taken(present):
                return None if is_empty(content) else as_taken(content.render())
            own = DayFile(present)
            merge_day(own, content, only_entries=True)
            return own.render()

        def take() -> None:
            unindexed.mark(self._home, project.root)
            self.report.roots.add(project.root)
            journal.take(day, change)
            self._held[project.root][day] = None
            self._state.taken[machine][name] = [stored, *sorted(ids)]

        return take, len(data)

    def _held_near(self, journal: Journal, day: str) -> set[str]:
        """Return the turns and notes in other files of the days around one."""
        held = self._held.setdefault(journal.project.root, dict.fromkeys(journal.days()))
        dates, found = dates_around(day), set[str]()
        for one, ids in held.items():
            if one[:10] in dates and one != day:
                ids = held[one] = set(_ID.findall(journal.text(f"{one}.md"))) if ids is None else ids
                found |= ids
        return found

    def _gone(self, content: DayFile, date: str, root: str) -> set[str]:
        """Return the turns and notes of a day that were forgotten."""
        forgotten, found, session = self._forgotten.within(root), set(), ""
        for section in content.sections:
            session = section.pairs.get("session", "" if section.is_opening else session)
            began = datetime.datetime.fromisoformat(f"{date} {section.minute or '00:00'}").astimezone()
            name = section.pairs.get("turn") or section.pairs.get("note", "")
            if name in forgotten.notes or forgotten.covers(name, root, session, began):
                found.add(name)
        return found

    def _session(
        self, machine: str, session: str, clean: Callable[[str], str], stored: str, data: bytes
    ) -> _Step:
        text = zlib.decompressobj().decompress(data, _MOST_UNPACKED)
        turns = [redact_again(one, clean) for one in typed(parse_json(text), list[ArchivedTurn])]

        def take() -> None:
            kept = []
            for turn in turns:
                project = self._takers.get(turn.project)
                if project and not self._forgotten.covers(turn.id, project.root, session, turn.time):
                    kept.append(replace(turn, project=project.root, machine=machine))
            if kept:
                self._archive.append(session, kept)
            unknown = {turn.project for turn in turns} - self._takers.keys()
            self._state.taken[machine][f"session {session}"] = [stored, *sorted(unknown)]

        return take, len(text)


def _renamed(forgotten: Forgotten, names: Mapping[str, list[str]]) -> Forgotten:
    """Return what was forgotten with other names for projects. Those without one are left out.

    No `whole`: a machine has Markdown files that the others never saw.
    """
    periods = [one for one in forgotten.periods if not one.project]
    for period in forgotten.periods:
        for name in names.get(period.project, ()):
            periods.append(msgspec.structs.replace(period, project=name, whole=False))
    only: dict[str, Ids] = {}
    for project, ids in forgotten.only.items():
        only |= {name: ids | only.get(name, Ids()) for name in names.get(project, ())}
    return msgspec.structs.replace(forgotten, periods=tuple(periods), only=only, roots=frozenset())


def _check(manifest: _Manifest, machine: str, number: int) -> None:
    """Raise `ValueError` for what memkit never writes: it would erase all, or could not be passed on."""
    if manifest.machine != machine or manifest.number < number:
        raise ValueError("what it left is that of another machine, or older than what was taken")
    forgotten = manifest.forgotten
    named: list[Forgotten | Ids] = [forgotten, *forgotten.only.values()]
    ids = [one for some in named for group in (some.turns, some.grips, some.notes) for one in group]
    latest = time.time() + 400 * 86400
    for one in forgotten.periods:
        if not ((one.project or one.session) and 0 <= one.since <= one.until < latest):
            raise ValueError("it forgot a period that cannot be")
    if not all(map(_SAFE_ID.fullmatch, ids)):
        raise ValueError("it forgot an entry whose ID cannot be")


def _ids(content: DayFile) -> set[str]:
    pairs = [section.pairs for section in content.sections]
    return {one[key] for one in pairs for key in ("turn", "note") if key in one}


def _stamp(path: str | Path) -> str:
    status = os.stat(path)
    return f"{status.st_mtime_ns}.{status.st_size}.{status.st_ino}"
