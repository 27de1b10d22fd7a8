"""`memkit backup`."""

from __future__ import annotations

from pathlib import Path

import click

from memkit.cli.context import Context, command, counted, plain, sized
from memkit.errors import BackupError

LOCK_SECONDS = 600.0


@command("backup")
@click.argument("file", type=click.Path(dir_okay=False), metavar="FILE.tar.zst")
@click.option("--yes", is_flag=True, help="Replace FILE if it is there.")
def backup_command(context: Context, file: str, yes: bool) -> None:
    """Put what cannot be made again into one file, readable by you alone.

    That is the memories of all projects and your own, the archive, settings, the ledger, what was forgotten
    and how far each session was read. The index and whatever else is derived is not in it.

    \b
      memkit backup ~/memkit.tar.zst
    """
    from memkit.capture.project_list import projects_with_memory
    from memkit.index.lock import index_lock
    from memkit.maintenance.backup import back_up
    from memkit.recall.ask import end_if_hung

    path = Path(file).absolute()
    if path.exists() and not yes:
        raise BackupError(f"{path} is there already; name another file, or --yes replaces it")
    end_if_hung(context.home, context.say)
    with index_lock(context.home, LOCK_SECONDS, context.say):
        projects = projects_with_memory(context.home, [context.project])
        report = back_up(context.home, projects, path)
    if context.as_json:
        context.print_json(
            {
                "file": str(path),
                "files": report.files,
                "bytes": report.bytes,
                "size": report.size,
                "projects": report.projects,
            }
        )
        return
    for root in report.projects:
        click.echo(plain(f"The memory of {root}"))
    click.echo(plain(f"{counted(report.files, 'file')} in {path} ({sized(report.size)})."))
