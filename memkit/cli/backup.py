"""`memkit backup`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from memkit.cli.context import Context, command
from memkit.cli.output import format_size, plain, plural
from memkit.errors import MemkitError

LOCK_SECONDS = 600.0


@command("backup")
@click.argument("file", type=click.Path(dir_okay=False), metavar="FILE.tar.zst")
@click.option("--yes", is_flag=True, help="Replace FILE if it exists.")
def backup_command(context: Context, file: str, yes: bool) -> None:
    """Write everything that memkit cannot rebuild to one file that only you can read.

    That is the memories of all projects and your own, the archive, the settings, the ledger, the record of
    what was forgotten, and the session states. The index and other derived files are not in it.

    \b
      memkit backup ~/memkit.tar.zst
    """
    from memkit.capture.project_list import projects_with_memory
    from memkit.index import index_lock
    from memkit.maintenance.backup import back_up

    path = Path(file).absolute()
    if path.exists() and not yes:
        raise MemkitError(f"{path} exists; name another file, or --yes replaces it")
    with index_lock(context.home, LOCK_SECONDS, context.say):
        projects = projects_with_memory(context.home, [context.project])
        report = back_up(context.home, projects, path)
    if context.as_json:
        context.print_json({"file": str(path), **dataclasses.asdict(report)})
        return
    for root in report.projects:
        click.echo(plain(f"The memory of {root}"))
    click.echo(plain(f"{plural(report.files, 'file')} in {path} ({format_size(report.size)})."))
