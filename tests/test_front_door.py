"""`memkit.Memory`: one class for everything that memkit does with a memory."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import memkit
from memkit.errors import MemkitError, NotFoundError
from tests.memory import DAYS, Memory, make_memory
from tests.service.running import wait_until
from tests.topics.subjects import SubjectEmbedder, days


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Markdown of three days, searched by words alone, without a service."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("MEMKIT_SERVICE_ENABLED", "false")
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    return make_memory(tmp_path, DAYS)


def test_search_expand_remember_and_forget(store: Memory) -> None:
    memory = memkit.Memory(store.project.root, home=store.home)
    assert memory.project == store.project
    assert memory.days == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert memory.journal.day("2026-11-20").render().startswith("# 2026-11-20")
    (found,) = memory.search("staging gateway port", k=1).results
    (section,) = memory.expand(found.id)
    assert "7443" in section["content"]
    assert section["turns"] == list(found.chunk.turns)

    note = memory.remember("The quagga moves to port 7444.", "gateway")
    assert note.section in memory.journal.day(note.day).render()
    assert memory.index().added == 1
    results = memory.search("quagga", k=1).results
    assert "7444" in results[0].chunk.content

    with ThreadPoolExecutor(4) as pool:  # threads may share it
        shared = memkit.Memory(store.project.root, home=store.home)
        assert len({len(one.results) for one in pool.map(shared.search, ["quagga"] * 8)}) == 1

    memory.forget(note.id)
    assert memory.search("quagga").results == []
    assert note.section not in memory.journal.day(note.day).render()


def test_what_it_offers(store: Memory) -> None:
    """Few methods, each with named options; the rest is for memkit's own interfaces."""
    methods = {name: one for name, one in vars(memkit.Memory).items() if not name.startswith("_") and callable(one)}
    assert len(methods) <= 25
    kinds = {one.kind for method in methods.values() for one in inspect.signature(method).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert repr(memkit.Memory(store.project)) == f"Memory({store.project.root!r})"


def test_watch(store: Memory) -> None:
    said: list[str] = []
    memory = memkit.Memory(store.project.root, home=store.home, announce=said.append)
    with memory:
        passes = memory.watch()
        assert next(passes).added == 6
        store.path("2026-11-20.md").unlink()
        assert next(passes).deleted == 1
    assert list(passes) == []
    assert [one for one in threading.enumerate() if one.name == "watcher"] == []

    Path(store.home.index).rename(f"{store.home.index}-moved")
    Path(store.home.index).write_text("in the way")
    passes = memory.watch()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, passes)
        wait_until(lambda: said, "the failed pass to be announced")
        Path(store.home.index).unlink()
        store.write("new.md", "# New\n\n" + "zebra " * 30)
        assert waiting.result(60).added == 6
    assert said[0].startswith("not indexed: ")
    passes.close()


def test_sessions_and_show(store: Memory) -> None:
    memory = memkit.Memory(store.project.root, home=store.home)
    assert [one.id for one in memory.sessions()] == ["5e550003", "5e550002", "5e550001"]
    assert next(memory.sessions(since="2026-11-20", branch="main")).begins == "2026-11-20 09:00"
    assert memory.show("2026-11-19").markdown == DAYS["2026-11-19.md"]
    assert memory.show("5e550002").kind == "session"
    with pytest.raises(NotFoundError, match="no day, session, turn, or result 'zz'"):
        memory.show("zz")


def test_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Memory) -> None:
    empty = make_memory(tmp_path / "empty")
    assert memkit.Memory(empty.project, home=empty.home).topics().topics == ()
    monkeypatch.setattr("memkit.embedding.find_embedder", lambda *_: (SubjectEmbedder(), ""))
    made = make_memory(tmp_path / "subjects", days(8), embedder=SubjectEmbedder())  # type: ignore[arg-type]
    monkeypatch.delenv("MEMKIT_EMBEDDING_PROVIDER")
    memory = memkit.Memory(made.project, home=made.home)
    found = memory.topics()
    assert len(found.topics) == 3
    topic = found.topics[0]
    assert (topic.is_named, topic.label, sum(topic.weeks.values())) == (False, topic.made_label, topic.stored.size)
    assert memory.rename_topic(topic.id[:6], "My\nsubject") == "My subject"
    assert memory.topics(refresh=True).find(topic.id).label == "My subject"
    assert memory.rename_topic(topic.id, "") == topic.made_label
    with pytest.raises(NotFoundError, match="no topic 'zz'"):
        memory.rename_topic("zz", "x")


def test_other_projects_stay_out(store: Memory, tmp_path: Path) -> None:
    memory = memkit.Memory(store.project, home=store.home, other_projects=False)
    path = tmp_path / "x.jsonl"
    path.write_text("{}\n")
    with pytest.raises(MemkitError, match="only its own project"):
        memory.transcript(str(path))
    with pytest.raises(NotFoundError):
        memory.cite("ffff")
    with pytest.raises(MemkitError, match="may not read other projects"):
        memory.search("port", all_projects=True)
    with pytest.raises(MemkitError, match="may not read other projects"):
        memory.sessions(all_projects=True)


def test_the_memory_is_imported_only_when_it_is_used() -> None:
    code = "import sys, memkit; print('typing' in sys.modules, 'memkit.memory' in sys.modules); memkit.Memory"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, cwd=Path(memkit.__file__).parents[1])
    assert done.stdout.split() == ["False", "False"]
    with pytest.raises(AttributeError):
        memkit.memories  # noqa: B018
