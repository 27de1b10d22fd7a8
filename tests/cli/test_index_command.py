"""`memkit index`, `status`, `on` and `off`."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import IO

import pytest

from memkit.index import index_lock
from memkit.ipc import unindexed
from tests.ci import only_in_ci
from tests.cli.conftest import Run, environment, lexical_memory
from tests.memory import DAYS, Memory, make_memory


def test_index_and_index_again(run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(fresh, "index")
    assert first.errors == ""
    assert first.output == "6 chunks of 3 files: 6 added, 0 deleted, 6 embedded.\n"
    assert run(fresh, "index").output == "6 chunks of 3 files: 0 added, 0 deleted, 0 embedded.\n"
    report = run(fresh, "index", "--rebuild", "--json").json
    assert (report["root"], report["embedded"]) == (fresh.project.root, 6)
    shutil.rmtree(fresh.home.index)
    assert run(fresh, "index", "--json").json["embedded"] == 6
    shutil.rmtree(fresh.home.index)
    fresh.write("latin.md", b"# Caf\xe9\n\n" + b"words " * 20)
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    found = run(fresh, "index")
    assert found.status == 0
    assert "memkit: .memkit/memory/latin.md: 1 byte not valid UTF-8, read as \ufffd\n" in found.errors
    assert "memkit: 7 chunks not embedded: embedding.provider is none\n" in found.errors


class TestPaths:
    """Markdown beside the journal."""

    @pytest.fixture
    def notes(self, fresh: Memory) -> Path:
        notes = Path(fresh.project.root, "notes")
        (notes / "deep").mkdir(parents=True)
        (notes / "deep" / "zebra.md").write_text("# Zebra\n\n" + "zebra words " * 12)
        (notes / "plain.txt").write_text("not markdown")
        return notes

    def test_a_directory_becomes_a_part_of_the_memory(self, run: Run, fresh: Memory, notes: Path) -> None:
        assert run(fresh, "index", "notes", "--json").json["files"] == 4
        assert run(fresh, "index", "--json").json["files"] == 4
        result = run(fresh, "search", "--json", "zebra").json["results"][0]
        assert result["source"] == "notes/deep/zebra.md"
        assert run(fresh, "index", "--drop", "notes", "--json").json["files"] == 3
        found = run(fresh, "search", "--json", "--mode", "lexical", "zebra").json
        assert found["results"] == []
        dropped = run(fresh, "index", "--drop", "notes").complaint
        assert dropped == "memkit: notes was not added to this memory; added paths: none"
        assert "notes/plain.txt is not Markdown" in run(fresh, "index", "notes/plain.txt").complaint
        assert run(fresh, "index", "no/such/path").status == 2

    def test_a_damaged_record_drops_nothing(self, run: Run, fresh: Memory, notes: Path) -> None:
        run(fresh, "index", "notes")
        before = fresh.contents()
        record = next(Path(fresh.home.projects).glob("*.paths.json"))
        text = record.read_text()
        record.write_text("{half")
        found = run(fresh, "index")
        assert found.status == 1
        assert "0 deleted" in found.output
        assert f"cannot be read: {record} is damaged" in found.errors
        assert fresh.contents() == before
        assert "cannot be read: " in run(fresh, "search", "which port").errors
        codes = [one["code"] for one in run(fresh, "doctor", "--json").json["findings"]]
        assert "memory-unreadable" in codes
        assert "not-indexed" not in codes
        for arguments in (["notes"], ["--drop", "notes"]):
            assert run(fresh, "index", *arguments).status == 1
            assert record.read_text() == "{half"
        record.write_text(text)
        assert run(fresh, "index").status == 0
        assert fresh.contents() == before


def test_waiting_for_another_process_is_announced(
    run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memkit.memory.LOCK_SECONDS", 0.1)
    with index_lock(fresh.home, 1):
        found = run(fresh, "index")
    assert found.status == 1
    assert found.errors.splitlines() == [
        "memkit: waiting for another memkit process that is working on the index",
        "memkit: another memkit process is working on the index; try again in a moment",
    ]


class TestStatus:
    """What is remembered, what waits, what failed."""

    def test_out_of_date_and_up_to_date(self, run: Run, fresh: Memory) -> None:
        value = run(fresh, "status", "--json").json
        assert value["memory"] == {
            "path": fresh.project.memory, "days": 3, "turns": 6, "notes": 0, "first": "2026-11-18",
            "last": "2026-11-20",
        }  # fmt: skip
        assert value["index"]["in_step"] is False
        assert "out of date until the next search\n" in run(fresh, "status").output
        run(fresh, "index")
        index = run(fresh, "status", "--json").json["index"]
        assert index == {"files": 3, "chunks": 6, "missing": 0, "in_step": True, "model": "all-MiniLM-L6-v2"}
        assert "up to date" in run(fresh, "status").output
        for name in list(DAYS)[:2]:
            fresh.path(name).unlink()
        run(fresh, "index")
        shown = run(fresh, "status").output
        assert "1 day, 1 turn, 2026-11-20" in shown and "1 chunk, " in shown
        fresh.path("2026-11-20.md").unlink()
        value = run(fresh, "status", "--json").json["memory"]
        assert (value["days"], value["turns"], value["first"]) == (0, 0, None)
        assert "0 days, 0 turns" in run(fresh, "status").output

    def test_what_failed(self, run: Run, fresh: Memory) -> None:
        failed = Path(fresh.home.spool, "failed")
        failed.mkdir(parents=True)
        (failed / "1-Stop.json").write_text(
            json.dumps({"event": "Stop", "session": "s1", "error": "no space left"})
        )
        Path(fresh.home.log).mkdir()
        Path(fresh.home.log, "hooks.log").write_text("one\ntwo\n")
        found = run(fresh, "status")
        assert found.status == 0
        assert "1 event; 2 hook errors" in found.output
        assert "Stop of session s1: no space left" in found.errors
        assert "memkit work --retry" in found.errors
        value = run(fresh, "status", "--json").json
        assert value["failed"][0]["error"] == "no space left"
        assert value["hook_errors"] == 2

    def test_it_changes_nothing(self, run: Run, fresh: Memory) -> None:
        unindexed.mark(fresh.home, fresh.project.root)
        run(fresh, "status")  # keeps the counts of days
        before = sorted(Path(fresh.home.root).rglob("*"))
        assert Path(fresh.home.run, "tally") in before
        assert not Path(fresh.home.index).exists()
        run(fresh, "status")
        assert sorted(Path(fresh.home.root).rglob("*")) == before


def test_off_and_on(run: Run, fresh: Memory) -> None:
    marker = Path(fresh.project.root, ".memkit", "off")
    for _ in range(2):
        assert run(fresh, "off").output == f"memkit is off for {fresh.project.root}\n"
        assert marker.exists()
    assert "(off)" in run(fresh, "status").output
    assert run(fresh, "search", "--json", "port").json["results"]
    for _ in range(2):
        value = run(fresh, "on", "--json").json
        assert value == {"project": fresh.project.root, "memory": "on"}
        assert not marker.exists()
    shutil.rmtree(marker.parent)
    marker.parent.write_text("a file")
    assert ".memkit: " in run(fresh, "off").complaint


def test_all_created_files_are_private(run: Run, tmp_path: Path) -> None:
    """Under the usual mask, Chroma's files too, and a day that was open to all."""
    memory = make_memory(tmp_path, DAYS)
    Path(memory.home.root).mkdir(mode=0o700)
    Path(memory.home.config_file).write_text("embedding.provider = 'none'\n")
    os.umask(0o022)  # each command sets its own
    assert run(memory, "index").status == 0
    home = [path for path in Path(memory.home.root).rglob("*") if path.name != "config.toml"]
    assert [path for path in home if path.name == "chroma.sqlite3"]
    assert [path for path in home if path.stat().st_mode & 0o077] == []
    today = memory.path(f"{date.today()}.md")
    memory.write(today.name, f"# {date.today()}\n\nMine.\n")
    today.chmod(0o666)
    os.umask(0o022)
    assert run(memory, "remember", "The port is 7443").status == 0
    assert "Note: The port is 7443" in today.read_text()
    assert today.stat().st_mode & 0o077 == 0


def test_a_file_in_the_place_of_the_snapshots_is_no_end(run: Run, tmp_path: Path) -> None:
    memory = lexical_memory(tmp_path, DAYS)
    assert run(memory, "index").status == 0
    snapshots = Path(memory.home.index, "snapshots")
    (collection,) = snapshots.iterdir()
    shutil.rmtree(collection)
    collection.write_text("no directory")
    assert run(memory, "search", "staging gateway port", "--json").json["results"]
    shutil.rmtree(snapshots)
    snapshots.write_text("no directory")
    assert run(memory, "search", "staging gateway port", "--json").json["results"]
    assert snapshots.is_dir()


# `memkit watch`, in a process of its own.


GENEROUS_SECONDS = 60.0


class Watching:
    """The running command, and the lines it prints."""

    def __init__(self, memory: Memory, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memkit", "watch", *arguments], cwd=memory.project.root,
            env=environment(memory, MEMKIT_EMBEDDING_PROVIDER="none"), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
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


def test_a_line_for_each_change_until_it_is_ended(memory: Memory, watch: Callable[..., Watching]) -> None:
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
def test_an_error_is_one_line_and_watching_continues(memory: Memory, watch: Callable[..., Watching]) -> None:
    Path(memory.home.root).mkdir(parents=True)
    Path(memory.home.index).write_text("in the way")
    watching = watch()
    assert watching.error("cannot write the index").startswith("memkit: ")
    Path(memory.home.index).unlink()
    memory.write("new.md", "# New\n\n" + "zebra " * 30)
    assert watching.line() == "7 chunks of 4 files: 7 added, 0 deleted, 0 embedded.\n"
    status, errors = watching.end(signal.SIGTERM)
    assert status == 0, errors
