"""`memkit watch`."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from memkit.cli import unexpected
from memkit.cli.context import Context, command
from memkit.cli.index import LOCK_SECONDS, print_report
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.service.watcher import Watcher

logger = logging.getLogger(__name__)


@command("watch")
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH…]")
def watch_command(context: Context, paths: tuple[str, ...]) -> None:
    """Index now, and again whenever the memory changes, until Ctrl-C. For use without the plugin.

    Prints a line for each pass, with --json an object. Adds each PATH, a Markdown file or a directory of
    them, to this project's memory permanently.

    \b
      memkit watch
      memkit watch docs/decisions
    """
    from memkit.index.memory_files import change_paths
    from memkit.service.watcher import Watcher

    if paths:
        change_paths(context.home, context.project, add=paths)
    has_changed = threading.Event()
    with _until_interrupted():
        watcher = Watcher(lambda root: has_changed.set())
        try:
            # Watch first, then index: a change in between is reported.
            count = watcher.watch_memory(context.project, context.home, context.settings())
            context.say(
                f"watching {plural(count, 'path')} of {context.project.root}; press Ctrl-C to stop"
            )
            while True:
                _try_to_index(context, watcher)
                has_changed.wait()
                has_changed.clear()
        finally:
            watcher.close()


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """Run the block until it ends, or until SIGINT or SIGTERM ends it without an error."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: object) -> None:
    # A second one would interrupt the cleanup.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _try_to_index(context: Context, watcher: Watcher) -> None:
    """Index once. Report an error in one line."""
    try:
        watcher.watch_memory(context.project, context.home, context.settings())
        _index(context)
    except BrokenPipeError:  # the reader of the lines has exited
        raise
    except MemkitError as error:
        logger.warning("not indexed: %s", error)
        context.say(str(error))
    except Exception as error:  # noqa: BLE001 - the next pass may succeed
        context.say(unexpected(error))


def _index(context: Context) -> None:
    from memkit.cli.output import counting
    from memkit.index import index_lock, sync_project

    project, home, settings = context.project, context.home, context.settings()
    with index_lock(home, LOCK_SECONDS, context.say), counting(context, "embedding") as progress:
        report = sync_project(project, home, settings, announce=context.say, progress=progress)
    print_report(context, report)
