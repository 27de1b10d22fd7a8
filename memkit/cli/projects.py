"""`memkit projects`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, counted, plain
from memkit.errors import MemkitError, NotFoundError
from memkit.hook.project import Project, Registry

if TYPE_CHECKING:
    from memkit.capture.project_list import ListedProject

LOCK_SECONDS = 600.0


@command("projects")
@click.argument(
    "action", type=click.Choice(["list", "link", "unlink", "rename", "merge"]), default="list"
)
@click.argument("value", required=False, metavar="[PATH|NAME]")
@click.option("--remove", is_flag=True, help="After `merge`: remove what was taken over.")
def projects_command(context: Context, action: str, value: str | None, remove: bool) -> None:
    """What projects are remembered, and which directories share a memory.

    `link PATH` has this project share the memory of the one at PATH from now on, `unlink` ends that.
    `rename NAME` gives it the name that results and lists show. `merge FROM` takes over the memory of
    the project at FROM, be that directory still there or not; doing it twice is the same as once.

    \b
      memkit projects
      memkit projects link ../shop
      memkit projects merge ~/old/shop --remove
    """
    takes_value = action in ("link", "rename", "merge")
    if takes_value != (value is not None):
        needed = "needs a NAME" if action == "rename" else "needs a PATH"
        raise click.UsageError(f"`{action}` {needed if takes_value else 'takes nothing more'}")
    if remove and action != "merge":
        raise click.UsageError("--remove belongs to `merge`")
    if action == "link":
        _link(context, str(value))
    elif action == "unlink":
        _unlink(context)
    elif action == "rename":
        _rename(context, str(value))
    elif action == "merge":
        _merge(context, str(value), remove)
    else:
        _list(context)


def _list(context: Context) -> None:
    from memkit.capture.project_list import list_projects
    from memkit.index.identity import identity

    if Path(context.project.memory).is_dir():
        identity(context.project, context.home)  # notes where a renamed project is now
    problem = Registry.read(context.home).problem
    projects = list_projects(context.home)
    if context.as_json:
        context.print_json({"projects": [project.as_dict() for project in projects]})
    else:
        for project in projects:
            _show(project)
        if not projects:
            click.echo("No project is remembered yet.")
    if problem:
        context.say(problem)


def _show(project: ListedProject) -> None:
    size = f"{counted(project.days, 'day')}, {counted(project.turns, 'turn')}"
    last = f", last {project.last}" if project.last else ""
    click.echo(plain(f"{project.name}: {size}{last}"))
    gone = "" if project.exists else " (gone)"
    named = f", known by {project.remote}" if project.remote else ""
    click.echo(plain(f"    {project.root}{gone}{named}"))
    for root in project.linked:
        click.echo(plain(f"    shared by {root}"))


def _link(context: Context, path: str) -> None:
    from memkit.projects.registry import changing

    own = _own_root(context)
    target = _existing(context, path)
    if target.root == own:
        raise MemkitError(f"{own} has that memory already")
    if Project(own).is_off:
        raise MemkitError(f"memkit is off for {own}; `memkit on` there first")
    with changing(context.home) as registry:
        registry.link(own, target.root)
    _done(
        context,
        {"root": own, "shares": target.root},
        f"{own} shares the memory of {target.root} from now on; "
        f"`memkit projects merge {own}` takes over what it has.",
    )


def _unlink(context: Context) -> None:
    from memkit.projects.registry import changing

    own = _own_root(context)
    with changing(context.home) as registry:
        shared = registry.links.pop(own, None)
        if shared is None:
            raise NotFoundError(f"{own} shares no other memory")
    _done(context, {"root": own, "shares": None}, f"{own} has a memory of its own again.")


def _rename(context: Context, name: str) -> None:
    from memkit.projects.registry import changing

    shown = " ".join(plain(name).split())
    if not shown:
        raise MemkitError("a project's name cannot be empty")
    root = context.project.root
    with changing(context.home) as registry:
        registry.names[root] = shown
    _done(context, {"root": root, "name": shown}, f"{root} is called {shown}.")


def _merge(context: Context, path: str, remove: bool) -> None:
    from memkit.index.lock import index_lock
    from memkit.index.sync import sync_project
    from memkit.journal.journal import Journal
    from memkit.maintenance.merge import merge, remove_merged
    from memkit.recall.ask import end_if_hung

    target = context.project
    source = _source(context, path)
    if source == target:
        raise MemkitError(f"{target.root} has that memory already")
    settings = context.settings()
    removed = 0
    end_if_hung(context.home, context.say)
    with index_lock(context.home, LOCK_SECONDS, context.say):
        journal = Journal(target, shared=settings.memory.shared, home=context.home)
        merged = merge(source, target, context.home, journal)
        _note_moves(context, {os.path.realpath(os.path.expanduser(path)), source.root}, target)
        sync_project(target, context.home, settings, announce=context.say)
        if remove:
            removed = remove_merged(source, target, context.home)
            sync_project(source, context.home, context.settings_of(source), announce=context.say)
    kept = f"{counted(removed, 'file')} removed" if remove else "which stays until you delete it"
    _done(
        context,
        {
            "root": target.root,
            "from": source.root,
            "turns": merged.turns,
            "files": merged.files,
            "sessions": merged.sessions,
            "removed": removed,
        },
        f"{counted(merged.turns, 'turn')} and {counted(merged.files, 'file')} taken over from "
        f"{source.memory}, {kept}.",
    )


def _note_moves(context: Context, roots: set[str], target: Project) -> None:
    """Note that what is known by the roots of directories that are gone is of `target` now."""
    from memkit.projects.registry import changing

    kept = context.home.projects
    gone = {root for root in roots if not os.path.isdir(root) or os.path.dirname(root) == kept}
    if gone:
        with changing(context.home) as registry:
            for root in sorted(gone):
                registry.move(root, target.root)


def _own_root(context: Context) -> str:
    """The root of the directory itself, whatever memory it shares."""
    return Project.containing(context.directory).root


def _existing(context: Context, path: str) -> Project:
    if not os.path.isdir(path):
        raise NotFoundError(f"no such directory: {path}")
    return Project.remembering(path, context.home)


def _source(context: Context, path: str) -> Project:
    """The project to merge: at a directory, itself and not what it is linked to; or one that is gone."""
    root = os.path.realpath(os.path.expanduser(path))
    own = Project.containing(root) if os.path.isdir(root) else Project(root)
    for candidate in (own, Project.remembering(root, context.home), Project.at_root(root, context.home)):
        # What is true across projects belongs to none of them.
        if Path(candidate.memory).is_dir() and candidate.memory != context.home.memory:
            return candidate
    raise NotFoundError(f"{path} has no memory; `memkit projects` lists those there are")


def _done(context: Context, value: dict[str, object], line: str) -> None:
    if context.as_json:
        context.print_json(value)
    else:
        click.echo(plain(line))
