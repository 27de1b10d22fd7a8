"""`memkit restore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, confirm, counted, plain
from memkit.errors import MemkitError, NotFoundError

if TYPE_CHECKING:
    from memkit.maintenance.restore import Restore, RestoreReport

LOCK_SECONDS = 600.0


@command("restore")
@click.argument("file", type=click.Path(), metavar="FILE.tar.zst")
@click.option("--force", is_flag=True, help="Also replace files that differ; they are kept in the archive.")
@click.option(
    "--move", nargs=2, multiple=True, metavar="OLD NEW", help="The project at OLD lies at NEW now."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore_command(
    context: Context, file: str, force: bool, move: tuple[tuple[str, str], ...], yes: bool
) -> None:
    """Bring back what a backup holds, after checking all of it.

    What is missing is written; a file that is there and differs stays, unless you say --force. What was
    forgotten since, or before, stays forgotten. Settings that change what is kept, where it goes, or what is
    spent are shown and asked for separately; with --yes they are left out. The memory
    of a project whose directory is gone goes to `MEMKIT_HOME/projects`, or to --project PATH if it is the
    only one, or to where --move says. The index follows with the next search or `memkit index`.

    \b
      memkit restore ~/memkit.tar.zst
      memkit restore ~/memkit.tar.zst --move /old/shop ~/shop
    """
    from memkit.index.lock import index_lock
    from memkit.ipc.stop import stop_hung_service
    from memkit.llm.calls import calls_lock
    from memkit.maintenance.restore import open_backup

    stop_hung_service(context.home, context.say)  # it may hold the lock of model calls
    with (
        calls_lock(context.home, LOCK_SECONDS),
        index_lock(context.home, LOCK_SECONDS, context.say),
        open_backup(context.home, Path(file)) as found,
    ):
        moved = _moved(context, [one.root for one in found.header.projects], found.gone, move)
        found.move(moved)
        if not context.as_json:
            _show(found, force)
        confirm("Restore?", yes)
        with_settings = _restore_settings(context, found, yes)
        # The settings of the backup, if there were none here, hold for its memories too.
        report = found.apply(
            force=force,
            with_settings=with_settings,
            settings_of=context.settings_of,
            announce=context.say,
        )
    _print(context, report)
    for line in report.problems:
        context.say(plain(line))
    if report.problems:
        raise MemkitError("something that was forgotten is there again; mend that, and run `memkit forget`")


def _restore_settings(context: Context, found: Restore, yes: bool) -> bool:
    """Whether to restore settings that change where data goes: a person is asked, after seeing them."""
    if not found.settings or yes:
        return False
    context.say("The backup's settings change what is kept, where it goes, or what is spent:")
    for line in found.settings:
        context.say(plain(f"  {line}"))
    return click.confirm("Restore these settings too?", default=False, err=True)


def _moved(
    context: Context, roots: Sequence[str], gone: Sequence[str], move: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Where projects of the backup lie now, by their roots."""
    moved = dict(move)
    for old, new in moved.items():
        if old not in roots:
            raise NotFoundError(f"the backup holds no project at {old}; it holds {', '.join(roots)}")
        if not Path(new).is_dir():
            raise NotFoundError(f"no such directory: {new}")
    if context.names_project:
        rest = [root for root in gone if root not in moved]
        if len(rest) != 1:
            which = ", ".join(rest) or "none"
            raise MemkitError(
                f"--project takes the one project whose directory is gone; gone are: {which}; "
                "`--move OLD NEW` says which is where"
            )
        moved[rest[0]] = context.project.root
    return moved


def _show(found: Restore, force: bool) -> None:
    for named, project in zip(found.header.projects, found.projects, strict=True):
        to = "" if named.root == project.root else f" to {project.root}"
        click.echo(plain(f"The memory of {named.root}{to}"))
    for path in found.added_paths:
        click.echo(plain(f"Markdown to be indexed as well: {path}"))
    count = {"new": 0, "same": 0, "differs": 0}
    for step in found.steps:
        count[step.state] += 1
    what = "are replaced, and kept in the archive" if force else "stay as they are"
    click.echo(
        f"{counted(count['new'], 'file')} to write; {count['same']} are there; "
        f"{count['differs']} differ and {what}."
    )


def _print(context: Context, report: RestoreReport) -> None:
    if context.as_json:
        context.print_json(
            {
                "written": report.written,
                "same": report.same,
                "replaced": report.replaced,
                "left": report.left,
                "kept_in": report.kept_in or None,
                "left_settings": report.left_settings,
                "projects": report.projects,
            }
        )
        return
    click.echo(f"{counted(report.written, 'file')} written.")
    if report.replaced:
        click.echo(plain(f"What they replaced is in {report.kept_in}"))
    for path in report.left:
        click.echo(plain(f"differs, and stays: {path}"))
    if report.left_settings:
        click.echo("The settings were left out; without --yes, restore asks for them. They would change:")
    for line in report.left_settings:
        click.echo(plain(f"  {line}"))
