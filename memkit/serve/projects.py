"""The projects of the memory home: which there are, and the memory of one of them."""

from __future__ import annotations

from typing import TypedDict

from fastapi import APIRouter, Response

from memkit.capture.project_list import projects_with_memory
from memkit.errors import MemkitError, OtherProjectsError
from memkit.hook.tally import full_tally
from memkit.index.catalog import project_names
from memkit.memory import Memory
from memkit.projects.project import Project
from memkit.questions.caller import Caller
from memkit.serve.answers import Answer, returns
from memkit.serve.auth import AdministeringOrPage

router = APIRouter(prefix="/projects", tags=["overview"])


class ListedProject(TypedDict):
    """A project with a memory. `last` is its latest day, or ""; `served` is the one of this server."""

    name: str
    root: str
    last: str
    served: bool


class Projects(TypedDict):
    """All projects, the last active first."""

    projects: list[ListedProject]


@router.get("", responses=returns(Projects))
async def listed(ask: AdministeringOrPage) -> Response:
    """Return the projects of this machine. Their names are the values of the parameter `project`."""

    def read(memory: Memory) -> Response:
        found: list[ListedProject] = []
        for name, one in _by_name(memory).items():
            last, is_served = full_tally(memory.home, one).day, one == memory.project
            found.append({"name": name, "root": one.root, "last": last, "served": is_served})
        shown = [one for one in found if one["last"] or one["served"]]
        return Answer({"projects": sorted(shown, key=lambda one: one["last"], reverse=True)})

    return await ask(read)


def memory_of(memory: Memory, name: str) -> Memory:
    """Return the memory of the project with this name. Raise `MemkitError`."""
    if not memory.other_projects:
        raise OtherProjectsError("this key reads one project; the setting recall.other_projects allows all")
    project = _by_name(memory).get(name)
    if project is None:
        raise MemkitError(f"there is no project {name!r} with a memory; `memkit projects` lists them")
    home, caller = memory.home, Caller(project.root)
    return Memory(
        project, home=home, settings_of=memory.settings_of, announce=memory.announce, caller=caller
    )


def _by_name(memory: Memory) -> dict[str, Project]:
    """Return the projects by the names that users see; a further one of the same name by its root."""
    found: dict[str, Project] = {}
    projects = projects_with_memory(memory.home, [memory.project])
    names = project_names(memory.home, (one.root for one in projects))
    for one in projects:
        found[one.root if names[one.root] in found else names[one.root]] = one
    return found
