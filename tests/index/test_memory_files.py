"""The index keeps a memory file that cannot be read now, and drops one that was deleted."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memkit.agents.claude_code.places import memory_of
from memkit.doctor import open_subject
from memkit.doctor.index import check_chunks, check_edits
from memkit.index import is_up_to_date, memory_files, read_files
from memkit.index.memory_files import memory_paths
from memkit.index.scanner import scan
from memkit.search.ranking import open_searcher
from memkit.settings import MemorySettings, Settings
from tests.ci import first
from tests.memory import DAYS, FakeEmbedder, Memory, make_memory

PASSING = [errno.EIO, errno.EACCES, errno.ESTALE, errno.EMFILE]

Deny = Callable[[int, Path], None]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    found = make_memory(tmp_path, {**DAYS, "docs/a.md": "# A\n\nAlpha is first.\n"})
    found.sync()
    return found


@pytest.fixture
def deny(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deny]:
    """Has the system answer with an error whenever a path is opened, looked at, or listed."""
    denied: dict[str, int] = {}

    def watched(original: Any) -> Any:
        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            number = denied.get(os.fspath(path)) if not isinstance(path, int) else None
            if number is not None:
                raise OSError(number, os.strerror(number), os.fspath(path))
            return original(path, *arguments, **options)

        return call

    def deny_one(number: int, path: Path) -> None:
        denied.clear()
        if number:
            denied[str(path)] = number

    monkeypatch.setattr(os, "scandir", watched(os.scandir))
    monkeypatch.setattr(os, "stat", watched(os.stat))
    monkeypatch.setattr(os, "open", watched(os.open))
    yield deny_one
    denied.clear()


@pytest.mark.parametrize("number", first(1, PASSING))
@pytest.mark.parametrize("name", ["2026-11-19.md", "docs", "."])
def test_what_cannot_be_read_is_kept(memory: Memory, deny: Deny, number: int, name: str) -> None:
    before = memory.contents()
    place = Path(os.path.normpath(memory.path(name)))
    deny(number, place)
    memory.embedder.texts.clear()
    report = memory.sync()
    assert (report.added, report.deleted, report.embedded) == (0, 0, 0)
    assert len(report.unreadable) == 1
    assert os.strerror(number) in report.unreadable[0]
    assert memory.contents() == before
    files = read_files(memory.project, memory.home, memory.settings)
    assert is_up_to_date(memory.snapshot, files, memory.settings)  # no search waits for a pass
    deny(0, place)
    memory.sync()
    assert memory.embedder.texts == []
    assert memory.contents() == before


@pytest.mark.parametrize("number", first(1, [errno.ENOENT, errno.ENOTDIR]))
@pytest.mark.parametrize("name", ["2026-11-19.md", "docs", "."])
def test_what_is_gone_is_deleted(memory: Memory, deny: Deny, number: int, name: str) -> None:
    deny(number, Path(os.path.normpath(memory.path(name))))
    report = memory.sync()
    assert report.deleted > 0
    assert report.unreadable == []


def test_other_files_are_indexed_meanwhile(memory: Memory, deny: Deny) -> None:
    before = memory.contents()
    deny(errno.EIO, memory.path("2026-11-19.md"))
    memory.path("2026-11-18.md").unlink()
    memory.write("2026-11-21.md", "# News\n\nSomething new.\n")
    report = memory.sync()
    assert (report.added, report.deleted) == (1, 2)
    held = {chunk.source for chunk, _ in memory.contents().values()}  # type: ignore[attr-defined]
    assert {name for name in (*DAYS, "2026-11-21.md") if f".memkit/memory/{name}" not in held} == {"2026-11-18.md"}
    assert len(memory.contents().keys() & before.keys()) == len(before) - 2
    deny(errno.EIO, memory.path("docs"))
    memory.settings = msgspec.convert({"memory": {"exclude": ["docs/"]}}, Settings)
    assert memory.sync().deleted == 1


@pytest.mark.parametrize("lost", ["snapshot", "all by a rebuild", "model"])
def test_unreadable_files_survive_a_rebuild(memory: Memory, deny: Deny, lost: str) -> None:
    before = memory.contents()
    deny(errno.ESTALE, memory.path("docs"))
    if lost == "snapshot":
        shutil.rmtree(Path(memory.home.index, "snapshots"))
    memory.sync(rebuild=lost == "all by a rebuild", embedder=FakeEmbedder(16 if lost == "model" else 8))
    if lost == "snapshot":  # nothing else has the text
        sources = {name: chunk.source for name, (chunk, _) in before.items()}  # type: ignore[attr-defined]
        readable = {name for name, source in sources.items() if "docs/" not in source}
        assert memory.contents().keys() == readable < before.keys()
        memory.sync()
        assert memory.contents().keys() == readable
    else:
        assert memory.contents().keys() == before.keys()
    deny(0, memory.path("docs"))
    memory.embedder.texts.clear()
    memory.sync()
    assert lost == "snapshot" or memory.embedder.texts == []
    assert memory.contents() == before


def test_a_file_that_fails_during_a_rebuild_keeps_its_chunks(memory: Memory, deny: Deny) -> None:
    """An unchanged file is opened only when its text is needed, so the scan does not see the failure."""
    before = memory.contents()
    files = read_files(memory.project, memory.home, memory.settings)
    deny(errno.EIO, memory.path("2026-11-19.md"))
    report = memory.sync(files=files, rebuild=True)
    assert len(report.unreadable) == 1
    assert memory.contents().keys() == before.keys()
    deny(0, memory.path("2026-11-19.md"))
    assert memory.sync().unreadable == []
    assert memory.contents() == before


def test_unreadable_files_are_reported(memory: Memory, deny: Deny) -> None:
    deny(errno.EACCES, memory.path("2026-11-19.md"))
    subject = open_subject(memory.home, memory.project)
    (finding,) = [one for one in check_edits(subject) if one.code == "memory-unreadable"]
    assert "2026-11-19.md cannot be read: Permission denied" in finding.what
    assert "index-differs" not in [one.code for one in check_chunks(subject)]
    memory.settings = msgspec.convert({"embedding": {"download": False}}, Settings)
    searcher = open_searcher(memory.project, memory.home, memory.settings)
    assert any("2026-11-19.md cannot be read" in note for note in searcher.notes)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all")
def test_permissions_of_the_real_file_system(memory: Memory) -> None:
    place = memory.path("docs")
    place.chmod(0)
    try:
        report = memory.sync()
    finally:
        place.chmod(0o700)
    assert (report.deleted, len(report.unreadable)) == (0, 1)


def test_a_link_that_leads_out_is_not_reported(memory: Memory, deny: Deny, tmp_path: Path) -> None:
    memory.path("out.md").symlink_to(tmp_path / "elsewhere.md")
    deny(errno.EACCES, memory.path("out.md"))
    unreadable: dict[str, str] = {}
    list(scan(Path(memory.project.root), [".memkit/memory"], unreadable=unreadable))
    assert unreadable == {}


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose bytes are read from now on."""
    names: list[str] = []
    read = memory_files.read_regular

    def note(path: str, most: int) -> bytes:
        names.append(Path(path).name)
        return read(path, most)

    monkeypatch.setattr(memory_files, "read_regular", note)
    return names


def test_unchanged_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    names = reads(monkeypatch)
    monkeypatch.setattr(memory_files, "RACY_NS", 10**15)
    memory.sync()  # another write may have followed with the same time and size
    assert sorted(names) == sorted(DAYS)
    monkeypatch.setattr(memory_files, "RACY_NS", -1)  # all have settled
    memory.sync()
    before = memory.snapshot.name
    names.clear()
    memory.sync()
    assert names == []
    assert memory.snapshot.name == before  # its chunks are the same
    memory.write("new.md", "# New\n\nA new file.")
    memory.sync()
    assert set(names) == {"new.md"}
    memory.write("2026-11-18.md", DAYS["2026-11-18.md"].replace("7443", "8443"))
    os.utime(memory.path("2026-11-18.md"), (1, 1))  # not even with an old time
    names.clear()
    memory.sync()
    assert "2026-11-18.md" in names
    assert "8443" in memory.search("port").results[0].chunk.content


def test_a_file_that_vanishes_keeps_its_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    chunks = memory.snapshot.chunks()
    memory.write("2026-11-18.md", "# Another\n\nText.")
    memory.write("new.md", "# New\n\nText.")
    files = read_files(memory.project, memory.home, memory.settings)
    memory.path("2026-11-18.md").unlink()
    memory.path("new.md").unlink()
    report = memory.sync(files=files)
    assert len(report.unreadable) == 2
    assert memory.snapshot.chunks() == chunks
    memory.sync()
    assert {chunk.source[-13:] for chunk in memory.snapshot.chunks()} == {"2026-11-19.md", "2026-11-20.md"}


def test_claude_codes_own_memory_is_read_and_can_be_left_out(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(Path(memory.project.root).parent / "claude"))
    folder = memory_of(memory.project.root)
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Habits\n\nThe pelican tests need a running broker.\n")
    memory.sync()
    (result,) = [one for one in memory.search("pelican broker").results if "pelican" in one.chunk.content]
    assert result.chunk.source == str(folder / "MEMORY.md")
    assert str(folder) in memory_paths(memory.project, memory.home, memory.settings)
    off = Settings(memory=MemorySettings(claude_code=False))
    assert str(folder / "MEMORY.md") not in read_files(memory.project, memory.home, off)
