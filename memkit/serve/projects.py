"""The projects of the memory home: which there are, and the memory of one of them."""

from __future__ import annotations

from memkit.capture.project_list import projects_with_memory
from memkit.errors import MemkitError, OtherProjectsError
from memkit.index.catalog import project_names
from memkit.interface import InterfaceMemory as Memory
from memkit.projects.project import Project
from memkit.questions.caller import Caller


def memory_of(memory: Memory, name: str) -> Memory:
    """Return the memory of the project with this name. Raise `MemkitError`."""
    if not memory.other_projects:
        raise OtherProjectsError("this key reads one project; the setting recall.other_projects allows all")
    project = by_name(memory).get(name)
    if project is None:
        raise MemkitError(f"there is no project {name!r} with a memory; `memkit projects` lists them")
    home, settings_of, caller = memory.home, memory.settings_of, Caller(project.root)
    return Memory(project, home=home, settings_of=settings_of, announce=memory.announce, caller=caller)


def by_name(memory: Memory) -> dict[str, Project]:
    """Return the projects by the names that users see; a further one of the same name by its root."""
    found: dict[str, Project] = {}
    projects = projects_with_memory(memory.home, [memory.project])
    names = project_names(memory.home, (one.root for one in projects))
    for one in projects:
        found[one.root if names[one.root] in found else names[one.root]] = one
    return found
