"""`memkit uninstall`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, confirm, counted, plain
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from memkit.maintenance.owned_files import OwnedFiles


@command("uninstall")
@click.option("--keep-memory", is_flag=True, help="Leave archive, settings and ledger too.")
@click.option("--everything", is_flag=True, help="Remove the markdown too: of all projects, and your own.")
@click.option("--yes", is_flag=True, help="Do not ask; the markdown stays unless you say --everything.")
def uninstall_command(context: Context, keep_memory: bool, everything: bool, yes: bool) -> None:
    """Remove memkit from this machine: plugin, service, environment, model, index, archive, settings.

    The markdown of your projects and your own memory stay, unless you want them removed too. Says what goes
    and what stays, asks, and touches nothing that memkit did not make.

    \b
      memkit backup ~/memkit.tar.zst
      memkit uninstall
    """
    if keep_memory and everything:
        raise click.UsageError("give --keep-memory or --everything, not both")
    from memkit.capture.project_list import projects_with_memory
    from memkit.cli.log import stop_logging
    from memkit.doctor.claude_code import installed_names
    from memkit.maintenance.owned_files import belongings, check_home
    from memkit.maintenance.uninstall import uninstall

    check_home(context.home)
    elsewhere = _index_elsewhere(context)
    projects = projects_with_memory(context.home, [context.project])
    plugins = installed_names()

    def find() -> OwnedFiles:
        return belongings(context.home, projects, keep_memory=keep_memory, everything=everything)

    own = find()
    if not context.as_json:
        _show(own, plugins)
    confirm("Remove this?", yes)
    if projects and not (yes or keep_memory or everything) and _wants_no_memory(len(projects)):
        everything = True
        own = find()
    stop_logging()
    done = uninstall(context.home, plugins, own)
    left = [(str(path), why) for path, why in own.left] + elsewhere
    if context.as_json:
        context.print_json(
            {
                "removed": done.removed,
                "left": [{"path": path, "reason": why} for path, why in left],
                "problems": done.problems,
            }
        )
    else:
        click.echo("memkit is removed; sessions that are open keep its hooks until they end.")
        for path, why in left:
            click.echo(plain(f"left: {path} ({why})"))
    for line in done.problems:
        context.say(plain(line))
    if done.problems:
        raise MemkitError(f"{counted(len(done.problems), 'thing')} could not be removed")


def _index_elsewhere(context: Context) -> list[tuple[str, str]]:
    """An index outside of the home, which may hold more than memkit's."""
    try:
        uri = context.settings().index.uri
    except MemkitError as error:  # settings that cannot be read keep nobody from leaving
        context.say(str(error))
        return []
    return [(uri, "the index, by index.uri")] if uri else []


def _show(own: OwnedFiles, plugins: list[str]) -> None:
    click.echo("This is removed:")
    for line in [f"the plugin {name}" for name in plugins] + [str(path) for path in own.removed]:
        click.echo(plain(f"  {line}"))
    click.echo("This stays:")
    for path, why in own.left:
        click.echo(plain(f"  {path} ({why})"))


def _wants_no_memory(projects: int) -> bool:
    question = f"Remove the memory of {counted(projects, 'project')} as well? Nothing brings it back."
    return sys.stdin.isatty() and click.confirm(question, default=False, err=True)
