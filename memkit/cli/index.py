"""`memkit index` and `memkit watch`: keep the index up to date with the Markdown."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
from contextlib import closing
from pathlib import Path

import click

from memkit.cli import unexpected
from memkit.cli.context import Context, command
from memkit.cli.output import echo
from memkit.errors import MemkitError
from memkit.text import plural

logger = logging.getLogger(__name__)


@command("index")
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH…]")
@click.option("--drop", multiple=True, metavar="PATH", help="Stop indexing a path that you added before.")
@click.option("--rebuild", is_flag=True, help="Build a new index from the Markdown.")
def index_command(context: Context, paths: tuple[str, ...], drop: tuple[str, ...], rebuild: bool) -> None:
    """Update the index to match the Markdown: add new text, remove deleted text.

    Unchanged text costs nothing. Each PATH, a Markdown file or a directory of them, is added to this
    project's memory permanently.

    \b
      memkit index
      memkit index docs/decisions notes.md
      memkit index --drop docs/decisions
      memkit index --rebuild
    """
    _change_paths(context, paths, drop)
    _index(context, rebuild=rebuild)


def _change_paths(context: Context, paths: tuple[str, ...], drop: tuple[str, ...] = ()) -> None:
    """Change what is indexed. What a session adds is in its project: a search needs no permission."""
    from memkit.index.memory_files import change_paths

    root = os.path.realpath(context.project.root)
    context.stay_in_project(any(not Path(one).resolve().is_relative_to(root) for one in paths))
    if paths or drop:
        change_paths(context.home, context.project, add=paths, drop=drop)


@command("watch")
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH…]")
def watch_command(context: Context, paths: tuple[str, ...]) -> None:
    """Index now, and again whenever the memory changes, until Ctrl-C. For use without the plugin.

    Prints one line per pass (one JSON object with --json). Adds each PATH, a Markdown file or a directory of
    them, to this project's memory permanently.

    \b
      memkit watch
      memkit watch docs/decisions
    """
    from memkit.service.watcher import memory_changes

    _change_paths(context, paths)
    is_first = True
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    # Closed here: left to the garbage collector, its thread could outlive the interpreter.
    with closing(memory_changes(context.project, context.home, context.settings())) as changes:
        try:
            for count in changes:
                if is_first:
                    paths_watched = f"{plural(count, 'path')} of {context.project.root}"
                    context.say(f"watching {paths_watched}; press Ctrl-C to stop")
                is_first = False
                _try_to_index(context)
        except KeyboardInterrupt:
            pass


def _index(context: Context, *, rebuild: bool = False) -> None:
    """Index, and print the report. Raise `MemkitError` if memory files could not be read."""
    with context.progress("embedding") as progress:
        report = context.memory().index(rebuild=rebuild, progress=progress)
    if context.as_json:
        context.print_json(dataclasses.asdict(report))
    else:
        echo(
            f"{plural(report.chunks, 'chunk')} of {plural(report.files, 'file')}: "
            f"{report.added} added, {report.deleted} deleted, {report.embedded} embedded."
        )
        for source, count in report.replaced.items():
            context.say(f"{source}: {plural(count, 'byte')} not valid UTF-8, read as \ufffd")
        if report.missing:
            context.say(f"{plural(report.missing, 'chunk')} not embedded: {report.degraded}")
        if report.away:
            context.say(report.away)
    if report.unreadable:
        raise MemkitError(f"{'; '.join(report.unreadable)}; the index keeps what it had of them")


def _interrupt(number: int, frame: object) -> None:
    # A second one would interrupt the cleanup.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _try_to_index(context: Context) -> None:
    try:
        _index(context)
    except BrokenPipeError:  # the reader of the lines has exited
        raise
    except MemkitError as error:
        logger.warning("not indexed: %s", error)
        context.say(str(error))
    except Exception as error:  # noqa: BLE001 - the next pass may succeed
        context.say(unexpected(error))
