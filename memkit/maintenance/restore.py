"""Brings back what a backup holds: what is missing is written, what differs stays unless that is forced."""

from __future__ import annotations

import contextlib
import filecmp
import json
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memkit.claude_code.files import transcripts_directory
from memkit.errors import BackupError, ConfigError
from memkit.files import (
    PRIVATE_FILE,
    RefusedFileError,
    inside,
    make_private_directory,
    write_durably,
)
from memkit.forget.erasing import forget
from memkit.forget.selection import ForgetSelection
from memkit.hook.project import Project, is_bare_place
from memkit.index.paths import move_paths
from memkit.ipc import unindexed
from memkit.journal.journal import Journal
from memkit.maintenance.backup_file import BackedUpProject, Unpacked, unpack
from memkit.paths import OFF_MARKER, OFF_TIMES, Home
from memkit.privacy.tombstones import Forgotten, Tombstones, read_forgotten
from memkit.projects.registry import changing
from memkit.settings.load import Settings, decisive_changes
from memkit.state import parse_json

logger = logging.getLogger(__name__)

_FORGOTTEN = "home/forgotten.json"
_SETTINGS = "home/config.toml"
_SESSIONS = "home/sessions/"
_ADDED_PATHS = re.compile(r"home/projects/[^/]+\.paths\.json")
_STAGING = ".restore-"
_MARKERS = {"off": OFF_MARKER, "off-times": OFF_TIMES}


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """One file of a backup: its name there, where it lies unpacked, where it belongs, how that stands.

    `project` is that of a file of a memory, and `name` what the memory calls it.
    """

    member: str
    source: Path
    target: Path
    state: Literal["new", "same", "differs"]
    project: Project | None = None
    name: str = ""


@dataclass(slots=True)
class RestoreReport:
    """What was done: files written, replaced, found as they are, and left because they differ (their paths).

    `kept_in` is where what was replaced lies now; "" if nothing was. `left_settings` say why the backup's
    settings were left out. `problems` say, in lines for people,
    what is forgotten and could not be taken out again; the next `memkit forget` tries it.
    """

    written: int = 0
    same: int = 0
    replaced: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    kept_in: str = ""
    left_settings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Restore:
    """A checked backup, and what restoring it would do. Made by `open_backup`."""

    def __init__(self, home: Home, backup: Unpacked) -> None:
        self._home = home
        self._backup = backup
        self.header = backup.header
        for name, path in backup.members.items():
            if name.startswith(_SESSIONS):
                _drop_foreign_transcript(path, {one.root for one in self.header.projects})
        forgotten = backup.members.get(_FORGOTTEN)
        self._forgotten = Forgotten() if forgotten is None else read_forgotten(forgotten)
        self.projects: list[Project] = []
        self.steps: list[RestoreStep] = []
        self.settings: list[str] = []
        """What the backup's settings would change about where data goes, one line each."""
        self._compare({})

    @property
    def gone(self) -> list[str]:
        """The roots in the backup that are no directories on this machine."""
        named = self.header.projects
        return [
            one.root
            for one in named
            if not one.under_home and not one.is_user and not os.path.isdir(one.root)
        ]

    @property
    def added_paths(self) -> list[str]:
        """The paths outside of the memories that the backup would have indexed."""
        paths: set[str] = set()
        for step in self.steps:
            if _ADDED_PATHS.fullmatch(step.member) and step.state != "same":
                with contextlib.suppress(ValueError, KeyError, TypeError):  # it is read as damaged later
                    paths.update(map(str, parse_json(step.source.read_bytes())["paths"]))
        return sorted(paths)

    def move(self, moved: Mapping[str, str]) -> None:
        """Compare the backup with what there is; `moved` maps roots in it to where they lie now.

        Raises `BackupError`, also for a project at a place that is nobody's; `OSError`.
        """
        self._compare(moved)
        self._check_places()

    def _compare(self, moved: Mapping[str, str]) -> None:
        self.projects = [self._project(one, moved) for one in self.header.projects]
        members = sorted(self._backup.members.items())
        self.steps = [self._step(name, path) for name, path in members if name != _FORGOTTEN]
        self.settings = self._changed_settings()

    def _changed_settings(self) -> list[str]:
        path = self._backup.members.get(_SETTINGS)
        if path is None:
            return []
        try:
            return decisive_changes(self._home, path)
        except ConfigError:
            return ["its config.toml cannot be read"]

    def _project(self, named: BackedUpProject, moved: Mapping[str, str]) -> Project:
        if named.is_user:
            return Project.of_user(self._home)
        if named.under_home and named.root not in moved:
            return Project(os.path.join(self._home.projects, named.under_home))
        if named.root in moved:
            return Project(os.path.realpath(moved[named.root]))
        return Project.at_root(named.root, self._home)

    def _check_places(self) -> None:
        kept = (self._home.projects, os.path.realpath(self._home.projects))
        for project in self.projects:
            root = project.root
            if project.memory == self._home.memory or os.path.dirname(root) in kept:
                continue
            if not os.path.isabs(root) or is_bare_place(root):
                raise BackupError(
                    f"the backup would write into {root}, which is not a project's directory; "
                    f"`--move {root} DIRECTORY` says which project its memory belongs to"
                )

    def _step(self, member: str, source: Path) -> RestoreStep:
        kind, _, rest = member.partition("/")
        if kind == "home":
            return _compared(member, source, Path(self._home.root, rest))
        number, _, name = rest.partition("/")
        project = self.projects[int(number)]
        if name in _MARKERS:
            target = Path(project.root, _MARKERS[name])
            if os.path.realpath(target) != os.path.join(os.path.realpath(project.root), _MARKERS[name]):
                raise BackupError(f"{target} leads out of its project; remove the link")
            return _compared(member, source, target)
        name = name.removeprefix("memory/")
        return _compared(member, source, Path(project.memory, name), project, name)

    def apply(
        self,
        *,
        force: bool,
        with_settings: bool = False,
        settings_of: Callable[[Project], Settings],
        announce: Callable[[str], None] = logger.info,
    ) -> RestoreReport:
        """Write what is missing, and with `force` also what differs: that is kept in the archive first.

        Settings that change where data goes (`settings`) are left out but `with_settings`.
        What was ever forgotten, here or by the backup's own account, is forgotten again: that is noted
        before anything is written. `settings_of` is asked once the backup's settings are there. The caller
        holds the index lock and that of the summaries. Can be killed and done again. Raises `MemkitError`,
        `OSError`.
        """
        self._check_places()
        is_forgotten = self._has_work and Tombstones(self._home).reopen(self._forgotten)
        report = RestoreReport(projects=[project.root for project in self.projects])
        stamp = time.strftime("%Y-%m-%dT%H%M%S")
        for step in self.steps:
            if step.state == "same":
                report.same += 1
                continue
            if step.member == _SETTINGS and self.settings and not with_settings:
                report.left_settings = list(self.settings)
                continue
            if step.state == "differs":
                if not force:
                    report.left.append(str(step.target))
                    continue
                report.kept_in = os.path.join(self._home.before_restore, stamp)
                kept = os.path.join(report.kept_in, *step.member.split("/"))
                make_private_directory(os.path.dirname(kept))
                write_durably(kept, step.target.read_bytes())
                report.replaced.append(str(step.target))
            self._write(step, settings_of)
            report.written += 1
        for named, project in zip(self.header.projects, self.projects, strict=True):
            if named.root != project.root and not named.is_user:
                move_paths(self._home, named.root, project)
                self._note_move(named, project)
        if is_forgotten:
            user = Project.of_user(self._home)
            report.problems = forget(self._home, user, ForgetSelection(), settings_of, announce)
        return report

    @property
    def _has_work(self) -> bool:
        return any(step.state != "same" for step in self.steps) or _FORGOTTEN in self._backup.members

    def _note_move(self, named: BackedUpProject, project: Project) -> None:
        """Let what names the old root mean the new one, unless the old one is there, or may come back."""
        if not os.path.isdir(named.root) and project != Project.at_root(named.root, self._home):
            with changing(self._home) as registry:
                registry.move(named.root, project.root)

    def _write(self, step: RestoreStep, settings_of: Callable[[Project], Settings]) -> None:
        data = step.source.read_bytes()
        if step.project is not None:
            unindexed.mark(self._home, step.project.root)
            shared = settings_of(Project(self._home.root)).memory.shared
            Journal(step.project, shared=shared, home=self._home).take_over(step.name, data)
            return
        make_private_directory(str(step.target.parent))
        write_durably(os.path.realpath(step.target), data, PRIVATE_FILE)


@contextmanager
def open_backup(home: Home, path: Path) -> Iterator[Restore]:
    """Check the backup at `path` as a whole, and compare it with what there is; changes nothing yet.

    The caller holds the index lock. Raises `BackupError`, `NewerFileError`, `OSError`.
    """
    make_private_directory(home.root)
    for left in Path(home.root).glob(f"{_STAGING}*"):  # by one that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=home.root) as staging:
        yield Restore(home, unpack(path, Path(staging)))


def _drop_foreign_transcript(path: Path, roots: Collection[str]) -> None:
    """Take the transcript's path out of an unpacked session state if it is none of Claude Code's here.

    What it names would be read into the memory of the state's project, so that must be one of `roots`, which
    the user is shown. The next event of the session tells the path again.
    """
    try:
        state = parse_json(path.read_bytes())
        transcript = state.get("transcript", "")
    except (ValueError, AttributeError):  # damaged: no path of it is ever used
        return
    try:
        if transcript and state.get("project", "") not in (*roots, ""):
            raise RefusedFileError(str(path), "it is of another project")
        if transcript:
            inside(transcript, str(transcripts_directory()))
    except (RefusedFileError, ValueError, TypeError):  # the last two: it is no path
        path.write_text(json.dumps({**state, "transcript": ""}), encoding="ascii")


def _compared(
    member: str, source: Path, target: Path, project: Project | None = None, name: str = ""
) -> RestoreStep:
    if not os.path.lexists(target):
        return RestoreStep(member, source, target, "new", project, name)
    if not target.is_file():
        raise BackupError(f"{target} is no file, but one in the backup; move it away")
    same = filecmp.cmp(source, target, shallow=False)
    return RestoreStep(member, source, target, "same" if same else "differs", project, name)
