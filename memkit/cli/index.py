"""`memkit index`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plural
from memkit.errors import IndexBusyError, IndexStoreError, MemkitError

if TYPE_CHECKING:
    from memkit.index import SyncReport

LOCK_SECONDS = 600.0


@command("index")
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH…]")
@click.option(
    "--drop", multiple=True, metavar="PATH", help="Stop indexing a path that was added before."
)
@click.option("--rebuild", is_flag=True, help="Build a new index from the Markdown.")
def index_command(
    context: Context, paths: tuple[str, ...], drop: tuple[str, ...], rebuild: bool
) -> None:
    """Update the index to match the Markdown: add new text, remove deleted text.

    Unchanged text costs nothing. Each PATH, a Markdown file or a directory of them, is added to this
    project's memory permanently.

    \b
      memkit index
      memkit index docs/decisions notes.md
      memkit index --drop docs/decisions
      memkit index --rebuild
    """
    from memkit.index.memory_files import change_paths

    if paths or drop:
        change_paths(context.home, context.project, add=paths, drop=drop)
    print_report(context, index_project(context, rebuild=rebuild))


def index_project(context: Context, *, rebuild: bool = False) -> SyncReport:
    """Update the index of the context's project, in the service if it is running."""
    report = None if rebuild else _by_service(context)
    return index_here(context, rebuild=rebuild) if report is None else report


def print_report(context: Context, report: SyncReport) -> None:
    """Print the report of a pass. Raise `MemkitError` if memory files could not be read."""
    if context.as_json:
        context.print_json(dataclasses.asdict(report))
    else:
        click.echo(
            f"{plural(report.chunks, 'chunk')} of {plural(report.files, 'file')}: "
            f"{report.added} added, {report.deleted} deleted, {report.embedded} embedded."
        )
        for source, count in report.replaced.items():
            context.say(f"{source}: {plural(count, 'byte')} not UTF-8, read as \ufffd")
        if report.missing:
            context.say(f"{plural(report.missing, 'chunk')} not embedded: {report.degraded}")
    if report.unreadable:
        raise MemkitError(f"{'; '.join(report.unreadable)}; the index keeps the text it has of it")


def _by_service(context: Context) -> SyncReport | None:
    """Let the service update the index; return None if there is no service."""
    import msgspec

    from memkit.index import SyncReport
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall.client import ask_service

    project, home, settings = context.project, context.home, context.settings()
    try:
        found = ask_service(project, home, settings, "index", {}, LOCK_SECONDS, context.say)
    except ServiceUnavailable:
        return None
    return msgspec.convert(found, SyncReport)


def index_here(
    context: Context, *, rebuild: bool = False, wait_seconds: float | None = None
) -> SyncReport:
    """Update the index in this process.

    Raise `IndexBusyError` if another process holds the lock for `wait_seconds`, by default `LOCK_SECONDS`.
    """
    from memkit.cli.output import counting
    from memkit.index import index_lock, sync_project

    project, home, settings = context.project, context.home, context.settings()
    wait_seconds = LOCK_SECONDS if wait_seconds is None else wait_seconds
    try:
        with (
            index_lock(home, wait_seconds, context.say),
            counting(context, "embedding") as progress,
        ):
            return sync_project(
                project, home, settings, rebuild=rebuild, announce=context.say, progress=progress
            )
    except IndexBusyError:
        raise
    except IndexStoreError as error:
        if home.root in str(error):
            raise
        # The database reports a full disk without naming it.
        raise IndexStoreError(f"{home.index}: {error}") from error
