"""A memory that OpenClaw keeps in a project's root is found and indexed by itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memkit.index import read_files
from memkit.index.memory_files import change_paths, memory_paths
from memkit.settings import MemorySettings, Settings
from tests.memory import DAYS, Memory, make_memory

THEIRS = {
    "MEMORY.md": "# Facts\n\nThe staging gateway listens on 7443, and nothing else does.\n",
    "memory/2026-11-17.md": "# 2026-11-17\n\nWe moved the zebra crossing to the north gate today.\n",
    "memory/people/anna.md": "# Anna\n\nAnna looks after the zebra crossing and the gate.\n",
}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS)


def write(memory: Memory, *names: str) -> None:
    for name in names:
        path = Path(memory.project.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(THEIRS[name])


def found(memory: Memory, **chosen: tuple[str, ...]) -> set[str]:
    """The sources outside memkit's own directory."""
    settings = Settings(memory=MemorySettings(**chosen))
    files = read_files(memory.project, memory.home, settings)
    assert not files.problems
    return {source for source in files if not source.startswith(".memkit/")}


def test_it_is_searched_with_its_days(memory: Memory) -> None:
    memory.sync()
    before = memory.contents().keys()
    write(memory, *THEIRS)
    assert memory.sync().added == 3
    results = {result.chunk.source: result.chunk for result in memory.search("zebra crossing").results}
    assert results["memory/2026-11-17.md"].date == "2026-11-17"
    assert memory_paths(memory.project, memory.home, memory.settings)[1:] == ["MEMORY.md", "memory"]
    Path(memory.project.root, "memory/2026-11-17.md").unlink()
    assert memory.sync().deleted == 3  # without a day it is any directory
    assert memory.contents().keys() == before


def test_a_directory_without_days_is_any_directory(memory: Memory) -> None:
    write(memory, "MEMORY.md", "memory/people/anna.md")
    for name in ("2026-11-17.txt", "2026-11-17-notes.md", "x2026-11-17.md", "allocator.md"):
        Path(memory.project.root, "memory", name).write_text("# Text\n\nSome text.\n")
    assert found(memory) == set()


def test_settings_can_leave_it_out(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    write(memory, *THEIRS)
    assert found(memory) == set(THEIRS)
    assert found(memory, exclude=("memory/*",)) == set()
    assert found(memory, exclude=("people/",)) == {"MEMORY.md", "memory/2026-11-17.md"}
    assert found(memory, paths=(".memkit/memory", "MEMORY.md")) == {"MEMORY.md"}
    assert len(read_files(memory.project, memory.home, Settings(memory=MemorySettings(exclude=("memory/*",))))) == 3
    monkeypatch.chdir(memory.project.root)
    change_paths(memory.home, memory.project, add=["memory"])  # added paths are found once
    assert found(memory) == set(THEIRS)
    assert memory.sync().added == 6 + 3
    root = Path(memory.project.root)  # nothing is written there
    assert {name: (root / name).read_text() for name in THEIRS} == THEIRS
    assert {path.name for path in root.iterdir()} == {".memkit", "MEMORY.md", "memory"}


@pytest.mark.parametrize("link", ["memory", "memory/2026-11-17.md", "MEMORY.md"])
def test_no_link_leads_out_of_the_project(memory: Memory, tmp_path: Path, link: str) -> None:
    write(memory, *THEIRS)
    inside, outside = Path(memory.project.root, link), tmp_path / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    expected = {"memory": set(), "MEMORY.md": set(THEIRS) - {link}, "memory/2026-11-17.md": set(THEIRS) - {link}}
    assert found(memory) == expected[link]


def test_what_cannot_be_read_is_kept(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    write(memory, *THEIRS)
    memory.sync()
    before, real = memory.contents(), os.scandir

    def scandir(path: str) -> object:
        if os.fspath(path) == os.path.join(memory.project.root, "memory"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = memory.sync()
    assert (report.added, report.deleted, len(report.unreadable)) == (0, 0, 1)
    assert memory.contents() == before
