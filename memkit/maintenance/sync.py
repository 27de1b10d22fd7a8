"""Keep the memories of a person's machines the same, through a place that the person has (`places`).

A machine sends what it wrote itself: days and archived turns of each project, and what was ever forgotten. It
takes those of the others. A project is known by its git remote, else by its name. A day of another machine
stays a file of its own, `2026-11-20.laptop-3f2a.md`, until the user edits it; then it only gets new turns.

All steps are keyed by the digests of what was sent and taken, so a killed run can run again.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import secrets
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn, redact_again
from memkit.capture.project_list import projects_with_memory, remembered_projects
from memkit.environment.extras import require
from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, durable_together, make_private_directory, read_regular, write_durably
from memkit.forget.erase import forget
from memkit.forget.selection import ForgetSelection
from memkit.hook.entries import MACHINE, machine_of
from memkit.ipc import unindexed
from memkit.journal.day_edits import Removal, is_empty, redact_day, remove
from memkit.journal.day_file import DayFile, as_taken, encoded, is_as_taken
from memkit.journal.day_merge import merge_day, whole_day
from memkit.journal.day_writes import dates_around
from memkit.journal.journal import Journal
from memkit.llm.calls import exclusive_lock
from memkit.locks import Announce, capture_lock
from memkit.maintenance.places import MANIFEST, digest, open_place, path_of
from memkit.paths import Home
from memkit.privacy.redact import redact, visible
from memkit.privacy.tombstones import Forgotten, Ids, Tombstones
from memkit.projects.git import normalize_remote, remote_of
from memkit.projects.git_files import git_directory_of
from memkit.projects.project import OPENCLAW, Project, Registry
from memkit.settings.load import Settings
from memkit.state import parse_json, read_state_or_none
from memkit.text import one_line, plural, printable
from memkit.typed import typed

VERSION = 1
"""The format version of the manifest and of the state."""

LOCK_SECONDS = 60.0

_BATCH_BYTES = 64_000_000
"""Roughly what is sent at once: a killed run has lost at most that much."""

_BATCH_OBJECTS = 256

_MOST_DAY_BYTES = 8_000_000
_MOST_UNPACKED = 64 * 1024 * 1024

_ID = re.compile(r"(?:turn|note):([^\s<>]+)")
_Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d\Z")]
_NAME = re.compile(r"[\w./@+=,-]{1,120}")
_Session = Annotated[str, msgspec.Meta(pattern=rf"^{_NAME.pattern}\Z")]
_Object = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Sent = dict[str, tuple[str, str, str]]
_Take = Callable[[bytes], None]


class _Manifest(msgspec.Struct):
    """The objects of a machine: days by project and date, and archived sessions. Projects have no paths."""

    version: int = VERSION
    forgotten: Forgotten = Forgotten()
    days: dict[str, dict[_Day, _Object]] = {}
    archive: dict[_Session, _Object] = {}


class _State(msgspec.Struct):
    """What this machine sent to `place` and took from there.

    `sent` has the stamp of the files, the digest of their text as sent, and the object ("" for nothing), by
    `days DATE KEY` or `archive SESSION`. `manifest` is the digest of the last own one. `taken` has, by
    machine and `days DATE ROOT` (a digest) or `archive SESSION`, the object and the IDs of a day or the
    unknown projects of a session. `seen` has the manifest of a machine of which everything was taken.
    """

    version: int = VERSION
    place: str = ""
    tombstones: str = ""
    manifest: str = ""
    sent: _Sent = {}
    taken: dict[str, dict[str, list[str]]] = {}
    seen: dict[str, str] = {}


@dataclass(slots=True)
class SyncReport:
    """Objects sent and taken, other machines, projects that only they have, roots to index, and problems."""

    sent: int = 0
    taken: int = 0
    machines: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    roots: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class _Source(NamedTuple):
    name: str
    stamp: str
    make: Callable[[], bytes]


def machine_name(home: Home) -> str:
    """Return the name of this machine in a place. The first call makes it. Raise `OSError`."""
    path = os.path.join(home.sync, "machine")
    name = read_regular(path, 100).decode("ascii", "replace").strip() if os.path.exists(path) else ""
    if not re.fullmatch(MACHINE, name):
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


def sync(home: Home, settings_of: Callable[[Project], Settings], announce: Announce) -> SyncReport:
    """Sync all known projects with the place of the settings. Raise `MemkitError`, `OSError`."""
    from filelock import FileLock

    make_private_directory(home.sync)
    with FileLock(os.path.join(home.sync, "lock"), LOCK_SECONDS, mode=PRIVATE_FILE):
        run = _Run(home, settings_of, announce)
        run.run()
        return run.report


class _Run:
    def __init__(self, home: Home, settings_of: Callable[[Project], Settings], announce: Announce) -> None:
        self._home = home
        self._settings_of = settings_of
        self._announce = announce
        self._settings = settings_of(Project.of_user(home))
        self._redact = partial(redact, patterns=self._settings.capture.compiled_patterns())
        self._machine = machine_name(home)
        self._archive = Archive(home)
        place = self._settings.sync.place
        self._place = open_place(place, home)
        cipher = Cipher(home) if place.partition(" ")[0].endswith("+age") else None
        self._seal: Callable[[bytes], bytes] = cipher.seal if cipher else bytes
        self._open: Callable[[bytes], bytes] = cipher.open if cipher else bytes
        self._state_path = os.path.join(home.sync, "state.json")
        known = read_state_or_none(self._state_path, VERSION, lambda value: typed(value, _State))
        self._state = known or _State()
        place += f" {cipher.recipient}" if cipher else ""
        if self._state.place != place:  # the new one, or one for another key, lacks what the old one has
            self._state = _State(place=place, taken=self._state.taken)
        self.report = SyncReport()

    def run(self) -> None:
        remembering = set(projects_with_memory(self._home))
        there = {one for one in remembered_projects(self._home) if os.path.isdir(one.root)}
        there.add(Project.of_user(self._home))  # a new machine has none yet
        self._roots = projects_by_key(there | remembering, self._home)
        own = {key: [one for one in group if one in remembering] for key, group in self._roots.items()}
        self._keys = {one.root: key for key, group in self._roots.items() for one in group}
        manifests = self._read_manifests()
        if self._forget(manifests):  # and with it the local copy of a git place
            manifests = self._read_manifests()
        self._send(own)
        self._take(manifests)

    def _save(self) -> None:
        write_durably(self._state_path, msgspec.json.encode(self._state))  # ten times as fast as json

    def _read_manifests(self) -> dict[str, tuple[str, _Manifest]]:
        """Return the digest and the manifest of each other machine."""
        found = {}
        self.report = SyncReport()
        manifests = self._place.manifests()
        if digest(manifests.pop(self._machine, b"")) != self._state.manifest:  # it was not left so
            self._state.sent = {}
        for machine, data in sorted(manifests.items()):
            self.report.machines.append(machine)
            try:
                value = parse_json(self._open(data))
                if isinstance(value, dict) and value.get("version", VERSION) != VERSION:
                    raise MemkitError("another version of memkit wrote it; update memkit on all machines")
                found[machine] = digest(data), typed(value, _Manifest)
                _check(found[machine][1].forgotten)
            except (ValueError, RecursionError, MemkitError) as error:
                found.pop(machine, None)
                self.report.problems.append(f"nothing is taken from {machine}: {one_line(str(error), 200)}")
        return found

    def _forget(self, manifests: Mapping[str, tuple[str, _Manifest]]) -> bool:
        """Erase here what was forgotten elsewhere, and what a killed run left. Return if there was any."""
        tombstones = Tombstones(self._home)
        known, theirs = tombstones.forgotten(), Forgotten()
        roots = {key: [one.root for one in group] for key, group in self._roots.items()}
        for _, manifest in manifests.values():
            theirs |= _renamed(manifest.forgotten, roots)
        if known | theirs == known and tombstones.unfinished() is None:
            return False
        with exclusive_lock(self._home, LOCK_SECONDS, self._announce):
            user, selection = Project.of_user(self._home), ForgetSelection(forgotten=theirs)
            _, problems = forget(self._home, user, selection, self._settings_of, self._announce)
        if problems:
            raise MemkitError(f"not everything was erased that another machine forgot: {'; '.join(problems)}")
        return True

    def _send(self, own: Mapping[str, list[Project]]) -> None:
        sources = {one.name: one for one in self._own_days(own)}
        for session, path in self._archive.files():
            name = f"archive {session}"
            sources[name] = _Source(name, _stamp(path), partial(self._make_session, session))
        keys = {root: [key] for root, key in self._keys.items()}
        forgotten = _renamed(Tombstones(self._home).forgotten(), keys)
        tombstones = digest(msgspec.json.encode(forgotten, order="deterministic"))
        is_forgetting = tombstones != self._state.tombstones

        def put(objects: dict[str, bytes]) -> None:
            manifest = _Manifest(forgotten=forgotten)
            for name, (_, _, stored) in sent.items():
                kind, one, *key = name.split(" ", 2)
                listed = manifest.days.setdefault(key[0], {}) if kind == "days" else manifest.archive
                if stored:
                    listed[one] = stored
            files = {path_of(name): data for name, data in objects.items()}
            files[MANIFEST] = self._seal(msgspec.json.encode(manifest, order="deterministic"))
            self._place.put(self._machine, files, {stored for _, _, stored in sent.values()})
            self._state.sent, self._state.tombstones = dict(sent), tombstones
            self._state.manifest = digest(files[MANIFEST])
            self._save()
            self.report.sent += len(objects)

        sent = {name: entry for name, entry in self._state.sent.items() if name in sources
                and (entry[0] == sources[name].stamp or not is_forgetting)}  # fmt: skip
        changed = [one for name, one in sorted(sources.items()) if sent.get(name, ("",))[0] != one.stamp]
        if is_forgetting or (not changed and sent.keys() != self._state.sent.keys()):
            put({})  # before anything else
        objects: dict[str, bytes] = {}
        size = 0
        for number, source in enumerate(changed, start=1):
            try:
                data = source.make()
            except MemkitError as error:
                self.report.problems.append(f"not sent: {error}")
            else:
                text, (_, before, stored) = digest(data), sent.get(source.name, ("", "", ""))
                if text != before:
                    sealed = self._seal(data)
                    stored = digest(sealed) if data else ""
                    objects |= {stored: sealed} if data else {}
                    size += len(sealed)
                sent[source.name] = source.stamp, text, stored
            if number == len(changed) or size > _BATCH_BYTES:
                put(objects)
                objects, size = {}, 0

    def _own_days(self, own: Mapping[str, list[Project]]) -> Iterator[_Source]:
        for key, projects in own.items():
            by_date: dict[str, list[tuple[Journal, str]]] = {}
            for journal in map(Journal, filter(self._travels, projects)):
                for day in journal.days():
                    if not machine_of(day):
                        by_date.setdefault(day[:10], []).append((journal, day))
            for date, files in by_date.items():
                stamp = " ".join(_stamp(journal.path(day)) for journal, day in files)
                yield _Source(f"days {date} {key}", stamp, partial(self._make_day, date, files))

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

    def _take(self, manifests: Mapping[str, tuple[str, _Manifest]]) -> None:
        roots = digest("\n".join(sorted(self._keys)).encode("utf-8", "surrogateescape"))
        for machine, (name, manifest) in manifests.items():
            seen = f"{name} {roots}"
            if self._state.seen.get(machine) == seen:
                continue
            with capture_lock(self._home, LOCK_SECONDS, self._announce), durable_together():
                self._forgotten = Tombstones(self._home).forgotten()
                self._held: dict[str, dict[str, dict[str, set[str]]]] = {}
                if self._take_from(machine, manifest):
                    self._state.seen[machine] = seen
            self._save()

    def _take_from(self, machine: str, manifest: _Manifest) -> bool:
        """Take what is new. Return whether that was everything."""
        problems = len(self.report.problems)
        taken = self._state.taken.setdefault(machine, {})
        wanted: dict[str, list[_Take]] = {}
        for key, days in manifest.days.items():
            project = next(filter(self._travels, self._roots.get(key, ())), None)
            if project is None:
                self.report.elsewhere += [] if key in self._roots else [one_line(printable(key), 100)]
                continue
            is_lost = not any(machine_of(day) == machine for day in Journal(project).days())
            for date, stored in days.items():
                name = f"days {date} {digest(os.fsencode(project.root))}"
                if is_lost:  # the project was deleted, and is back
                    taken.pop(name, None)
                if taken.get(name, [""])[0] != stored:
                    take: _Take = partial(self._take_day, machine, project, date, name, stored)
                    wanted.setdefault(path_of(stored), []).append(take)
        for session, stored in manifest.archive.items() if self._settings.archive.enabled else ():
            before, *unknown = taken.get(f"archive {session}", [""])
            if before != stored or not self._roots.keys().isdisjoint(unknown):
                wanted[path_of(stored)] = [partial(self._take_session, machine, session, stored)]
        paths = iter(sorted(wanted))
        while batch := list(islice(paths, _BATCH_OBJECTS)):
            for path, data in self._place.read(machine, batch):
                if path != path_of(digest(data)):
                    continue
                try:
                    for take in wanted.pop(path, ()):
                        take(self._open(data))
                        self.report.taken += 1
                except (ValueError, OverflowError, RecursionError, zlib.error, MemkitError) as error:
                    self.report.problems.append(f"not taken from {machine}: {one_line(str(error))}")
        if wanted:
            self.report.problems.append(f"{plural(len(wanted), 'file')} of {machine} cannot be read yet")
        return len(self.report.problems) == problems

    def _take_day(
        self, machine: str, project: Project, date: str, name: str, stored: str, data: bytes
    ) -> None:
        shared = self._settings_of(project).memory.shared
        day, journal = f"{date}.{machine}", Journal(project, shared=shared, home=self._home)
        if len(data) > _MOST_DAY_BYTES:
            raise ValueError(f"{name} is larger than {_MOST_DAY_BYTES:,} bytes")
        content = DayFile(visible(data.decode("utf-8")))
        redact_day(content, lambda line, text: self._redact(text), {})
        if content.lines[0].split()[:2] != ["#", date]:
            raise ValueError(f"{day} does not begin with its date")
        content.rest = None
        ids, before = _ids(content), self._state.taken[machine].get(name, [""])[1:]
        held = self._held_by(journal)
        near = (held.get(one, {}).items() for one in dates_around(date))
        others = {one for files in near for name, found in files if name != day for one in found}
        gone = self._gone(content, date, project.root) | others

        def change(present: str) -> str | None:
            removed = gone | (set(before) - _ids(DayFile(present)))  # the latter by the user
            remove(content, Removal(removed, self._forgotten.within(project.root).grips, removed))
            if is_as_taken(present):
                return None if is_empty(content) else as_taken(content.render())
            own = DayFile(present)
            merge_day(own, content)
            return own.render()

        unindexed.mark(self._home, project.root)
        self.report.roots.add(project.root)
        journal.take(day, change)
        held.setdefault(date, {})[day] = _named_in(journal, day)
        self._state.taken[machine][name] = [stored, *sorted(ids)]

    def _held_by(self, journal: Journal) -> dict[str, dict[str, set[str]]]:
        """Return the turns and notes of a project's days, by date and file."""
        held = self._held.setdefault(journal.project.root, {})
        if not held:
            for day in journal.days():
                held.setdefault(day[:10], {})[day] = _named_in(journal, day)
        return held

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

    def _take_session(self, machine: str, session: str, stored: str, data: bytes) -> None:
        kept, unknown = [], set()
        unpacking = zlib.decompressobj()
        for turn in typed(parse_json(unpacking.decompress(data, _MOST_UNPACKED)), list[ArchivedTurn]):
            project = next(iter(self._roots.get(turn.project, ())), None)
            if project is None:
                unknown.add(turn.project)
            elif not self._forgotten.covers(turn.id, project.root, session, turn.time):
                shown = redact_again(turn, lambda text: self._redact(visible(text)))
                kept.append(replace(shown, project=project.root, machine=machine))
        if kept:
            self._archive.append(session, kept)
        self._state.taken[machine][f"archive {session}"] = [stored, *sorted(unknown)]


def _renamed(forgotten: Forgotten, names: Mapping[str, list[str]]) -> Forgotten:
    """Return what was forgotten with other names for projects. Those without one are left out.

    No `whole`: a machine has Markdown files that the others never saw.
    """
    periods = [one for one in forgotten.periods if not one.project]
    for period in forgotten.periods:
        for name in names.get(period.project, ()):
            periods.append(msgspec.structs.replace(period, project=name, whole=False))
    only = {name: ids for project, ids in forgotten.only.items() for name in names.get(project, ())}
    return msgspec.structs.replace(forgotten, periods=tuple(periods), only=only, roots=frozenset())


def _check(forgotten: Forgotten) -> None:
    """Raise `ValueError` for what memkit never writes: it would erase all, or could not be passed on."""
    named: list[Forgotten | Ids] = [forgotten, *forgotten.only.values()]
    ids = [one for some in named for group in (some.turns, some.grips, some.notes) for one in group]
    latest = time.time() + 400 * 86400
    for one in forgotten.periods:
        if not ((one.project or one.session) and 0 <= one.since <= one.until < latest):
            raise ValueError("it forgot a period that cannot be")
    if not all(map(_NAME.fullmatch, ids)):
        raise ValueError("it forgot an entry whose ID cannot be")


def _named_in(journal: Journal, day: str) -> set[str]:
    return set(_ID.findall(journal.text(f"{day}.md")))


def _ids(content: DayFile) -> set[str]:
    pairs = [section.pairs for section in content.sections]
    return {one[key] for one in pairs for key in ("turn", "note") if key in one}


def _stamp(path: str | Path) -> str:
    status = os.stat(path)
    return f"{status.st_mtime_ns}.{status.st_size}.{status.st_ino}"


def key_file(home: Home) -> str:
    """Return the path of the age key for encrypted places, which all machines of the person have."""
    return os.path.join(home.sync, "key.txt")


class Cipher:
    """Encrypts with age. Without a key file, `make_key` makes one."""

    def __init__(self, home: Home, *, make_key: bool = False) -> None:
        require("sync", "an encrypted place needs", "pyrage")
        import pyrage

        path, self._age = key_file(home), pyrage
        if make_key and not os.path.lexists(path):
            make_private_directory(home.sync)
            write_durably(path, f"{pyrage.x25519.Identity.generate()}\n".encode("ascii"))
        try:
            words = read_regular(path, 10_000).decode("ascii", "replace").split()
            secret = next(one for one in words if one.startswith("AGE-SECRET-KEY-"))
            self._identity = pyrage.x25519.Identity.from_str(secret)
        except Exception as error:  # pyrage has no common class of errors
            raise MemkitError(f"{path} holds no age key; copy the file from your other machine") from error
        self.recipient = self._identity.to_public()

    def seal(self, data: bytes) -> bytes:
        """Encrypt."""
        return bytes(self._age.encrypt(data, [self.recipient]))

    def open(self, data: bytes) -> bytes:
        """Decrypt. Raise `MemkitError`."""
        try:
            return bytes(self._age.decrypt(data, [self._identity]))
        except self._age.DecryptError as error:
            raise MemkitError("it is not encrypted with the key of this machine") from error
