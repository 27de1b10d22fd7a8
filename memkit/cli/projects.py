"""`memkit projects`, `memkit on`, and `memkit off`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import confirm, plain
from memkit.errors import MemkitError, NotFoundError
from memkit.paths import OPENCLAW_DAYS
from memkit.projects.git_files import git_directory_of
from memkit.projects.project import OWN_FOLDER, Project, Registry
from memkit.projects.registry import changing
from memkit.projects.trust import in_session
from memkit.text import one_line, plural

if TYPE_CHECKING:
    from memkit.capture.project_list import ListedProject

VALUES = {
    "link": "PATH", "rename": "NAME", "merge": "PATH", "folder": f"folder: {OPENCLAW_DAYS} or {OWN_FOLDER}"
}
"""The actions that take a value, and what it is."""


@command("projects")
@click.argument(
    "action",
    type=click.Choice(["list", "link", "unlink", "rename", "merge", "folder", "trust", "distrust"]),
    default="list",
)
@click.argument("value", required=False, metavar="[PATH|NAME|FOLDER]")
@click.option("--remove", is_flag=True, help="After `merge`: delete what was merged at its old place.")
@click.option("--yes", is_flag=True, help="Do not ask before `trust`.")
def projects_command(context: Context, action: str, value: str | None, remove: bool, yes: bool) -> None:
    """List the remembered projects, let directories share a memory, trust what a repository's people share.

    `link PATH` makes this project share the memory of the project at PATH; `unlink` ends that. `rename NAME`
    changes the name that results and lists show. `merge PATH` copies the memory of the project at PATH into
    this one, even if that directory is gone. Merging twice changes nothing more. `folder memory` has memkit
    write this project's new days to `memory/YYYY-MM-DD.md`, as OpenClaw does; `folder .memkit/memory` ends
    that. Days stay where they are, and are remembered as before. `trust` has memkit search what people share
    in this clone (`memkit share`), and quote it to new sessions; `distrust` ends that.

    \b
      memkit projects
      memkit projects link ../shop
      memkit projects merge ~/old/shop
      memkit projects folder memory
      memkit projects trust
    """
    if (action in VALUES) != (value is not None):
        needed = VALUES.get(action)
        raise click.UsageError(f"`{action}` needs a {needed}" if needed else f"`{action}` takes no value")
    if remove and action != "merge":
        raise click.UsageError("--remove works with `merge` only")
    context.stay_in_project(leaves=action in ("link", "merge"))
    if action == "list":
        _list(context)
    elif action == "link":
        _link(context, str(value))
    elif action == "unlink":
        _unlink(context)
    elif action == "rename":
        _rename(context, str(value))
    elif action == "folder":
        _choose_folder(context, str(value))
    elif action in ("trust", "distrust"):
        _trust(context, yes, is_trusted=action == "trust")
    else:
        _merge(context, str(value), remove)


def _list(context: Context) -> None:
    from memkit.capture.project_list import list_projects
    from memkit.index.catalog import identity

    if Path(context.project.memory).is_dir():
        identity(context.project, context.home)  # records the new place of a project that was moved
    problem = Registry.read(context.home).problem
    projects = list_projects(context.home)
    if not context.may_leave_project:
        projects = [one for one in projects if one.root == context.project.root]
    lines = [line for project in projects for line in _lines(project)]
    context.report({"projects": projects}, *(lines or ["No project is remembered yet."]))
    if problem:
        context.say(problem)


def _lines(project: ListedProject) -> Iterator[str]:
    last = f", last {project.last}" if project.last else ""
    notes = f", {plural(project.notes, 'note')}" if project.notes else ""
    yield f"{project.name}: {plural(project.days, 'day')}, {plural(project.turns, 'turn')}{notes}{last}"
    gone = "" if project.exists else " (gone)"
    remote = f", git remote {project.remote}" if project.remote else ""
    yield f"    {project.root}{gone}{remote}"
    if project.folder != OWN_FOLDER:
        yield f"    new days go to {project.folder}/"
    yield from (f"    shared by {root}" for root in project.linked)


def _link(context: Context, path: str) -> None:
    own = Project.containing(context.directory).root
    if not os.path.isdir(path):
        raise NotFoundError(f"no such directory: {path}")
    target = Project.remembering(path, context.home)
    if target.root == own:
        raise MemkitError(f"{own} already has that memory")
    if Project(own, context.home).is_off:
        raise MemkitError(f"memkit is off for {own}; you can turn it on there with `memkit on`")
    with changing(context.home) as registry:
        registry.link(own, target.root)
    context.report(
        {"root": own, "shares": target.root},
        f"{own} now shares the memory of {target.root}. "
        f"`memkit projects merge {own}` copies its old memory there.",
    )


def _unlink(context: Context) -> None:
    own = Project.containing(context.directory).root
    with changing(context.home) as registry:
        if registry.links.pop(own, None) is None:
            raise NotFoundError(f"{own} does not share another project's memory")
    context.report({"root": own, "shares": None}, f"{own} has its own memory again.")


def _rename(context: Context, name: str) -> None:
    name = one_line(plain(name))
    if not name:
        raise MemkitError("a project's name cannot be empty")
    root = context.project.root
    with changing(context.home) as registry:
        registry.names[root] = name
    context.report({"root": root, "name": name}, f"{root} is now called {name}.")


def _choose_folder(context: Context, folder: str) -> None:
    from memkit.maintenance import choose_folder

    folder, shared = folder.rstrip("/").removeprefix("./"), context.settings().memory.shared
    with context.memory().capture_lock():
        context.project = choose_folder(context.project, folder, context.home, shared=shared)
    context.memory().index()
    hidden = "" if shared or git_directory_of(context.project.root) is None else ", which git ignores"
    context.report(
        {"root": context.project.root, "folder": folder},
        f"New days of {context.project.root} go to {folder}/{hidden}. Days in the other folder stay there "
        "and are remembered as before.",
    )


def _trust(context: Context, yes: bool, *, is_trusted: bool) -> None:
    from memkit.projects.team import update_copy
    from memkit.projects.team_files import people, read_copied

    root = context.project.root
    if is_trusted:
        if in_session():  # whose words may come from the repository
            raise MemkitError("run `memkit projects trust` in a terminal of your own, outside of Claude Code")
        update_copy(context.home, root)
        copied = read_copied(context.home, root)
        if not copied.get("upstream"):
            context.say(f"{root} knows no default branch of `origin` or `upstream`, so nothing is read yet")
        confirm(
            f"Search what the default branch of its upstream has in .memkit/team of {root}, and quote it to "
            f"sessions? Shared by {', '.join(people(copied)) or 'nobody yet'}.", yes,
        )  # fmt: skip
    names = context.memory().trust_team(is_trusted=is_trusted)
    by = f": {', '.join(names)}" if names else ""
    said = f"memkit now searches what people share in {root}{by}. `memkit projects distrust` ends that."
    context.report(
        {"root": root, "trusted": is_trusted, "authors": names},
        said if is_trusted else f"memkit no longer searches what people share in {root}.",
    )


def _merge(context: Context, path: str, remove: bool) -> None:
    from memkit.index import sync_project
    from memkit.maintenance.merge import merge, remove_merged

    target = context.project
    source = _source(context, path)
    if source == target:
        raise MemkitError(f"{target.root} already has that memory")
    settings = context.settings()
    removed = 0
    memory = context.memory()
    with context.progress("merging", is_counted=False), memory.capture_lock(), memory.index_lock():
        merged = merge(source, target, context.home, memory.journal)
        _record_moves(context, {os.path.realpath(os.path.expanduser(path)), source.root}, target)
        sync_project(target, context.home, settings, announce=context.say)
        if remove:
            removed = remove_merged(source, target, context.home)
            sync_project(source, context.home, context.settings_of(source), announce=context.say)
    rest = f"; {plural(removed, 'file')} removed there" if remove else ", which is unchanged"
    context.report(
        {
            "root": target.root, "from": source.root, "turns": merged.turns, "files": merged.files,
            "sessions": merged.sessions, "removed": removed,
        },
        f"{plural(merged.turns, 'turn')} and {plural(merged.files, 'file')} merged from "
        f"{source.memory}{rest}.",
    )


def _record_moves(context: Context, roots: set[str], target: Project) -> None:
    kept = context.home.projects
    gone = {root for root in roots if not os.path.isdir(root) or os.path.dirname(root) == kept}
    if gone:
        with changing(context.home) as registry:
            for root in sorted(gone):
                registry.move(root, target.root)


def _source(context: Context, path: str) -> Project:
    """Return the project to merge: the one in a directory, without following a link, or one that is gone."""
    root = os.path.realpath(os.path.expanduser(path))
    own = Project(Project.containing(root).root if os.path.isdir(root) else root, context.home)
    for candidate in (own, Project.remembering(root, context.home), Project.at_root(root, context.home)):
        # The user's own memory belongs to no project.
        if Path(candidate.memory).is_dir() and candidate.memory != context.home.memory:
            return candidate
    raise NotFoundError(f"{path} has no memory; `memkit projects` lists the projects that have one")


@command("off")
def off_command(context: Context) -> None:
    """Stop remembering this project's sessions. Its memory stays and can still be searched.

    \b
      memkit off
    """
    context.project.switch_off(time.time())
    _report_switch(context, "off")


@command("on")
def on_command(context: Context) -> None:
    """Remember this project's sessions again, but not those from the time it was off.

    \b
      memkit on
    """
    context.project.switch_on(time.time())
    _report_switch(context, "on")


def _report_switch(context: Context, state: str) -> None:
    root = context.project.root
    context.report({"project": root, "memory": state}, f"memkit is {state} for {root}")
