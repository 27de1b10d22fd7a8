"""`memkit uninstall`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import confirm, echo, format_size, print_table, short_path
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from pathlib import Path

    from memkit.maintenance.uninstall import OwnedFiles


SHOWN_PATHS = 10
"""The number of paths that stay to show for one reason."""


@command("uninstall")
@click.option("--keep-memory", is_flag=True, help="Also keep archive, settings, and ledger.")
@click.option(
    "--everything", is_flag=True, help="Also remove the Markdown of all projects, and your own memory."
)
@click.option("--dry-run", is_flag=True, help="List every file that would be removed; remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask; the Markdown stays unless you pass --everything.")
def uninstall_command(
    context: Context, keep_memory: bool, everything: bool, dry_run: bool, yes: bool
) -> None:
    """Remove memkit from this machine: plugin, service, environment, model, index, archive, settings.

    The Markdown of your projects and your own memory stay, unless you pass --everything. The command shows
    what it would remove and what stays, and asks. It removes nothing that memkit did not make.

    \b
      memkit backup ~/memkit.tar.zst
      memkit uninstall --dry-run
      memkit uninstall
    """
    if keep_memory and everything:
        raise click.UsageError("give --keep-memory or --everything, not both")
    from memkit.agents.claude_code.installation import installed_names
    from memkit.agents.codex import installation as codex
    from memkit.capture.project_list import projects_with_memory
    from memkit.cli.log_file import stop_logging
    from memkit.ipc.stop import stop
    from memkit.maintenance.uninstall import check_home, find_owned_files, uninstall

    check_home(context.home)
    elsewhere = _index_elsewhere(context)
    projects = projects_with_memory(context.home, [context.project])
    plugins = installed_names()

    def find() -> OwnedFiles:
        found = find_owned_files(context.home, projects, keep_memory=keep_memory, everything=everything)
        found.kept.extend(elsewhere)
        found.kept.extend((path, "you edited what memkit wrote there") for path in codex.edited())
        return found

    own = find()
    if not context.as_json:
        parts = [("plugin", name) for name in plugins]
        parts += [("hooks and skill", "Codex")] if codex.is_installed() else []
        _show(context, own, parts, dry_run)
    if dry_run:
        if context.as_json:
            context.print_json({"removed": [], "would_remove": [str(path) for path in own.removed],
                                "left": _left(own), "problems": []})  # fmt: skip
        return
    if everything:
        confirm("Remove what is listed above, with all memories? This cannot be undone.", yes)
    else:
        confirm("Remove what is listed above? The Markdown of your projects stays.", yes)
    stop_logging()
    with context.progress("removing") as progress:
        stop(context.home)
        own = find()  # the service may have written since
        done = uninstall(context.home, plugins, own, progress)
    context.report(
        {"removed": done.removed, "left": _left(own), "problems": done.problems},
        "memkit is removed; open sessions keep its hooks until they end.",
    )
    context.check(done.problems, f"{plural(len(done.problems), 'thing')} could not be removed")


def _left(own: OwnedFiles) -> list[dict[str, str]]:
    return [{"path": str(path), "reason": why} for path, why in own.kept]


def _index_elsewhere(context: Context) -> list[tuple[Path | str, str]]:
    """Return an index outside of the home, which may hold data of other programs."""
    try:
        uri = context.settings().index.uri
    except MemkitError as error:  # broken settings must not prevent an uninstall
        context.say(str(error))
        return []
    return [(uri, "the index, by index.uri")] if uri else []


def _show(context: Context, own: OwnedFiles, parts: list[tuple[str, str]], in_full: bool) -> None:
    from memkit.maintenance.uninstall import group_files

    with context.progress("counting files", is_counted=False):
        groups = group_files(context.home, own)
    be = "would be" if in_full else "will be"
    echo(f"This {be} removed from {short_path(context.home.root)} and your agents:")
    rows = [(*part, "") for part in parts]
    rows += [(one.name, plural(one.files, "file"), format_size(one.bytes)) for one in groups]
    print_table([(f"  {name}", count, size) for name, count, size in rows], numbers=(1, 2))
    if in_full:
        echo("These are the files and directories:")
        for path in own.removed:
            echo(f"  {short_path(str(path))}")
    reasons: dict[str, list[str]] = {}
    for kept, why in own.kept:
        reasons.setdefault(why, []).append(short_path(str(kept)))
    for why, paths in reasons.items():
        echo(f"This stays ({why}):")
        shown = paths if in_full else paths[:SHOWN_PATHS]
        for place in shown:
            echo(f"  {place}")
        if len(paths) > len(shown):
            echo(f"  … and {len(paths) - len(shown)} more; --dry-run lists all")
