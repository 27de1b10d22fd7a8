"""`memkit watch`."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.cli import unexpected
from memkit.cli.context import Context, command, counted
from memkit.cli.index import LOCK_SECONDS, print_report
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from memkit.service.watcher import Watcher

logger = logging.getLogger(__name__)


@command("watch")
@click.argument("paths", nargs=-1, type=click.Path(exists=True), metavar="[PATH…]")
def watch_command(context: Context, paths: tuple[str, ...]) -> None:
    """Index now, and again whenever the memory changes, until Ctrl-C. For use without the plugin.

    Prints a line, or with --json an object, for each time. Each PATH, a markdown file or a directory
    of them, becomes a part of this project's memory and stays one.

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
        watcher = Watcher(lambda root: has_changed.set(), say=context.say)
        try:
            # First watch, then index: what changes in between is told.
            count = _watch(context, watcher)
            context.say(
                f"watching {counted(count, 'path')} of {context.project.root}; Ctrl-C ends it"
            )
            while True:
                _try_to_index(context, watcher)
                has_changed.wait()
                has_changed.clear()
        finally:
            watcher.close()


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """Runs what is in it until SIGINT or SIGTERM, which end it as if it were done."""
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
    # Once is enough: a second one would disturb the closing.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _watch(context: Context, watcher: Watcher) -> int:
    """Watch what the memory consists of by the settings as they are now; how many paths that is."""
    from memkit.index.memory_files import memory_paths

    settings = context.settings()
    paths = memory_paths(context.project, context.home, settings)
    watcher.watch(context.project.root, list(map(Path, paths)), exclude=settings.memory.exclude)
    return len(paths)


def _try_to_index(context: Context, watcher: Watcher) -> None:
    """Index once; an error is said in a line."""
    try:
        _watch(context, watcher)
        _index(context)
    except BrokenPipeError:  # whoever read the lines has left
        raise
    except MemkitError as error:
        logger.warning("not indexed: %s", error)
        context.say(str(error))
    except Exception as error:  # noqa: BLE001 - the next change may find it mended
        context.say(unexpected(error))


def _index(context: Context) -> None:
    from memkit.cli.progress import counting
    from memkit.index import index_lock, sync_project
    from memkit.recall.ask import end_if_hung

    project, home, settings = context.project, context.home, context.settings()
    end_if_hung(home, context.say)
    with index_lock(home, LOCK_SECONDS, context.say), counting(context, "embedding") as progress:
        report = sync_project(project, home, settings, announce=context.say, progress=progress)
    print_report(context, report)
