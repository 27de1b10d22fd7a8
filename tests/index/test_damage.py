"""A healthy index is never discarded, whatever its size and whatever fails around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memkit.errors import IndexStoreError
from memkit.index import damage, index_lock
from memkit.index.damage import in_use_marker, read_all, set_aside_if_damaged
from memkit.index.store import Row, Store
from memkit.paths import Home
from tests.ci import IN_CI, only_in_ci
from tests.memory import DAYS, FakeEmbedder, Memory, make_chunk, make_memory

MANY = 40_000
"""Rows; Chroma reads no more than 32,766 in one call."""

CHUNKS = 400
"""Of so many chunks: a row without text costs the test least."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """A small project next to a collection of many rows."""
    memory = make_memory(tmp_path_factory.mktemp("many"), DAYS)
    memory.sync()
    vectors = np.random.default_rng(7).standard_normal((CHUNKS, MANY // CHUNKS, 8))
    chunk = make_chunk("A text of many windows, each a row.")
    rows = [Row(f"{n:064x}", chunk, own.astype(np.float32)) for n, own in enumerate(vectors)]
    with index_lock(memory.home, 5.0), Store(memory.home, "", "memkit-many") as store:
        store.put(rows)
    return memory


def chroma(memory: Memory) -> Path:
    return Path(memory.home.index, "chroma")


@only_in_ci
def test_a_large_index_is_read_whole(many: Memory) -> None:
    contents = read_all(chroma(many))
    assert (contents.damage, contents.failure) == ("", "")
    found = contents.collections["memkit-many"]
    assert (len(found.ids), found.dimensions, found.foreign) == (CHUNKS, 8, 0)
    with index_lock(many.home, 5.0), Store(many.home, "", "memkit-many") as store:
        stored = store.stored()
        assert len(stored) == CHUNKS
        assert store.count() == sum(one["windows"] for one in stored.values()) == MANY


@only_in_ci
def test_a_large_index_of_a_killed_process_is_kept(many: Memory) -> None:
    many.embedder.texts.clear()
    in_use_marker(chroma(many)).touch()
    many.sync()
    assert many.said == []
    assert many.embedder.texts == []
    assert not Path(f"{chroma(many)}.damaged").exists()


@only_in_ci
def test_many_rows_are_dropped(many: Memory, tmp_path: Path) -> None:
    shutil.copytree(many.home.root, tmp_path / "home")
    home = Home(str(tmp_path / "home"))
    with index_lock(home, 5.0), Store(home, "", "memkit-many", rebuild=True) as store:
        assert store.stored() == {}


@only_in_ci
def test_a_full_disk_is_not_damage(tmp_path: Path, mount: Callable[[str], Path]) -> None:
    place = mount("size=12m")
    memory = make_memory(tmp_path, DAYS, home=Home(str(place / "home")))
    memory.sync()
    before = memory.contents()
    in_use_marker(chroma(memory)).touch()
    memory.write("2026-11-21.md", "# News\n\nSomething new that is to be indexed.\n")
    filler = place / "filler"
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    with pytest.raises(IndexStoreError, match=r"full|No space"):
        memory.sync()
    assert memory.said == []
    assert not Path(f"{chroma(memory)}.damaged").exists()
    filler.unlink()
    memory.embedder.texts.clear()
    memory.sync()
    assert len(memory.embedder.texts) == 1
    assert before.items() <= memory.contents().items()


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
@pytest.mark.parametrize("descriptors", [8, 12, 14, 16, 18] if IN_CI else [16])
def test_too_few_descriptors_are_not_damage(
    large: Memory, monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    """16: Chroma says "Error loading hnsw index", as it does of damaged files."""
    import resource

    said: list[str] = []
    run = subprocess.run

    def limited(*arguments: Any, **options: Any) -> Any:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        return run(*arguments, **options, preexec_fn=limit)

    monkeypatch.setattr(damage.subprocess, "run", limited)
    contents = read_all(chroma(large))
    assert contents.damage == ""
    assert contents.failure or descriptors > 8  # how many are enough differs
    assert not set_aside_if_damaged(chroma(large), True, said.append)
    assert said == []


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "status -9"),
        ("import os; os.write(2, b'memory allocation of 8 bytes failed'); os.abort()", "memory"),
        ("raise ImportError('no chromadb')", "no chromadb"),
        ("print('{}')", "status 0"),
        ("import time; time.sleep(60)", "more than"),
    ],
)
def test_unknown_errors_are_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str, reason: str
) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    monkeypatch.setattr(damage, "_READ_ALL", child)
    monkeypatch.setattr(damage, "TRY_SECONDS", 0.3 if "sleep" in child else 60.0)
    contents = read_all(chroma(memory))
    assert contents.damage == ""
    assert reason in contents.failure


def test_no_process_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr(damage.subprocess, "run", refuse)
    contents = read_all(chroma(memory))
    assert contents.damage == ""
    assert "Too many open files" in contents.failure


def test_a_link_to_an_unmounted_disk_is_not_damage(tmp_path: Path) -> None:
    (tmp_path / "chroma").symlink_to(tmp_path / "disk" / "chroma")
    assert not set_aside_if_damaged(tmp_path / "chroma", True, print)
    assert (tmp_path / "chroma").is_symlink()


def test_vectors_of_the_snapshot_replace_lost_ones(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    before = memory.contents()
    (chroma(memory) / damage.DATABASE).write_text("garbage")
    memory.write("2026-11-21.md", "# News\n\nSomething new that is to be indexed.\n")
    memory.embedder.texts.clear()
    memory.sync()
    assert len(memory.embedder.texts) == 1
    assert before.items() <= memory.contents().items()
    with index_lock(memory.home, 5.0):
        found = read_all(chroma(memory)).collections
    assert {len(one.ids) for one in found.values()} == {len(before) + 1}


def test_vectors_of_another_length_are_not_mixed_in(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    (chroma(memory) / damage.DATABASE).write_text("garbage")
    memory.write("2026-11-21.md", "# News\n\nSomething new that is to be indexed.\n")
    memory.embedder = FakeEmbedder(16)
    memory.sync()
    assert memory.snapshot.dimensions == 16
    assert memory.snapshot.missing == 0


def test_env_files_in_the_working_directory_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma reads `.env` where it runs: a repository could send the memory to a server of its own."""
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / ".env").write_text(
        "CHROMA_API_IMPL=chromadb.api.fastapi.FastAPI\nCHROMA_SERVER_HOST=127.0.0.1\n"
        "CHROMA_SERVER_HTTP_PORT=1\n"
    )
    (repository / "sqlite3.py").write_text("raise SystemExit('ran')")
    monkeypatch.chdir(repository)
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    assert len(read_all(chroma(memory)).collections) == 1
