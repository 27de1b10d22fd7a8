"""Progress on stderr, where there is a terminal to show it on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memkit.cli.context import Context


@contextmanager
def counting(context: Context, what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that takes how many are done and of how many, and shows a bar.

    Nothing is shown with `--json`, or where stderr is no terminal.
    """
    if context.as_json or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def reading(context: Context, what: str, size: int) -> Iterator[Callable[[int], None]]:
    """A function that takes how many of `size` bytes are read, and shows a bar with rate and time left.

    Nothing is shown with `--json`, or where stderr is no terminal.
    """
    if context.as_json or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=size)
        yield lambda done: bar.update(task, completed=done)
