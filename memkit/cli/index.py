"""`memkit index`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, counted
from memkit.errors import IndexBusyError, IndexStoreError, MemkitError

if TYPE_CHECKING:
    from memkit.index.sync import SyncReport

LOCK_SECONDS = 600.0


@command("index")
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH…]")
@click.option(
    "--drop", multiple=True, metavar="PATH", help="Stop indexing a path that was added this way."
)
@click.option("--rebuild", is_flag=True, help="Start from nothing: the index is derived.")
def index_command(
    context: Context, paths: tuple[str, ...], drop: tuple[str, ...], rebuild: bool
) -> None:
    """Bring the index into step with the markdown: new text in, deleted text out.

    Unchanged text costs nothing. Each PATH, a markdown file or a directory of them, becomes a part of
    this project's memory and stays one.

    \b
      memkit index
      memkit index docs/decisions notes.md
      memkit index --drop docs/decisions
      memkit index --rebuild
    """
    from memkit.index.paths import change_paths

    if paths or drop:
        change_paths(context.home, context.project, add=paths, drop=drop)
    print_report(context, index_project(context, rebuild=rebuild))


def index_project(context: Context, *, rebuild: bool = False) -> SyncReport:
    """Bring the index of the context's project into step, by the service if it is there."""
    report = None if rebuild else _by_service(context)
    return index_here(context, rebuild=rebuild) if report is None else report


def print_report(context: Context, report: SyncReport) -> None:
    """Print what a pass of indexing did."""
    if context.as_json:
        context.print_json(dataclasses.asdict(report))
        _fail_if_unreadable(report)
        return
    click.echo(
        f"{counted(report.chunks, 'chunk')} of {counted(report.files, 'file')}: {report.added} added, "
        f"{report.deleted} deleted, {report.embedded} embedded."
    )
    _warn(context, report)
    _fail_if_unreadable(report)


def _by_service(context: Context) -> SyncReport | None:
    """What the service did; None if it is not there to do it."""
    import msgspec

    from memkit.index.sync_report import SyncReport
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall.ask import ask_service

    try:
        found = ask_service(
            context.project,
            context.home,
            context.settings(),
            "index",
            {},
            LOCK_SECONDS,
            context.say,
        )
    except ServiceUnavailable:
        return None
    return msgspec.convert(found, SyncReport)


def index_here(
    context: Context, *, rebuild: bool = False, wait_seconds: float | None = None
) -> SyncReport:
    """Bring the index into step in this process.

    Raises `IndexBusyError` if another has the lock for `wait_seconds`, by default `LOCK_SECONDS`.
    """
    wait_seconds = LOCK_SECONDS if wait_seconds is None else wait_seconds
    from memkit.cli.progress import counting
    from memkit.index.lock import index_lock
    from memkit.index.sync import sync_project

    settings = context.settings()
    try:
        with (
            index_lock(context.home, wait_seconds, context.say),
            counting(context, "embedding") as progress,
        ):
            return sync_project(
                context.project,
                context.home,
                settings,
                rebuild=rebuild,
                announce=context.say,
                progress=progress,
            )
    except IndexBusyError:
        raise
    except IndexStoreError as error:
        if context.home.root in str(error):
            raise
        # The database says that a disk is full, but not which.
        raise IndexStoreError(f"{context.home.index}: {error}") from error


def _fail_if_unreadable(report: SyncReport) -> None:
    if report.unreadable:
        raise MemkitError(f"{'; '.join(report.unreadable)}; what the index has of it is kept")


def _warn(context: Context, report: SyncReport) -> None:
    for source, count in report.replaced.items():
        context.say(f"{source}: {counted(count, 'byte')} no UTF-8, read as \ufffd")
    if report.missing:
        context.say(f"{counted(report.missing, 'chunk')} not embedded: {report.degraded}")
