"""The memory files of a project as they are now, and the paths that the user added to them.

Added paths (`memkit index PATH`) are kept under the memory home, not in the project: a repository from
strangers cannot add any.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from memkit.agents.claude_code.places import memory_of
from memkit.errors import DamagedFileError, NotFoundError
from memkit.files import MOST_BYTES, RefusedFileError, inside, make_private_directory, read_regular
from memkit.index.chunk import digest
from memkit.index.manifest import Manifest, Stat, stat_of
from memkit.index.reader import ChunkReader
from memkit.index.scanner import (
    SUFFIXES,
    Unreadable,
    is_below,
    is_excluded,
    is_gone,
    is_markdown,
    scan,
    sources_of,
)
from memkit.paths import OPENCLAW_DAYS, OPENCLAW_FACTS, Home
from memkit.projects import team_files
from memkit.projects.project import Project, Registry, digest16
from memkit.projects.team import update_copy
from memkit.settings import MemorySettings
from memkit.settings.load import Settings
from memkit.state import read_state, write_state

logger = logging.getLogger(__name__)

RESTORE = (
    "restore that file from a backup; or move it away, and add the paths again with `memkit index PATH`: "
    "until then searches do not find their text"
)
"""The advice for a damaged file of added paths."""

VERSION = 1
"""The version of that file's format."""

_DEFAULT_PATHS = MemorySettings().paths
_DAY_NAME = re.compile(r"\d{4}-\d\d-\d\d\.md", re.ASCII)


RACY_NS = 2_000_000_000
"""A file that changed less than this many nanoseconds before it was read may change again without a new time,
as on a file system with coarse times. So its `Stat` is not kept."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file: its path relative to the project, its real path, the SHA-256 of its bytes, and its stat.

    `kept` are the bytes if they are in memory.
    """

    source: str
    path: str
    hash: str
    stat: Stat = ()
    kept: bytes | None = None

    @property
    def data(self) -> bytes:
        """The bytes, read now if need be. Raise `OSError`."""
        return read_regular(self.path, self._most) if self.kept is None else self.kept

    @property
    def _most(self) -> int:
        return team_files.MOST_BYTES if team_files.is_team(self.source) else MOST_BYTES

    def load(self) -> MemoryFile:
        """Return the file as it is now, with its bytes in memory. Raise `OSError`."""
        found, now = os.stat(self.path), time.time_ns()
        data = read_regular(self.path, self._most)
        is_settled = max(found.st_mtime_ns, found.st_ctime_ns) + RACY_NS < now
        stat = stat_of(found) if is_settled and len(data) == found.st_size else ()
        return MemoryFile(self.source, self.path, hashlib.sha256(data).hexdigest(), stat, data)


@dataclass(eq=False)
class CurrentFiles(dict[str, MemoryFile]):
    """The memory files of a project by source, in order.

    `unreadable` maps files, and directories with everything below them, to the reason why they cannot be read
    now. The index keeps what it has of these: only a missing file was deleted. If the added paths are
    unknown, `added_paths_problem` is the reason, and any file outside `own` may be below an added path. A
    refused file, such as one larger than 64 MB, is logged and left out.
    """

    exclude: Sequence[str] = ()
    own: list[str] = field(default_factory=list)
    unreadable: Unreadable = field(default_factory=dict)
    added_paths_problem: str = ""

    @property
    def problems(self) -> list[str]:
        """One line for each path that cannot be read."""
        lines = [f"{one or '.'} cannot be read: {why}" for one, why in self.unreadable.items()]
        return [*lines, *filter(None, [self.added_paths_problem])]

    def is_unreadable(self, source: str) -> bool:
        """Return whether the file may exist though it cannot be read."""
        if source in self or is_excluded(source, self.exclude):
            return False
        if self.added_paths_problem and not any(is_below(source, one) for one in self.own):
            return True
        return any(is_below(source, one) for one in self.unreadable)


def memory_paths(project: Project, home: Home, settings: Settings) -> Sequence[str]:
    """Return the files and directories that are the memory, absolute or relative to the project's root.

    A damaged record of added paths is only logged. Raise `NewerFileError`.
    """
    own = [*_own_paths(project, home, settings), *_team_path(project, home)]
    try:
        return [*own, *(one for one in added_paths(home, project) if not _is_team_path(project, one))]
    except DamagedFileError as error:
        logger.warning("%s", error)
        return own


def _own_paths(project: Project, home: Home, settings: Settings) -> Sequence[str]:
    # A repository's settings cannot name the team's folder: they come with it.
    chosen = [one for one in _chosen_paths(project, home, settings) if not _is_team_path(project, one)]
    claude = str(memory_of(project.root))
    is_wanted = settings.memory.claude_code and project.root != home.root and os.path.isdir(claude)
    return [*chosen, claude] if is_wanted else chosen


def _team_path(project: Project, home: Home) -> list[str]:
    return [team_files.TEAM] if team_files.is_trusted(home, project.root) else []


def _is_team_path(project: Project, path: str) -> bool:
    return any(map(team_files.is_team, sources_of(Path(project.root), [path])))


def _chosen_paths(project: Project, home: Home, settings: Settings) -> Sequence[str]:
    # memory.paths is relative to a project. The memory home has only one place.
    if project.root == home.root:
        return [home.memory]
    chosen = settings.memory
    if project.openclaw and chosen.paths != _DEFAULT_PATHS:
        return list(dict.fromkeys([*chosen.paths, OPENCLAW_DAYS]))  # it holds days of memkit's
    if project.openclaw:
        return [*chosen.paths, OPENCLAW_FACTS, OPENCLAW_DAYS]
    if chosen.paths == _DEFAULT_PATHS and _has_openclaw_days(project.root, chosen.exclude):
        return [*chosen.paths, OPENCLAW_FACTS, OPENCLAW_DAYS]
    return chosen.paths


def _has_openclaw_days(root: str, exclude: Sequence[str]) -> bool:
    """Return whether `memory/` holds OpenClaw's days, or is unreadable: the index keeps what it has."""
    try:
        with os.scandir(inside(os.path.join(root, OPENCLAW_DAYS), root)) as entries:
            return any(
                _DAY_NAME.fullmatch(entry.name) and not is_excluded(f"{OPENCLAW_DAYS}/{entry.name}", exclude)
                for entry in entries
            )
    except OSError as error:
        return not is_gone(error) and not isinstance(error, RefusedFileError)


def read_files(
    project: Project, home: Home, settings: Settings, known: ChunkReader | Manifest | None = None
) -> CurrentFiles:
    """Find the memory files of a project. The result lists what cannot be read. Raise `NewerFileError`.

    A file that has the same stat as in `known` is not read.
    """
    entries = {} if known is None else known.entries
    root, own, added = Path(project.root), _own_paths(project, home, settings), []
    shared, exclude = _team_path(project, home), settings.memory.exclude
    files = CurrentFiles(exclude, sources_of(root, [*own, *shared]))
    try:
        added = added_paths(home, project)
    except DamagedFileError as error:
        logger.warning("%s", error)
        files.added_paths_problem = str(error)
    added = [one for one in added if not _is_team_path(project, one)]
    scanned = scan(root, [*own, *added], exclude=exclude, unreadable=files.unreadable)
    if shared:
        try:
            update_copy(home, project.root)
        except OSError as error:
            logger.warning("cannot copy what people share in %s: %s", root, error)
        copy = Path(team_files.copy_of(home, project.root))
        scanned = chain(scanned, scan(copy, shared, exclude=exclude, unreadable=files.unreadable))
    for found in scanned:
        try:
            # The scan followed links, and checked where they lead.
            file = MemoryFile(found.source, found.real, "")
            entry = entries.get(found.source)
            stat = entry.stat if entry is not None else ()
            if entry is not None and stat and stat == stat_of(os.stat(found.real)):
                file = replace(file, hash=entry.state.partition(":")[0], stat=stat)
            else:
                file = replace(file.load(), kept=None)
        except OSError as error:
            logger.warning("cannot read %s: %s", found.path, error)
            if not is_gone(error) and not isinstance(error, RefusedFileError):
                files.unreadable[found.source] = error.strerror or str(error)
            continue
        files[found.source] = file
    return files


def is_up_to_date(snapshot: ChunkReader | Manifest, files: CurrentFiles, settings: Settings) -> bool:
    """Return whether the snapshot has these files and settings; unreadable files count as unchanged."""
    known = snapshot.sources
    kept = {source: known[source] for source in known if files.is_unreadable(source)}
    return known == {**kept, **state_of(files, settings)}


def state_of(files: CurrentFiles, settings: Settings) -> dict[str, str]:
    """Return the state of each file, see `file_state`."""
    return {file.source: file_state(file, settings) for file in files.values()}


def file_state(file: MemoryFile, settings: Settings) -> str:
    """Return the hash of a file, combined with the chunker's settings and the place of the store.

    A change of any of these makes the indexed chunks of the file out of date.
    """
    cut = settings.chunking
    suffix = f"{cut.max_characters}-{cut.min_characters}-{cut.overlap_lines}"
    if settings.index.uri:
        suffix += f"-{digest(settings.index.place)[:16]}"
    return f"{file.hash}:{suffix}"


def added_paths(home: Home, project: Project) -> list[str]:
    """Return the added paths, absolute or relative to the project's root, also after a move.

    Raise `NewerFileError` or `DamagedFileError`: if such a record counted as empty, the index would lose the
    text below these paths.
    """
    path = _record(home, project)
    try:
        if not path.exists():
            earlier = (Project(one, home) for one in Registry.read(home).earlier_roots(project.root))
            path = next(filter(Path.exists, (_record(home, one) for one in earlier)), path)
        return read_state(path, VERSION, lambda value: [str(one) for one in value["paths"]]) or []
    except (OSError, DamagedFileError) as error:
        raise DamagedFileError(
            f"the added paths of {project.root} cannot be read: {error}; {RESTORE}"
        ) from error


def change_paths(
    home: Home, project: Project, *, add: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[str]:
    """Add and drop paths, absolute or relative to the working directory; return the new list.

    Raise `NotFoundError` for a path to drop that was not added, and for a file to add that is not
    Markdown; then nothing changes. Raise `NewerFileError`, `DamagedFileError`.
    """
    before = added_paths(home, project)
    for path in add:
        if Path(path).is_file() and not is_markdown(path):
            raise NotFoundError(f"{path} is not Markdown ({', '.join(SUFFIXES)})")
    for path in drop:
        if _relative(project, path) not in before:
            added = ", ".join(before) or "none"
            raise NotFoundError(f"{path} was not added to this memory; added paths: {added}")
    dropped = {_relative(project, path) for path in drop}
    wanted = [*before, *(_relative(project, path) for path in add)]
    paths = [path for path in dict.fromkeys(wanted) if path not in dropped]
    _write(home, project, paths)
    return paths


def move_paths(home: Home, root: str, project: Project) -> None:
    """Add to `project` the paths that were added to the memory of the project at `root`.

    Raise `OSError`, `NewerFileError`, `DamagedFileError`.
    """
    before = added_paths(home, project)
    paths = list(dict.fromkeys([*before, *added_paths(home, Project(root, home))]))
    if paths != before:
        _write(home, project, paths)


def _record(home: Home, project: Project) -> Path:
    return Path(home.projects) / f"{digest16(project.root)}.paths.json"


def _write(home: Home, project: Project, paths: list[str]) -> None:
    make_private_directory(home.projects)
    write_state(_record(home, project), VERSION, {"root": project.root, "paths": paths})


def _relative(project: Project, path: str) -> str:
    absolute = Path(path).resolve()
    try:
        return absolute.relative_to(project.root).as_posix()
    except ValueError:
        return str(absolute)
