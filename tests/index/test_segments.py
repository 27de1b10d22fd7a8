"""Whatever segments hold the chunks: searches find the same as in an index that was built at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.index import Indexer, index_lock, merge, update
from memkit.index.manifest import SUFFIX
from memkit.index.merge import choose, erase_dead
from memkit.index.store import Store
from memkit.paths import Home
from tests.ci import sized
from tests.index.same import assert_same_index
from tests.memory import DAYS, FakeEmbedder, Memory, make_memory

REPOSITORY = Path(__file__).resolve().parents[2]
QUERIES = ["which port", "PolicyController", "vault", "quagga"]

NAMES = ["a.md", "b.md", "c.md", "deep/d.md", "e.md"]
TEXTS = st.lists(
    st.sampled_from(
        [
            "# Title\n",
            "## Same heading <!-- session:s1 -->\n",
            "## Same heading <!-- session:s2 branch:b -->\n",
            "### 09:00 A turn <!-- turn:abcd -->\n",
            "the gateway listens on port 7443 because the ingress has the other one " * 3 + "\n",
            "PolicyController raised ERR_404 when a route was renamed by the migration " * 3 + "\n",
            "long " * 300 + "\n",
        ]
    ),
    max_size=5,
).map("\n".join)
STEPS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.none() | TEXTS)
    | st.sampled_from(["merge", "erase", "no model", "reopen"]),
    min_size=1,
    max_size=8,
)


def fresh_of(memory: Memory, home: Path) -> Memory:
    """The same files, indexed at once in another home."""
    found = Memory(Home(str(home)), memory.project, FakeEmbedder())
    found.sync()
    return found


@settings(max_examples=sized(4, 6, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, limit=st.sampled_from([1, 3, update.SEGMENT_CHUNKS]))
def test_any_history_gives_the_same_index(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str | tuple[str, str | None]], limit: int
) -> None:
    root = tmp_path_factory.mktemp("steps")
    memory = make_memory(root, {"a.md": "# A\n\nThe first of all."})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "SEGMENT_CHUNKS", limit)
        for step in steps:
            if step == "merge" and memory.snapshot_or_none is not None:
                merge.merge(memory.snapshot, list(range(len(memory.snapshot.segments))))
            elif step == "erase" and memory.snapshot_or_none is not None:
                erase_dead(memory.snapshot.directory)
                snapshot = memory.snapshot
                assert list(snapshot.stored_chunks()).__len__() == len(snapshot)
            elif step == "no model":
                sync_without_model(memory)
                continue
            elif step not in ("merge", "erase", "reopen"):
                name, text = step
                if text is not None:
                    memory.write(name, text)
                elif memory.path(name).exists():
                    memory.path(name).unlink()
            memory.sync()
        memory.sync()
    fresh = fresh_of(memory, root / "fresh")
    assert_same_index(memory.snapshot, fresh.snapshot)
    assert memory.answers(QUERIES) == fresh.answers(QUERIES)
    assert in_store(memory) == in_store(fresh)
    files = {path.stem for path in memory.snapshot.directory.iterdir() if path.suffix == SUFFIX}
    assert files == {segment.name for segment in memory.snapshot.segments}


def sync_without_model(memory: Memory) -> None:
    """Index as if the model could not be loaded."""
    with index_lock(memory.home, 5.0):
        Indexer(memory.project, memory.home, memory.settings, find_embedder=lambda: (None, "not now")).sync()


def in_store(memory: Memory) -> dict[str, object]:
    """The metadata and vectors that Chroma has."""
    with Store(memory.home, "", memory.snapshot.directory.name) as store:
        found: Any = store._collection.get(include=["embeddings", "metadatas"])
    each = zip(found["ids"], found["metadatas"], found["embeddings"], strict=True)
    return {name: (metadata, vector.tobytes()) for name, metadata, vector in each}


def test_a_first_build_holds_few_chunks_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "SEGMENT_CHUNKS", 2)
    seen: list[tuple[int, int]] = []
    held: list[int] = []
    write = update.write_rows

    def note(*arguments: object) -> str:
        held.append(len(arguments[1]))  # type: ignore[arg-type]
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(update, "write_rows", note)
    memory = make_memory(tmp_path, DAYS)
    report = memory.sync(progress=lambda done, total: seen.append((done, total)))
    assert (report.chunks, report.added, report.embedded) == (6, 6, 6)
    assert held == [2, 3, 1]
    assert [done for done, _ in seen] == [2, 5, 6]
    assert seen[-1] == (6, 6)
    assert all(done <= total for done, total in seen)
    assert_same_index(memory.snapshot, fresh_of(memory, tmp_path / "fresh").snapshot)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), max_size=30))
def test_merges_are_bounded(sizes: list[tuple[int, int]]) -> None:
    """However large the memory is, a merge copies little, and few segments stay."""
    live = [min(pair) for pair in sizes]
    chosen = choose([max(pair) for pair in sizes], live)
    assert len(set(chosen)) == len(chosen)
    assert len(chosen) != 1 or max(sizes[chosen[0]]) > 2 * live[chosen[0]]
    assert len(chosen) == 1 or sum(live[number] for number in chosen) <= 2 * merge.FULL_CHUNKS
    if not chosen:
        small = [own for own in live if own < merge.FULL_CHUNKS]
        assert len(small) <= (merge.FACTOR - 1) * 5


def test_days_of_turns_leave_few_segments_and_copy_little() -> None:
    """A year of days with 40 chunks each."""
    segments: list[int] = []
    copied = 0
    for _ in range(365):
        segments.append(40)
        chosen = choose(segments, segments)
        if chosen:
            copied += sum(segments[number] for number in chosen)
            size = sum(segments[number] for number in chosen)
            segments = [one for number, one in enumerate(segments) if number not in chosen] + [size]
        assert len(segments) <= 16
    assert sum(segments) == 365 * 40
    assert copied <= 5 * 365 * 40


_CHILD = """
import os, signal, sys
from chromadb.api.models.Collection import Collection
from memkit.index import merge, mirror, snapshot, segment, store, update
from memkit.paths import Home
from memkit.projects.project import Project
from tests.memory import FakeEmbedder, Memory

left = [0]

def killing(function):
    def call(*arguments, **named):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return function(*arguments, **named)
    return call

for name in ("upsert", "delete"):
    setattr(Collection, name, killing(getattr(Collection, name)))
for module, names in {
    snapshot: ["write_durably", "remove_others"],
    update: ["write_rows", "note_changed", "write_manifest"],
    merge: ["write_merged", "write_manifest"],
    mirror: ["write_state", "remove_path"],
}.items():
    for name in names:
        setattr(module, name, killing(getattr(module, name)))
write = segment._bytes_of

def parts(buffers):  # the bytes of a segment are written in parts
    for data in write(buffers):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        yield data

segment._bytes_of = parts
merge.FACTOR = 2
for line in sys.stdin:
    steps, home, root = line.rstrip("\\n").split(" ", 2)
    child = os.fork()
    if child == 0:
        left[0] = int(steps)
        try:
            Memory(Home(home), Project(root), FakeEmbedder(window=60)).sync()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Indexes once for each line that it reads, in a child of its own, which dies at that step. Imports happen once."""


def test_killed_processes_leave_the_old_or_the_new_state(tmp_path: Path) -> None:
    """SIGKILL at each step of a pass with changes, deletions, and a merge. Readers see one of two states."""
    memory = make_memory(tmp_path, {**DAYS, "notes.md": "# Notes\n\n" + "A note of the quagga. " * 9})
    memory.embedder.window = 60
    memory.sync()
    before = memory.contents()
    memory.write("new.md", "# New\n\n" + "Words of the new file. " * 9)
    memory.write("notes.md", "# Notes\n\n" + "A note of the zebra. " * 9)
    memory.path("2026-11-19.md").unlink()
    fresh = Memory(Home(str(tmp_path / "fresh")), memory.project, FakeEmbedder(window=60))
    fresh.sync()
    after, stored = fresh.contents(), in_store(fresh)
    saved = tmp_path / "saved"
    os.rename(memory.home.root, saved)
    kills = 0
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for steps in range(0, 40, sized(4, 3, 1)):
            home = tmp_path / f"home{steps}"
            shutil.copytree(saved, home)
            print(steps, home, memory.project.root, file=process.stdin, flush=True)
            status = int(process.stdout.readline())
            tried = Memory(Home(str(home)), memory.project, FakeEmbedder(window=60))
            found = tried.contents()
            assert found in (before, after)
            if status != -signal.SIGKILL:
                assert (status, found) == (0, after)
                break
            kills += 1
            tried.sync()
            assert tried.contents() == after
            assert_same_index(tried.snapshot, fresh.snapshot)
            assert in_store(tried) == stored
            names = {path.name for path in tried.snapshot.directory.iterdir()}
            assert names == {"manifest", "copied", *(segment.path.name for segment in tried.snapshot.segments)}
        else:
            pytest.fail("the pass has more steps than this test kills")
    assert kills > 2
