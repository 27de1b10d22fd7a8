"""The writer: each task once, in order, under its lock, and none after `stop`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from memkit.errors import IndexBusyError
from memkit.index import index_lock, merge
from memkit.processes import is_locked
from memkit.service import writer as writer_module
from memkit.service.writer import Writer
from tests.memory import DAYS, Memory, make_memory
from tests.service.running import wait_until


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS, embedding={"provider": "none"})


@pytest.fixture
def writer(memory: Memory) -> Iterator[Writer]:
    made = Writer(
        memory.home, lambda project: memory.settings, lambda chosen: (None, "none is wanted")
    )
    yield made
    made.stop()
    assert made.join(30)


def test_a_waiting_task_is_not_queued_twice(memory: Memory, writer: Writer) -> None:
    begin, done = threading.Event(), list[str]()
    first = writer.passes.submit("first", lambda: begin.wait(30))
    wait_until(lambda: writer.is_busy, "the first to begin")
    again = [writer.passes.submit("second", lambda: done.append("second")) for _ in range(5)]
    other = writer.passes.submit("third", lambda: done.append("third"))
    assert len(set(again)) == 1
    assert writer.length == 2
    # What is running may have looked before the change: it is asked for once more.
    assert writer.passes.submit("first", lambda: done.append("first again")) is not first
    begin.set()
    other.result(30)
    wait_until(lambda: writer.length == 0 and not writer.is_busy, "the rest")
    assert done == ["second", "third", "first again"]


def test_the_lock_is_held_during_work_and_then_released(
    memory: Memory, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "HOLD_SECONDS", 0.05)
    assert writer.passes.submit("look", lambda: is_locked(memory.home.index_lock)).result(30)
    wait_until(lambda: not is_locked(memory.home.index_lock), "the lock to be given back")
    report = writer.index(memory.project.root).result(30)
    assert (report.chunks, report.missing) == (6, 6)
    with index_lock(memory.home, 30):
        pass


def test_a_failed_task_does_not_affect_the_next(memory: Memory, writer: Writer) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        writer.passes.submit("bad", fail).result(30)
    assert writer.passes.submit("good", lambda: 5).result(30) == 5


def test_another_process_that_writes(
    memory: Memory, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "WAIT_SECONDS", 0.1)
    with index_lock(memory.home, 5), pytest.raises(IndexBusyError):
        writer.index(memory.project.root).result(30)
    assert writer.index(memory.project.root).result(30).chunks == 6


def test_segments_merge_after_what_waits(memory: Memory, writer: Writer) -> None:
    writer.index(memory.project.root).result(30)
    for number in range(merge.FACTOR - 2):
        memory.write(f"{number}.md", f"# Note {number}\n\nText.\n")
        writer.index(memory.project.root, soon=True).result(30)
    assert len(memory.snapshot.segments) == merge.FACTOR - 1
    before = memory.snapshot.chunks()
    begin, seen = threading.Event(), list[int]()
    memory.write("last.md", "# Last\n\nText.\n")
    first = writer.passes.submit("first", lambda: begin.wait(30))
    indexed = writer.index(memory.project.root, soon=True)
    turn = writer.passes.submit("turn", lambda: seen.append(len(memory.snapshot.segments)))
    begin.set()
    assert first.result(30)
    assert indexed.result(30).added == 1
    turn.result(30)
    assert seen == [merge.FACTOR]
    wait_until(lambda: writer.length == 0 and not writer.is_busy, "the merge")
    assert len(memory.snapshot.segments) == 1
    assert len(memory.snapshot.chunks()) == len(before) + 1


def test_stop(memory: Memory, writer: Writer) -> None:
    begin = threading.Event()
    first = writer.passes.submit("first", lambda: begin.wait(30))
    wait_until(lambda: writer.is_busy, "the first to begin")
    second = writer.passes.submit("second", lambda: 5)
    writer.stop()
    with pytest.raises(CancelledError):
        second.result(30)
    assert writer.passes.submit("third", lambda: 5).cancelled()
    begin.set()
    assert first.result(30)
    assert writer.join(30)
    assert not is_locked(memory.home.index_lock)
