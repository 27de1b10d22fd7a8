"""What there is of a project at this moment: its memory files, and the snapshot that searches read."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.embedding.models import space
from memkit.errors import DamagedFileError
from memkit.files import RefusedFileError, read_regular
from memkit.hook.project import Project, Registry
from memkit.index.chunk import digest
from memkit.index.chunk_reader import ChunkReader, open_in_force, open_trusted, root_of
from memkit.index.identity import holder_of, identity
from memkit.index.paths import added_paths
from memkit.index.purge import COLLECTION_PREFIX
from memkit.index.scanner import Unreadable, is_below, is_excluded, is_gone, scan, sources_of
from memkit.paths import Home
from memkit.settings.load import SearchSettings, Settings

if TYPE_CHECKING:
    from memkit.index.snapshot import Snapshot

logger = logging.getLogger(__name__)

USER_NAME = "user memory"
"""What the memory in `MEMKIT_HOME/memory` is called."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file's bytes, the SHA-256 of them, and its path relative to the project."""

    source: str
    data: bytes
    hash: str


class CurrentFiles(dict[str, MemoryFile]):
    """The memory files of a project by source, in order.

    `unreadable` says which files, or directories with all below them, cannot be read now, and why: what the
    index has of these stays in it. Only what is missing was deleted. `added_paths_problem` says why it is
    not known which paths were added: then all that is not below the other ones stays.
    A file that is refused, as one larger than 64 MB, is logged and left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unreadable: Unreadable = {}
        self.added_paths_problem = ""
        self._exclude: list[str] = []
        self._own: list[str] | None = None

    @property
    def problems(self) -> list[str]:
        """What cannot be read, in lines for people."""
        lines = [f"{one or '.'} cannot be read: {why}" for one, why in self.unreadable.items()]
        return [*lines, *filter(None, [self.added_paths_problem])]

    def keep_below(self, exclude: list[str], own: list[str] | None) -> None:
        """Say what is excluded; and, if it is not known which paths were added, the other ones (`own`)."""
        self._exclude = exclude
        self._own = own

    def is_unreadable(self, source: str) -> bool:
        """Whether the file may be there, though it cannot be read."""
        if source in self or is_excluded(source, self._exclude):
            return False
        if self._own is not None and not any(is_below(source, one) for one in self._own):
            return True
        return any(is_below(source, one) for one in self.unreadable)


def memory_paths(project: Project, home: Home, settings: Settings) -> list[str]:
    """The files and directories that are the memory, absolute or relative to the project's root.

    Raises `NewerFileError`. Of a damaged record of added paths only the log tells here.
    """
    own = _own_paths(project, home, settings)
    try:
        return [*own, *added_paths(home, project)]
    except DamagedFileError as error:
        logger.warning("%s", error)
        return own


def _own_paths(project: Project, home: Home, settings: Settings) -> list[str]:
    # What memory.paths names is meant relative to a project; in the memory home there is but one place.
    return [home.memory] if project.root == home.root else settings.memory.paths


def read_files(project: Project, home: Home, settings: Settings) -> CurrentFiles:
    """The memory files of a project. What cannot be read is logged, and told by the result.

    Raises `NewerFileError`.
    """
    files = CurrentFiles()
    root, own, added = Path(project.root), _own_paths(project, home, settings), []
    files.keep_below(settings.memory.exclude, None)
    try:
        added = added_paths(home, project)
    except DamagedFileError as error:
        logger.warning("%s", error)
        files.added_paths_problem = str(error)
        files.keep_below(settings.memory.exclude, sources_of(root, own))
    exclude = settings.memory.exclude
    for found in scan(root, [*own, *added], exclude=exclude, unreadable=files.unreadable):
        try:
            # Links were followed, and checked, by the scan.
            data = read_regular(os.path.realpath(found.path))
        except OSError as error:
            logger.warning("cannot read %s: %s", found.path, error)
            if not is_gone(error) and not isinstance(error, RefusedFileError):
                files.unreadable[found.source] = error.strerror or str(error)
            continue
        files[found.source] = MemoryFile(found.source, data, hashlib.sha256(data).hexdigest())
    return files


def collection_name(project: Project, home: Home, space: str) -> str:
    """The name of the project's collection for one vector space, see `embedding.models.space`.

    At most 63 characters, as Chroma takes them; the digest tells long names apart.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", space.lower())[:30].strip("-") or "model"
    return f"{_prefix(project, home)}{slug}-{digest(space)[:8]}"


def index_key(project: Project, home: Home, settings: Settings) -> str:
    """Equal for equal projects and settings, as far as these decide what is in the index."""
    deciding = (
        settings.memory,
        settings.chunking,
        settings.embedding,
        settings.index,
        settings.search.language,
    )
    return digest(repr((identity(project, home), deciding)))


def other_collections(project: Project, home: Home, name: str) -> list[str]:
    """The project's collections beside `name` that this home has a snapshot of.

    Those another home made on a Chroma server they share are not among them.
    """
    directories = _snapshots(home, f"{_prefix(project, home)}*")
    return sorted(path.name for path in directories if path.name != name)


def _prefix(project: Project, home: Home) -> str:
    return f"{COLLECTION_PREFIX}{identity(project, home)}-"


def _snapshots(home: Home, pattern: str = "*") -> list[Path]:
    """Where the snapshots of all collections lie whose names fit."""
    above = Path(home.index, "snapshots")
    return list(above.glob(pattern)) if above.is_dir() else []


def snapshot_directory(home: Home, name: str) -> Path:
    """Where the snapshots of a collection lie."""
    return Path(home.index) / "snapshots" / name


def open_chunks(project: Project, home: Home, settings: Settings) -> ChunkReader | None:
    """The chunks of the project's snapshot in force, in step or not; None if there is none."""
    return open_in_force(_directory(project, home, settings), ChunkReader)


def open_snapshot(project: Project, home: Home, settings: Settings) -> Snapshot | None:
    """The project's snapshot in force, in step or not; None if there is none."""
    from memkit.index.snapshot import open_current  # numpy and BM25: only to search and to index

    return open_current(_directory(project, home, settings), settings.search.language)


def inspect_snapshot(project: Project, home: Home, settings: Settings) -> Snapshot | None:
    """The same, but None only if none is in force. Raises `StaleSnapshotError`, which says why."""
    from memkit.index.snapshot import Snapshot

    directory = _directory(project, home, settings)
    return open_trusted(directory, lambda path: Snapshot(path, settings.search.language))


def _directory(project: Project, home: Home, settings: Settings) -> Path:
    return snapshot_directory(home, collection_name(project, home, space(settings.embedding)))


def snapshots_of(home: Home, roots: Collection[str] | None) -> list[Path]:
    """Where the snapshots of all collections lie whose projects have one of `roots`, of any if None."""
    directories = sorted(_snapshots(home))
    return [path for path in directories if roots is None or root_of(path) in roots]


def known_roots(home: Home) -> list[str]:
    """The root directories of all projects that have an index, sorted."""
    directories = _snapshots(home)
    return sorted(filter(None, {_present_root(home, directory) for directory in directories}))


def _present_root(home: Home, directory: Path) -> str:
    """The root of the project whose snapshots lie in `directory`, also if it has moved since."""
    root = root_of(directory)
    if not root or Path(root).is_dir():
        return root
    name = directory.name.removeprefix(COLLECTION_PREFIX).partition("-")[0]
    return holder_of(home, name) or Registry.read(home).present_root(root)


def known_projects(home: Home) -> list[Project]:
    """The projects that have an index, and whose root directory still exists, sorted by root."""
    return [Project.at_root(root, home) for root in known_roots(home) if Path(root).is_dir()]


def searched_beside(
    project: Project, home: Home, search: SearchSettings, *, all_projects: bool
) -> list[Project]:
    """The projects that a search of `project` looks into as well: all of them, or the user's memory."""
    found = known_projects(home) if all_projects else []
    user = Project.of_user(home)
    if (all_projects or search.user_memory) and Path(user.memory).is_dir() and user not in found:
        found.append(user)
    return [other for other in found if other != project]


def project_names(home: Home, roots: Iterable[str]) -> dict[str, str]:
    """The name that results show for each of `roots`."""
    registry = Registry.read(home)
    return {
        root: USER_NAME if root == home.root else registry.name_of(root) for root in roots
    }


def is_in_step(snapshot: ChunkReader, files: CurrentFiles, settings: Settings) -> bool:
    """Whether the snapshot stands for exactly these files, cut as the settings say.

    Files that cannot be read count as unchanged.
    """
    known = snapshot.sources
    kept = {source: known[source] for source in known if files.is_unreadable(source)}
    return known == {**kept, **state_of(files, settings)}


def state_of(files: CurrentFiles, settings: Settings) -> dict[str, str]:
    """The hash of each file, salted with the way it is cut, and with the server that keeps the chunks.

    Another cut makes other chunks; another `index.uri` has none of them yet.
    """
    cut = settings.chunking
    suffix = f"{cut.max_characters}-{cut.min_characters}-{cut.overlap_lines}"
    if settings.index.uri:
        suffix += f"-{digest(settings.index.uri)[:16]}"
    return {file.source: f"{file.hash}:{suffix}" for file in files.values()}
