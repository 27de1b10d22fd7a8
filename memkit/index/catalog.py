"""The indexes in a memory home: the name of each project's index, and its current snapshot."""

from __future__ import annotations

import glob
import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.embedding.models import space
from memkit.errors import MemkitError
from memkit.files import make_private_directory, read_head, write_durably
from memkit.index.chunk import digest
from memkit.index.manifest import Manifest, root_of
from memkit.index.reader import ChunkReader, open_current
from memkit.paths import Home
from memkit.projects.git import normalize_remote, remote_of
from memkit.projects.project import Project, Registry, digest16, registry_path
from memkit.projects.registry import changing
from memkit.projects.team_files import is_trusted as is_trusted_team
from memkit.settings.load import SearchSettings, Settings
from memkit.state import parse_json

if TYPE_CHECKING:
    from memkit.index.snapshot import Snapshot

logger = logging.getLogger(__name__)

COLLECTION_PREFIX = "memkit-"
"""The prefix of memkit's collections; the user's own Chroma directory may hold others."""

USER_NAME = "user memory"
"""The name of the memory in `MEMKIT_HOME/memory`."""

LAST_SUFFIX = ".identity"
"""The suffix of the files that hold a project's last identity, each named after its root."""

_IDENTITY = re.compile(r"[0-9a-f]{16}")


def open_snapshot(
    project: Project, home: Home, settings: Settings, *, strict: bool = False, earlier: Snapshot | None = None
) -> Snapshot | None:
    """Open the project's current snapshot, up to date or not; return None if there is no usable one.

    It shares the segments that `earlier`, an open one, has too.

    With `strict`, raise `StaleSnapshotError` with the reason if there is one that cannot be used.
    """
    from memkit.index.snapshot import Snapshot  # numpy and BM25, only to search and to index

    directory, language = _directory(project, home, settings), settings.search.language
    return open_current(directory, lambda path: Snapshot(path, language, earlier), strict=strict)


def open_chunks(project: Project, home: Home, settings: Settings) -> ChunkReader | None:
    """As `open_snapshot`, for the chunks alone: it imports no numpy."""
    chunks = open_current(_directory(project, home, settings), ChunkReader)
    if chunks is not None:
        chunks.model = settings.embedding.model
    return chunks


def open_manifest(project: Project, home: Home, settings: Settings) -> Manifest | None:
    """As `open_snapshot`, for what the manifest says alone: it opens no segment."""
    return open_current(_directory(project, home, settings), Manifest.read)


def _directory(project: Project, home: Home, settings: Settings) -> Path:
    return snapshot_directory(home, collection_name(project, home, space(settings.embedding)))


def snapshot_directory(home: Home, name: str) -> Path:
    """Return the directory of a collection's snapshots."""
    return Path(home.index) / "snapshots" / name


def collection_name(project: Project, home: Home, space: str) -> str:
    """Return the name of the project's collection for one vector space, see `embedding.models.space`.

    Chroma accepts at most 63 characters; the digest makes shortened names unique.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", space.lower())[:30].strip("-") or "model"
    return f"{_prefix(project, home)}{slug}-{digest(space)[:8]}"


def index_key(project: Project, home: Home, settings: Settings) -> str:
    """Return a digest of the project and of all settings that decide about the content of its index."""
    deciding = (
        settings.memory, settings.chunking, settings.embedding, settings.index, settings.search.language
    )
    is_trusted = is_trusted_team(home, project.root)
    return digest(repr((identity(project, home), project.folder, is_trusted, deciding)))


def other_collections(project: Project, home: Home, name: str) -> list[str]:
    """Return the project's collections except `name` that have a snapshot in this home."""
    directories = _snapshots(home, f"{_prefix(project, home)}*")
    return sorted(path.name for path in directories if path.name != name)


def _prefix(project: Project, home: Home) -> str:
    return f"{COLLECTION_PREFIX}{identity(project, home)}-"


def _snapshots(home: Home, pattern: str = "*") -> list[Path]:
    above = Path(home.index, "snapshots")
    return list(above.glob(pattern)) if above.is_dir() else []


def snapshots_of(home: Home, roots: Collection[str] | None) -> list[Path]:
    """Return the snapshot directories of all collections of the projects at `roots`, or of all projects."""
    directories = sorted(_snapshots(home))
    return [path for path in directories if roots is None or root_of(path) in roots]


def known_roots(home: Home) -> list[str]:
    """Return the root directories of all projects that have an index, sorted."""
    return sorted(filter(None, {_present_root(home, path) for path in _snapshots(home)}))


def _present_root(home: Home, directory: Path) -> str:
    """Return the present root of the project with this snapshot directory, also after a move."""
    root = root_of(directory)
    if not root or Path(root).is_dir():
        return root
    name = directory.name.removeprefix(COLLECTION_PREFIX).partition("-")[0]
    return holder_of(home, name) or Registry.read(home).present_root(root)


def known_projects(home: Home) -> list[Project]:
    """Return the projects that have an index and whose root directory still exists, sorted by root."""
    return [Project.at_root(root, home) for root in known_roots(home) if Path(root).is_dir()]


def left_behind(home: Home, settings_of: Callable[[Project], Settings]) -> list[tuple[Path, Settings]]:
    """Return the snapshot directories of projects that moved or were merged, if their new place has its own.

    Each comes with the settings of the project that they have become.
    """
    found = []
    for directory in snapshots_of(home, None):
        present = _present_root(home, directory)
        if present == root_of(directory) or not Path(present).is_dir():
            continue
        project = Project.at_root(present, home)
        settings = settings_of(project)
        is_its_own = directory.name.startswith(_prefix(project, home))
        if not is_its_own and open_manifest(project, home, settings) is not None:
            found.append((directory, settings))
    return found


def also_searched(
    project: Project, home: Home, search: SearchSettings, *, all_projects: bool
) -> list[Project]:
    """Return the other projects that a search of `project` includes: all, or the user's memory."""
    found = known_projects(home) if all_projects else []
    user = Project.of_user(home)
    if (all_projects or search.user_memory) and Path(user.memory).is_dir() and user not in found:
        found.append(user)
    return [other for other in found if other != project]


def project_names(home: Home, roots: Iterable[str]) -> dict[str, str]:
    """Return the name that results show for each of `roots`."""
    registry = Registry.read(home)
    return {root: USER_NAME if root == home.root else registry.name_of(root) for root in roots}


def identity(project: Project, home: Home) -> str:
    """Return the identity of the project's index, 16 hex characters.

    It comes from the normalized git remote, so that a moved project keeps its index, else from the
    root's path. A second clone on the same machine gets its own: `MEMKIT_HOME/projects` records which
    root holds which identity, and another root takes it over only when the first is gone.

    If git cannot name the remote now, the last identity stays: another one would embed everything again.
    """
    by_path = digest16("path:" + project.root)
    last = os.path.join(home.projects, by_path + LAST_SUFFIX)
    remote = remote_of(project.root)
    if remote is None:
        name = _read_last(last)
        if holder_of(home, name) != project.root:  # another root has taken it over
            name = by_path
        logger.warning("git cannot name the remote of %s; its index stays %s", project.root, name)
        return name
    name = by_path
    if remote:
        by_remote = digest16("remote:" + normalize_remote(remote))
        if _claim(home, by_remote, project.root):
            name = by_remote
    if name != (_read_last(last) or by_path):
        try:
            make_private_directory(home.projects)
            write_durably(last, name.encode("ascii"))
        except OSError as error:  # only a later failure of git would need it
            logger.warning("cannot record the identity of an index in %s: %s", last, error)
    return name


def _read_last(path: str) -> str:
    try:
        name = read_head(path, 100).decode("ascii", "replace").strip()
    except OSError:
        return ""
    return name if _IDENTITY.fullmatch(name) else ""


def _claim(home: Home, name: str, root: str) -> bool:
    holder = holder_of(home, name)
    if holder == root:
        return True
    if holder is not None and os.path.exists(os.path.join(holder, ".git")):
        return False
    if holder is not None:
        try:
            with changing(home) as registry:
                registry.move(holder, root)
        except MemkitError as error:  # `memkit projects` reports it too; the index is found anyway
            logger.warning("cannot record that %s moved to %s: %s", holder, root, error)
    make_private_directory(home.projects)
    write_durably(os.path.join(home.projects, name + ".json"), json.dumps({"root": root}).encode())
    return True


def holder_of(home: Home, name: str) -> str | None:
    """Return the root of the project that holds the identity made of a remote, or None."""
    return _root_in(os.path.join(home.projects, name + ".json"))


def recorded_roots(home: Home) -> list[str]:
    """Return the roots in the records of identities and of added paths, sorted."""
    paths = glob.glob(os.path.join(glob.escape(home.projects), "*.json"))
    roots = {_root_in(path) for path in paths if path != registry_path(home)}
    return sorted(root for root in roots if root and os.path.isabs(root))


def _root_in(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            root = parse_json(file.read())["root"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return root if isinstance(root, str) else None
