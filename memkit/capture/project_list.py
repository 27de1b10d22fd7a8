"""List all projects that this memory home knows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memkit.capture.sessions import Sessions
from memkit.hook.tally import full_tally
from memkit.index.catalog import known_roots, project_names, recorded_roots
from memkit.paths import Home
from memkit.projects.git import normalize_remote, remote_of
from memkit.projects.project import OWN_FOLDER, Project, Registry


@dataclass(frozen=True, slots=True)
class ListedProject:
    """A project and the size of its memory.

    Attributes:
        last: the latest remembered day (ISO).
        remote: the normalized git remote that the index is named after.
        identity: "remote", or "path" if the index is named after that.
        exists: whether the directory exists.
        folder: where new days go, relative to the root.
        linked: the roots that share the memory.
    """

    root: str
    name: str
    memory: str
    days: int
    turns: int
    notes: int
    last: str | None
    remote: str | None
    exists: bool
    folder: str
    linked: list[str]
    identity: str


def list_projects(home: Home) -> list[ListedProject]:
    """Return all `remembered_projects`, the last active first."""
    registry = Registry.read(home)
    projects = {project.root: project for project in remembered_projects(home)}
    names = project_names(home, projects)
    linked: dict[str, list[str]] = {}
    for root, shared in registry.links.items():
        linked.setdefault(Project.at_root(shared, home).root, []).append(root)
    found = []
    for root, project in projects.items():
        counted = full_tally(home, project)
        remote = normalize_remote(remote_of(root) or "")
        found.append(
            ListedProject(
                root=root, name=names[root], memory=project.memory, days=counted.days, turns=counted.turns,
                notes=counted.notes, last=counted.day or None, remote=remote or None,
                exists=Path(root).is_dir(), folder=project.folder or OWN_FOLDER,
                linked=sorted(linked.get(root, [])), identity="remote" if remote else "path",
            )
        )
    return sorted(found, key=lambda one: (one.last or "", one.root), reverse=True)


def remembered_projects(home: Home) -> list[Project]:
    """Return every project with an index, a session, a link, or a memory, and the user's own memory.

    Sorted by root, each once. A project whose directory is gone appears twice: as it was, since its index
    remains, and with its memory under the home.
    """
    projects = {project.root: project for project in _projects(home, Registry.read(home))}
    return [projects[root] for root in sorted(projects)]


def projects_with_memory(home: Home, also: Iterable[Project] = ()) -> list[Project]:
    """Return the remembered projects and those in `also` that have a memory directory, sorted by root."""
    projects = {*remembered_projects(home), *also}
    found = (project for project in projects if os.path.isdir(project.memory))
    return sorted(found, key=lambda project: project.root)


def _projects(home: Home, registry: Registry) -> Iterator[Project]:
    for root in known_roots(home):
        is_there = Path(root).is_dir()
        yield Project.at_root(root, home) if is_there else Project(registry.present_root(root), home)
    for state in Sessions(home):
        if state.project:
            yield Project.at_root(registry.shared_root(state.project), home)
    for target in registry.links.values():
        yield Project.at_root(target, home)
    for root in recorded_roots(home):
        project = Project(root, home)
        if os.path.isdir(project.memory):  # else somebody searched there, and nothing was remembered
            yield project
    for path in Path(home.projects).glob("*"):
        if path.is_dir():
            yield Project(str(path), home)
    if Path(home.memory).is_dir():
        yield Project.of_user(home)
