"""`memkit watch`, in a process of its own."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from memkit.index import index_lock
from tests.ci import only_in_ci
from tests.cli.conftest import environment
from tests.memory import DAYS, Memory, make_memory

GENEROUS_SECONDS = 60.0


class Watching:
    """The running command, and the lines it prints."""

    def __init__(self, memory: Memory, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memkit", "watch", *arguments],
            cwd=memory.project.root,
            env=environment(memory, MEMKIT_EMBEDDING_PROVIDER="none"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.output = _lines(self.process.stdout)
        self.errors = _lines(self.process.stderr)

    def line(self) -> str:
        return self.output.get(timeout=GENEROUS_SECONDS)

    def error(self, wanted: str) -> str:
        """The next line on stderr that has `wanted` in it."""
        while wanted not in (line := self.errors.get(timeout=GENEROUS_SECONDS)):
            assert line
        return line

    def end(self, number: int) -> tuple[int, str]:
        """Stop it; its status, and what else it wrote to stderr."""
        self.process.send_signal(number)
        status = self.process.wait(GENEROUS_SECONDS)
        return status, "".join(iter(self.errors.get, ""))


def _lines(stream: IO[str] | None) -> queue.SimpleQueue[str]:
    assert stream is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        with stream:
            for line in stream:
                lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS)


@pytest.fixture
def watch(memory: Memory) -> Iterator[Callable[..., Watching]]:
    started = []

    def start(*arguments: str) -> Watching:
        started.append(Watching(memory, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def test_a_line_for_each_change_until_it_is_ended(
    memory: Memory, watch: Callable[..., Watching]
) -> None:
    watching = watch()
    assert watching.line() == "6 chunks of 3 files: 6 added, 0 deleted, 0 embedded.\n"
    assert "watching 1 path of" in watching.error("watching")
    memory.path("2026-11-20.md").unlink()
    assert watching.line() == "5 chunks of 2 files: 0 added, 1 deleted, 0 embedded.\n"
    memory.write("new.md", "# New\n\n" + "zebra " * 30)
    assert watching.line() == "6 chunks of 3 files: 1 added, 0 deleted, 0 embedded.\n"
    status, errors = watching.end(signal.SIGINT)
    assert status == 0
    assert "Traceback" not in errors
    assert watching.output.get(timeout=GENEROUS_SECONDS) == ""


def test_watch_can_end_during_a_pass(memory: Memory, watch: Callable[..., Watching]) -> None:
    with index_lock(memory.home, 5.0):
        watching = watch()
        watching.error("waiting for another memkit process")
        status, errors = watching.end(signal.SIGTERM)
    assert (status, errors) == (0, "")


@only_in_ci
def test_an_error_is_one_line_and_watching_continues(
    memory: Memory, watch: Callable[..., Watching]
) -> None:
    Path(memory.home.root).mkdir(parents=True)
    Path(memory.home.index).write_text("in the way")
    watching = watch()
    assert watching.error("cannot write the index").startswith("memkit: ")
    Path(memory.home.index).unlink()
    memory.write("new.md", "# New\n\n" + "zebra " * 30)
    assert watching.line() == "7 chunks of 4 files: 7 added, 0 deleted, 0 embedded.\n"
    status, errors = watching.end(signal.SIGTERM)
    assert status == 0, errors
