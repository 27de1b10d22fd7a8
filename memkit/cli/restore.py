"""`memkit restore`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import confirm, plain, plural
from memkit.errors import MemkitError, NotFoundError

if TYPE_CHECKING:
    from memkit.maintenance.restore import Restore, RestoreReport

LOCK_SECONDS = 600.0


@command("restore")
@click.argument("file", type=click.Path(), metavar="FILE.tar.zst")
@click.option("--force", is_flag=True, help="Also replace files that differ; the archive keeps a copy.")
@click.option("--move", nargs=2, multiple=True, metavar="OLD NEW", help="The project at OLD is at NEW now.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore_command(
    context: Context, file: str, force: bool, move: tuple[tuple[str, str], ...], yes: bool
) -> None:
    """Restore a backup, after checking all of it.

    Missing files are written. An existing file that differs stays, unless you give --force. What was
    forgotten, before the backup or since, stays forgotten. Settings that change what is kept, where it goes,
    or what is spent are shown and confirmed separately; --yes skips them.

    The memory of a project whose directory is gone goes to `MEMKIT_HOME/projects`, or to --project PATH if
    it is the only one, or to where --move says. The next search or `memkit index` updates the index.

    \b
      memkit restore ~/memkit.tar.zst
      memkit restore ~/memkit.tar.zst --move /old/shop ~/shop
    """
    from memkit.index import index_lock
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
        raise MemkitError("some forgotten text is back; fix these problems, and run `memkit forget`")


def _restore_settings(context: Context, found: Restore, yes: bool) -> bool:
    """Show settings that change where data goes, and ask whether to restore them."""
    if not found.settings or yes:
        return False
    context.say("The backup's settings change what is kept, where it goes, or what is spent:")
    for line in found.settings:
        context.say(plain(f"  {line}"))
    return click.confirm("Restore these settings too?", default=False, err=True)


def _moved(
    context: Context, roots: Sequence[str], gone: Sequence[str], move: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Return the present roots of moved projects, by their roots in the backup."""
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
                "use `--move OLD NEW` for each"
            )
        moved[rest[0]] = context.project.root
    return moved


def _show(found: Restore, force: bool) -> None:
    for named, project in zip(found.header.projects, found.projects, strict=True):
        to = "" if named.root == project.root else f" to {project.root}"
        click.echo(plain(f"The memory of {named.root}{to}"))
    for path in found.added_paths:
        click.echo(plain(f"Markdown that would be indexed as well: {path}"))
    count = Counter(step.state for step in found.steps)
    what = "would be replaced, with a copy in the archive" if force else "stay as they are"
    click.echo(
        f"{plural(count['new'], 'file')} to write; {count['same']} exist; "
        f"{count['differs']} differ and {what}."
    )


def _print(context: Context, report: RestoreReport) -> None:
    if context.as_json:
        context.print_json(
            {
                "written": report.written,
                "same": report.same,
                "replaced": report.replaced,
                "left": report.skipped,
                "kept_in": report.kept_in or None,
                "left_settings": report.skipped_settings,
                "projects": report.projects,
            }
        )
        return
    click.echo(f"{plural(report.written, 'file')} written.")
    if report.replaced:
        click.echo(plain(f"Copies of the replaced files are in {report.kept_in}"))
    for path in report.skipped:
        click.echo(plain(f"not replaced, because it differs: {path}"))
    if report.skipped_settings:
        click.echo("The settings were not restored. Run restore without --yes to change these:")
        for line in report.skipped_settings:
            click.echo(plain(f"  {line}"))
