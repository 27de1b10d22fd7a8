"""Open projects: opened once, read again after a change, and limited in number."""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memkit.projects.project import Project
from memkit.search.results import SearchRequest
from memkit.service import open_projects
from memkit.service.listener import NotHereError
from memkit.service.open_projects import Models, OpenProjects
from memkit.service.watcher import Watcher
from memkit.service.writer import Writer
from memkit.settings.load import Settings
from tests.memory import DAYS, Memory, make_memory


class Held:
    """Open projects of one home, and what they ask of the watcher."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.watcher = Watcher(lambda root: None)
        models = Models(memory.home)
        self.writer = Writer(memory.home, lambda project: memory.settings, models.find)
        self.projects = OpenProjects(
            memory.home, models, lambda project: memory.settings, self.writer.index, self.watcher
        )

    @property
    def watched(self) -> list[str]:
        return list(self.watcher._memories)

    def found(self, query: str, settings: Settings | None = None, **options: bool) -> list[str]:
        chosen = settings or self.memory.settings
        project = self.memory.project
        searcher = self.projects.searcher(project, chosen, chosen.search, **options)
        results = searcher.answer(SearchRequest(query, k=50, minimum=0.0)).results
        return [result.chunk.content for result in results if result.lexical > 0]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(make_memory(tmp_path, DAYS, embedding={"provider": "none"}))
    yield made
    made.watcher.close()
    made.writer.stop()
    assert made.writer.join(30)


def test_a_project_is_opened_once_and_read_again_after_a_change(held: Held) -> None:
    memory = held.memory
    assert not held.projects.is_open(memory.project)
    assert "7443" in held.found("gateway")[0]
    assert held.projects.is_open(memory.project)
    assert held.watched == [memory.project.root]
    assert held.projects.sizes() == {memory.project.root: 6}
    memory.write("new.md", "# New\n\nA quagga at the gateway.\n")
    assert held.found("quagga") == []  # nobody has said that it changed
    held.writer.index(memory.project.root).result(30)
    assert "quagga" in held.found("quagga")[0]
    held.projects.clear()
    assert held.watched == []
    assert not held.projects.is_open(memory.project)


def test_a_late_search_does_not_keep_a_replaced_snapshot_open(held: Held) -> None:
    project, settings = held.memory.project, held.memory.settings
    late = held.projects.searcher(project, settings, settings.search).corpus.snapshots
    held.memory.write("new.md", "# New\n\nA quagga at the gateway.\n")
    held.writer.index(project.root).result(30)
    held.found("quagga")  # reads the new snapshot and drops what belongs to the old one
    held.projects._corpus(late)
    replaced = weakref.ref(late[0])
    del late
    assert replaced() is None


def test_other_settings_open_another_index(held: Held) -> None:
    held.found("gateway")
    chunking = msgspec.structs.replace(held.memory.settings.chunking, max_characters=400)
    held.memory.settings = msgspec.structs.replace(held.memory.settings, chunking=chunking)
    held.memory.write("long.md", "# Long\n\n" + "The quagga eats grass.\n\n" * 60)
    assert len(held.found("quagga")) > 2


def test_the_least_recently_searched_project_is_closed(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_projects, "MAX_PROJECTS", 2)
    roots = []
    for name in ("a", "b", "c"):
        other = make_memory(tmp_path / name, DAYS, home=held.memory.home)
        held.memory.project = Project(other.project.root)
        roots.append(other.project.root)
        held.found("gateway")
    assert list(held.projects.sizes()) == roots[1:]
    assert held.watched == roots[1:]
    assert len(held.found("gateway", all_projects=True)) > len(held.found("gateway"))


def test_the_user_memory_stays_open_too(held: Held) -> None:
    home = held.memory.home
    Path(home.memory).mkdir(parents=True)
    note = Path(home.memory, "habits.md")
    note.write_text("# Habits\n\nA quagga guards every gateway.\n")
    assert any("quagga" in text for text in held.found("gateway"))
    assert held.watched == [held.memory.project.root, home.root]
    search = held.memory.settings.search
    project, settings = held.memory.project, held.memory.settings
    first, second = (held.projects.searcher(project, settings, search) for _ in range(2))
    assert first.corpus is second.corpus  # joined once, not for each question
    note.write_text("# Habits\n\nA zebra guards every gateway.\n")
    held.writer.index(home.root).result(30)
    assert any("zebra" in text for text in held.found("gateway"))
    held.memory.write("new.md", "# New\n\nAn okapi at the gateway.\n")
    held.writer.index(project.root).result(30)
    assert any("okapi" in text for text in held.found("gateway"))


def test_the_user_memory_is_not_opened_if_switched_off(held: Held) -> None:
    Path(held.memory.home.memory).mkdir(parents=True)
    search = msgspec.structs.replace(held.memory.settings.search, user_memory=False)
    held.found("gateway", msgspec.structs.replace(held.memory.settings, search=search))
    assert held.watched == [held.memory.project.root]


def test_the_index_of_a_missing_project_is_kept(held: Held, tmp_path: Path) -> None:
    """Its directory may be on a disk that is not there just now: what is indexed of it stays."""
    own = held.memory.project
    other = make_memory(tmp_path / "other", DAYS, home=held.memory.home)
    held.memory.project = other.project
    held.found("gateway")
    held.projects.clear()
    Path(other.project.root).rename(tmp_path / "away")
    held.memory.project = own
    held.found("gateway", all_projects=True)
    assert held.watched == [own.root]
    Path(tmp_path / "away").rename(other.project.root)
    other.settings = held.memory.settings
    assert len(other.snapshot) == 6


def test_a_client_does_a_slow_first_index_itself(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = threading.Event()
    held.writer.passes.submit("before it", lambda: begin.wait(30))
    project, settings = held.memory.project, held.memory.settings
    with pytest.raises(NotHereError, match="for the first time"):
        held.projects.searcher(project, settings, settings.search, wait_seconds=0.01)
    begin.set()
    held.found("gateway")


def test_no_memory_at_all(held: Held) -> None:
    shutil.rmtree(held.memory.project.memory)
    assert held.found("gateway") == []
