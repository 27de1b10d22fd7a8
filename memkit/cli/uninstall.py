"""`memkit uninstall`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import confirm, echo, user_agrees
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.maintenance.uninstall import OwnedFiles


@command("uninstall")
@click.option("--keep-memory", is_flag=True, help="Also keep archive, settings, and ledger.")
@click.option(
    "--everything", is_flag=True, help="Also remove the Markdown of all projects, and your own memory."
)
@click.option("--yes", is_flag=True, help="Do not ask; the Markdown stays unless you pass --everything.")
def uninstall_command(context: Context, keep_memory: bool, everything: bool, yes: bool) -> None:
    """Remove memkit from this machine: plugin, service, environment, model, index, archive, settings.

    The Markdown of your projects and your own memory stay, unless you pass --everything. The command shows
    what it would remove and what stays, and asks. It removes nothing that memkit did not make.

    \b
      memkit backup ~/memkit.tar.zst
      memkit uninstall
    """
    if keep_memory and everything:
        raise click.UsageError("give --keep-memory or --everything, not both")
    from memkit.capture.project_list import projects_with_memory
    from memkit.claude_code.installation import installed_names
    from memkit.cli.logs import stop_logging
    from memkit.maintenance.uninstall import check_home, find_owned_files, uninstall

    check_home(context.home)
    elsewhere = _index_elsewhere(context)
    projects = projects_with_memory(context.home, [context.project])
    plugins = installed_names()

    def find() -> OwnedFiles:
        return find_owned_files(context.home, projects, keep_memory=keep_memory, everything=everything)

    own = find()
    if not context.as_json:
        _show(own, plugins)
    confirm("Remove this?", yes)
    question = f"Also remove the memory of {plural(len(projects), 'project')}? This cannot be undone."
    if projects and not (yes or keep_memory or everything) and user_agrees(question):
        everything = True
        own = find()
    stop_logging()
    done = uninstall(context.home, plugins, own)
    kept = [(str(path), why) for path, why in own.kept] + elsewhere
    context.report(
        {
            "removed": done.removed,
            "left": [{"path": path, "reason": why} for path, why in kept],
            "problems": done.problems,
        },
        "memkit is removed; open sessions keep its hooks until they end.",
        *(f"not removed: {path} ({why})" for path, why in kept),
    )
    context.check(done.problems, f"{plural(len(done.problems), 'thing')} could not be removed")


def _index_elsewhere(context: Context) -> list[tuple[str, str]]:
    """Return an index outside of the home, which may hold data of other programs."""
    try:
        uri = context.settings().index.uri
    except MemkitError as error:  # broken settings must not prevent an uninstall
        context.say(str(error))
        return []
    return [(uri, "the index, by index.uri")] if uri else []


def _show(own: OwnedFiles, plugins: list[str]) -> None:
    echo("This would be removed:")
    for line in [f"the plugin {name}" for name in plugins] + [str(path) for path in own.removed]:
        echo(f"  {line}")
    echo("This stays:")
    for path, why in own.kept:
        echo(f"  {path} ({why})")
