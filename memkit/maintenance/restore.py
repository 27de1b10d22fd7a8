"""Restore a backup: write what is missing; replace what differs only if that is forced."""

from __future__ import annotations

import contextlib
import filecmp
import functools
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

from memkit.agents.claude_code.places import transcripts_directory
from memkit.errors import ConfigError, MemkitError
from memkit.files import PRIVATE_FILE, RefusedFileError, inside, make_private_directory, write_durably
from memkit.forget.erase import forget
from memkit.forget.selection import ForgetSelection
from memkit.hook.entries import OwnEntries
from memkit.index.memory_files import move_paths
from memkit.ipc import unindexed
from memkit.journal.journal import Journal
from memkit.maintenance import has_folders
from memkit.maintenance.backup import PROJECT_MEMBERS, BackedUpProject, Unpacked, unpack
from memkit.paths import OPENCLAW_DAYS, Home
from memkit.privacy.tombstones import Forgotten, Tombstones, read_forgotten
from memkit.projects.project import OWN_FOLDER, Project, Registry, is_bare_place
from memkit.projects.registry import changing
from memkit.settings.load import Settings, decisive_changes
from memkit.state import parse_json
from memkit.topics.topic_store import move_kept

logger = logging.getLogger(__name__)

_FORGOTTEN = "home/forgotten.json"
_SETTINGS = "home/config.toml"
_SESSIONS = "home/sessions/"
_ADDED_PATHS = re.compile(r"home/projects/[^/]+\.paths\.json")
_STAGING = ".restore-"


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """One file of a backup: its name there, its unpacked path, its target, and how the two compare.

    A file of a memory has a `project`, and `name` is its path in that memory.
    """

    member: str
    source: Path
    target: Path
    state: Literal["new", "same", "differs"]
    project: Project | None = None
    name: str = ""


@dataclass(slots=True)
class RestoreReport:
    """The result of a restore: numbers of files, and paths that were replaced or skipped.

    A file that differs is skipped or replaced; `kept_in` is the directory with the copies of replaced files,
    or "". `skipped_settings` says why the settings of the backup were not restored. `problems` are lines
    about forgotten text that could not be erased again; the next `memkit forget` tries it.
    """

    written: int = 0
    same: int = 0
    replaced: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    kept_in: str = ""
    skipped_settings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Restore:
    """A checked backup, compared with this machine. `open_backup` makes it."""

    def __init__(self, home: Home, backup: Unpacked) -> None:
        self._home = home
        self._members = backup.members
        self.header = backup.header
        for name, path in backup.members.items():
            if name.startswith(_SESSIONS):
                _drop_foreign_transcript(path, {one.root for one in self.header.projects})
        forgotten = backup.members.get(_FORGOTTEN)
        self._forgotten = Forgotten() if forgotten is None else read_forgotten(forgotten)
        self.projects: list[Project] = []
        self.steps: list[RestoreStep] = []
        # Steps are sorted: the fingerprints in `home/` are there when a project needs them.
        self._own_entries = functools.cache(functools.partial(OwnEntries, home))
        self.settings = self._changed_settings()
        """Changes by the backup's settings to where data goes, one line each."""
        self._compare({})

    @property
    def gone(self) -> list[str]:
        """The roots in the backup that do not exist on this machine."""
        named = [one for one in self.header.projects if not one.under_home and not one.is_user]
        return [one.root for one in named if not os.path.isdir(one.root)]

    @property
    def added_paths(self) -> list[str]:
        """The paths outside of memories that this backup would have indexed."""
        paths: set[str] = set()
        for step in self.steps:
            if _ADDED_PATHS.fullmatch(step.member) and step.state != "same":
                with contextlib.suppress(ValueError, KeyError, TypeError):  # damaged: it adds nothing
                    paths.update(map(str, parse_json(step.source.read_bytes())["paths"]))
        return sorted(paths)

    def move(self, moved: Mapping[str, str]) -> None:
        """Compare again; `moved` maps roots in the backup to the present roots of these projects.

        Raise `MemkitError`, also for a root that cannot be a project, and `OSError`.
        """
        self._compare(moved)
        self._check_roots()

    def _compare(self, moved: Mapping[str, str]) -> None:
        self.projects = [self._project(one, moved) for one in self.header.projects]
        members = sorted(self._members.items())
        self.steps = [self._step(name, path) for name, path in members if name != _FORGOTTEN]

    def _changed_settings(self) -> list[str]:
        path = self._members.get(_SETTINGS)
        try:
            return [] if path is None else decisive_changes(self._home, path)
        except ConfigError:
            return ["its config.toml cannot be read"]

    def _project(self, named: BackedUpProject, moved: Mapping[str, str]) -> Project:
        project = self._present(named, moved)
        is_chosen = not project.folder and named.folder in (OPENCLAW_DAYS, OWN_FOLDER)
        if is_chosen and has_folders(project, self._home):
            project.folder = named.folder  # `apply` records it
        return project

    def _present(self, named: BackedUpProject, moved: Mapping[str, str]) -> Project:
        if named.is_user:
            return Project.of_user(self._home)
        if named.root in moved:
            return Project(os.path.realpath(moved[named.root]), self._home)
        if named.under_home:
            return Project(os.path.join(self._home.projects, named.under_home), self._home)
        return Project.at_root(named.root, self._home)

    def _check_roots(self) -> None:
        under_home = (self._home.projects, os.path.realpath(self._home.projects))
        for project in self.projects:
            root = project.root
            if project.memory == self._home.memory or os.path.dirname(root) in under_home:
                continue
            if not os.path.isabs(root) or is_bare_place(root):
                raise MemkitError(
                    f"the backup would write into {root}, which is not a project's directory; "
                    f"`--move {root} DIRECTORY` names the project for its memory"
                )

    def _step(self, member: str, source: Path) -> RestoreStep:
        kind, _, rest = member.partition("/")
        if kind == "home":
            target = Path(self._home.root, rest)
            if target.suffix == ".own" and target.is_file():
                is_known = _joined_lines(target, source) == target.read_bytes()
                return RestoreStep(member, source, target, "same" if is_known else "new")
            return _compared(member, source, target)
        number, _, name = rest.partition("/")
        project = self.projects[int(number)]
        if name in PROJECT_MEMBERS:
            marker = PROJECT_MEMBERS[name]
            target = Path(project.root, marker)
            if os.path.realpath(target) != os.path.join(os.path.realpath(project.root), marker):
                raise MemkitError(
                    f"{target} leads out of its project; remove the link in a terminal of your own"
                )
            return _compared(member, source, target)
        name = name.removeprefix("memory/")
        target = Path(project.memory, name)
        if name.endswith(".md"):
            target = Path(project.day_file(name.removesuffix(".md")))
        return _compared(member, source, target, project, name)

    def apply(
        self,
        *,
        force: bool,
        with_settings: bool = False,
        settings_of: Callable[[Project], Settings],
        announce: Callable[[str], None] = logger.info,
    ) -> RestoreReport:
        """Write what is missing, and with `force` also what differs, after keeping a copy of it.

        Skip settings that change where data goes, unless `with_settings`. Forget again what was ever
        forgotten, here or according to the backup; that is noted before anything is written. `settings_of`
        is called after the settings are restored. The caller holds the locks of model calls,
        capture, and the index. A killed restore can run again. Raise `MemkitError`, `OSError`.
        """
        self._check_roots()
        has_work = any(step.state != "same" for step in self.steps) or _FORGOTTEN in self._members
        is_forgotten = has_work and Tombstones(self._home).reopen(self._forgotten)
        report = RestoreReport(projects=[project.root for project in self.projects])
        kept_in = os.path.join(self._home.before_restore, time.strftime("%Y-%m-%dT%H%M%S"))
        for step in self.steps:
            if step.state == "same":
                report.same += 1
            elif step.member == _SETTINGS and self.settings and not with_settings:
                report.skipped_settings = list(self.settings)
            elif step.state == "differs" and not force:
                report.skipped.append(str(step.target))
            else:
                if step.state == "differs":
                    report.kept_in = kept_in
                    kept = os.path.join(kept_in, *step.member.split("/"))
                    make_private_directory(os.path.dirname(kept))
                    write_durably(kept, step.target.read_bytes())
                    report.replaced.append(str(step.target))
                self._write(step, settings_of)
                report.written += 1
        for named, project in zip(self.header.projects, self.projects, strict=True):
            if named.root != project.root and not named.is_user:
                move_paths(self._home, named.root, project)
                move_kept(self._home, named.root, project)
                self._record_move(named, project)
        self._record_folders()
        if is_forgotten:
            user = Project.of_user(self._home)
            _, report.problems = forget(self._home, user, ForgetSelection(), settings_of, announce)
        return report

    def _record_folders(self) -> None:
        chosen = {one.root: one.folder for one in self.projects if one.folder}
        if chosen.keys() - Registry.read(self._home).folders.keys():
            with changing(self._home) as registry:
                registry.folders = {**chosen, **registry.folders}

    def _record_move(self, named: BackedUpProject, project: Project) -> None:
        if not os.path.isdir(named.root) and project != Project.at_root(named.root, self._home):
            with changing(self._home) as registry:
                registry.move(named.root, project.root)

    def _write(self, step: RestoreStep, settings_of: Callable[[Project], Settings]) -> None:
        data = step.source.read_bytes()
        if step.project is not None:
            unindexed.mark(self._home, step.project.root)
            shared = settings_of(Project(self._home.root, self._home)).memory.shared
            own = self._own_entries(self.header.projects[int(step.member.split("/")[1])].root)
            Journal(step.project, shared=shared, home=self._home).take_over(step.name, data, own)
            return
        if step.target.suffix == ".own":
            data = _joined_lines(step.target, step.source)
        make_private_directory(str(step.target.parent))
        write_durably(os.path.realpath(step.target), data, PRIVATE_FILE)


@contextmanager
def open_backup(home: Home, path: Path) -> Iterator[Restore]:
    """Unpack and check the backup at `path`, and compare it with this machine. Change nothing yet.

    The caller holds the capture lock. Raise `MemkitError`, `NewerFileError`, `OSError`.
    """
    make_private_directory(home.root)
    for stale in Path(home.root).glob(f"{_STAGING}*"):  # of a killed restore
        shutil.rmtree(stale)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=home.root) as staging:
        yield Restore(home, unpack(path, Path(staging)))


def _drop_foreign_transcript(path: Path, roots: Collection[str]) -> None:
    """Remove the transcript's path from an unpacked session state, unless it is one of Claude Code's here.

    memkit would read that file into the memory of the state's project. So the project must be one of
    `roots`, which the user sees before the restore. The next event of the session sets the path again.
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
    except (RefusedFileError, ValueError, TypeError):  # the last two: it is not a path
        path.write_text(json.dumps({**state, "transcript": ""}), encoding="ascii")


def _joined_lines(target: Path, source: Path) -> bytes:
    """Return the lines of `target`, which may be missing, and those that only `source` has."""
    present = target.read_bytes() if target.is_file() else b""
    lines, known = source.read_bytes().splitlines(keepends=True), set(present.splitlines(keepends=True))
    return present + b"".join(line for line in lines if line not in known)


def _compared(
    member: str, source: Path, target: Path, project: Project | None = None, name: str = ""
) -> RestoreStep:
    state: Literal["new", "same", "differs"] = "new"
    if os.path.lexists(target):
        if not target.is_file():
            raise MemkitError(f"{target} is not a file, but the backup has a file there; move it away")
        state = "same" if filecmp.cmp(source, target, shallow=False) else "differs"
    return RestoreStep(member, source, target, state, project, name)
