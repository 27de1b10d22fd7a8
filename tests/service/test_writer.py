"""The writer: each task once, in order, under its lock, and none after `stop`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from memkit.errors import IndexBusyError
from memkit.index import Indexer, index_lock, merge, sync
from memkit.index.mirror import read_copied
from memkit.ipc import spool, unindexed
from memkit.processes import is_locked
from memkit.service import writer as writer_module
from memkit.service.writer import Writer
from tests.builders import SESSION, Lines
from tests.memory import DAYS, Memory, make_memory
from tests.service.running import wait_until


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS, embedding={"provider": "none"})


@pytest.fixture
def writer(memory: Memory) -> Iterator[Writer]:
    made = Writer(memory.home, lambda project: memory.settings, lambda chosen: (None, "none is wanted"))
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


def test_the_lock_is_held_during_work_and_then_released(memory: Memory, writer: Writer) -> None:
    assert writer.passes.submit("look", lambda: is_locked(memory.home.index_lock)).result(30)
    wait_until(lambda: not is_locked(memory.home.index_lock), "the lock to be given back")
    report = writer.index(memory.project.root).result(30)
    assert (report.chunks, report.missing) == (6, 6)
    with index_lock(memory.home, 30):
        pass


def test_chroma_gets_the_changes_before_the_service_exits(memory: Memory, writer: Writer) -> None:
    writer.index(memory.project.root).result(30)
    place = memory.snapshot.directory
    assert read_copied(place) is None
    assert not writer.copy()  # not due yet
    assert writer.copy(everything=True)
    wait_until(lambda: read_copied(place), "the copy")
    wait_until(lambda: not writer.length and not writer.is_busy, "the task to end")
    assert not writer.copy(everything=True)


def test_a_failed_task_does_not_affect_the_next(memory: Memory, writer: Writer) -> None:
    with pytest.raises(ZeroDivisionError):
        writer.passes.submit("bad", lambda: 1 // 0).result(30)
    assert writer.passes.submit("good", lambda: 5).result(30) == 5


def test_another_process_that_writes(memory: Memory, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
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


class Turns:
    """Turns of a session that ended, one event each."""

    def __init__(self, memory: Memory, directory: Path) -> None:
        self.memory = memory
        self.transcript = directory / f"{SESSION}.jsonl"
        self.lines = Lines(SESSION)

    def end(self, word: str) -> None:
        self.lines.prompt(f"What about {word}?").answer(f"The {word} is known.")
        self.transcript.write_text(self.lines.text)
        root = self.memory.project.root
        event = {"event": "SessionEnd", "session": SESSION, "transcript": str(self.transcript)}
        spool.put(self.memory.home, {**event, "project": root, "cwd": root, "time": time.time()})

    @property
    def markdown(self) -> str:
        return "".join(path.read_text() for path in Path(self.memory.project.memory).glob("*.md"))


@pytest.fixture
def turns(memory: Memory, tmp_path: Path) -> Turns:
    return Turns(memory, tmp_path)


def test_markdown_does_not_wait_for_a_pass(
    memory: Memory, writer: Writer, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, go_on, read = threading.Event(), threading.Event(), sync.read_files

    def held(*arguments: Any) -> Any:
        files = read(*arguments)
        has_begun.set()
        assert go_on.wait(30)
        return files

    monkeypatch.setattr(sync, "read_files", held)
    first = writer.index(memory.project.root)
    assert has_begun.wait(30)
    turns.end("quagga")
    work = writer.work(soon=True)
    wait_until(lambda: "quagga is known" in turns.markdown, "the turn")
    assert not first.done()
    go_on.set()
    assert first.result(30).chunks == 6  # it had read the files before
    assert work.result(30).events == 1
    assert "quagga" in memory.search("quagga").results[0].chunk.content
    assert unindexed.roots(memory.home) == []


def test_passes_that_nobody_waits_for_merge(
    memory: Memory, writer: Writer, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "PASS_SECONDS", 3600.0)
    passes = []
    monkeypatch.setattr(Indexer, "sync", counted(Indexer.sync, passes))
    words = [f"quagga{number}" for number in range(8)]
    turns.end(words[0])
    assert writer.work().result(30).indexed  # at once: nothing else was
    works = []
    for word in words[1:]:
        turns.end(word)
        works.append(writer.work())
        wait_until(lambda word=word: f"{word} is known" in turns.markdown, "the turn")
    wait_until(lambda: not writer.capture.is_busy, "the capture to end")
    wait_until(lambda: writer.length == 1, "the postponed pass")
    assert len(passes) == 1
    assert not any(work.done() for work in works)
    postponed = writer.postponed(memory.project.root)  # as a search does
    postponed.result(30)
    # A capture that two of them waited for is in both reports.
    assert sum(work.result(30).events for work in works) >= len(words) - 1
    assert len(passes) == 2
    for word in words:
        assert word in memory.search(word).results[0].chunk.content
    memory.write("new.md", "# New\n\nOkapi.\n")
    late = writer.index(memory.project.root)
    assert writer.index(memory.project.root, soon=True) is late  # somebody waits for it
    assert late.result(30).added == 1
    assert len(passes) == 3


def counted(function: Callable[..., Any], calls: list[object]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return function(*arguments, **named)

    return call


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
