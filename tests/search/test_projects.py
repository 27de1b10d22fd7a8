"""One search over the memories of all projects, wherever those have gone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from memkit.index.catalog import known_roots
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.ranking import Searcher, open_searcher
from memkit.search.results import Result, SearchRequest
from tests.memory import Memory, day, flip_byte, make_memory

QUESTION = SearchRequest("which port", k=50, minimum=0)


def make_project(home: Home, root: Path, service: str, port: int, remote: str = "") -> Memory:
    """A project with one turn, in the same session and on the same branch as any other."""
    text = day("2026-11-20", (f"Which port has the {service}?", f"The {service} is on {port}."))
    memory = make_memory(
        root, {"2026-11-20.md": text}, home=home, embedding={"provider": "none"}, search={"mode": "lexical"},
    )  # fmt: skip
    if remote:
        git = ["git", "-C", memory.project.root]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "remote", "add", "origin", remote], check=True)
    return memory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(str(tmp_path / "home"))
    Path(home.root).mkdir()
    Path(home.config_file).write_text('[embedding]\nprovider = "none"\n')
    return home


@pytest.fixture
def one(home: Home, tmp_path: Path) -> Memory:
    return make_project(home, tmp_path / "1", "gateway", 7443)


@pytest.fixture
def two(home: Home, tmp_path: Path) -> Memory:
    return make_project(home, tmp_path / "2", "database", 5432)


def opened(memory: Memory, *, all_projects: bool = True) -> Searcher:
    return open_searcher(
        memory.project, memory.home, memory.settings, memory.said.append, all_projects=all_projects
    )


def found(memory: Memory, request: SearchRequest = QUESTION) -> dict[str, Result]:
    """Results from all projects, by what is on the port."""
    results = opened(memory).answer(request).results
    by_service = {result.chunk.heading.split()[-1].rstrip("?"): result for result in results}
    assert len(by_service) == len(results)
    return by_service


def test_all_indexed_projects_are_searched(one: Memory, two: Memory) -> None:
    one.sync(embedder=None)
    assert found(one).keys() == {"gateway"}  # the other was never indexed
    assert found(two).keys() == {"gateway", "database"}
    for memory in (one, two):
        assert found(memory).keys() == {"gateway", "database"}
        (own,) = opened(memory, all_projects=False).answer(QUESTION).results
        assert own.chunk in [result.chunk for result in found(memory).values()]
    assert known_roots(one.home) == sorted([one.project.root, two.project.root])
    away = Path(two.project.root).with_name("away")
    Path(two.project.root).rename(away)
    assert found(one).keys() == {"gateway"}
    # It may be on a disk that is not mounted: its index waits for it.
    away.rename(two.project.root)
    assert len(two.snapshot) == 1
    assert found(one).keys() == {"gateway", "database"}
    two.write("2026-11-21.md", day("2026-11-21", ("Which port has the cache?", "6379.")))
    assert found(one).keys() == {"gateway", "database", "cache"}
    shutil.rmtree(one.project.memory)
    assert found(one).keys() == {"database", "cache"}
    assert len(opened(one, all_projects=False).corpus) == 0


def test_results_say_where_they_are_from(home: Home, tmp_path: Path) -> None:
    for name, service in (("shop", "gateway"), ("bank", "database")):
        memory = make_project(home, tmp_path / name, service, 1000)
        Path(memory.project.root).rename(tmp_path / name / name)
        memory.project = Project(str(tmp_path / name / name))
        memory.sync(embedder=None)
    projects = {service: result.project for service, result in found(memory).items()}
    assert projects == {"gateway": "shop", "database": "bank"}


@pytest.mark.parametrize("remote", ["", "git@example.com:team/app.git"])
def test_a_project_that_was_moved_is_found_once(home: Home, tmp_path: Path, one: Memory, remote: str) -> None:
    moved = make_project(home, tmp_path / "2", "database", 5432, remote)
    moved.sync(embedder=None)
    one.sync(embedder=None)
    target = tmp_path / "elsewhere"
    Path(moved.project.root).rename(target)
    assert found(one).keys() == {"gateway"}  # nobody knows where it is
    moved.project = Project(str(target))
    assert found(moved).keys() == {"gateway", "database"}
    assert found(one).keys() == {"gateway", "database"}
    assert found(one)["database"].project == "elsewhere"


@pytest.mark.parametrize("victim", ["manifest", "chunks", "columns", "names"])
def test_a_damaged_index_of_another_project(one: Memory, two: Memory, victim: str) -> None:
    """It is made anew or, if not even its root can be read, left out until it is searched there."""
    one.sync(embedder=None)
    two.sync(embedder=None)
    flip_byte(two.snapshot.directory, victim)
    expected = {"gateway"} if victim == "manifest" else {"gateway", "database"}
    assert found(one).keys() == expected
    assert found(two).keys() == {"gateway", "database"}
    assert found(one).keys() == {"gateway", "database"}


def test_each_project_is_read_in_its_own_language(one: Memory, two: Memory) -> None:
    Path(two.project.root, ".memkit.toml").write_text('[search]\nlanguage = "german"\n')
    two.write("notes.md", "# Häuser\n\n" + "Die Häuser waren alt. " * 9)
    one.sync(embedder=None)
    results = opened(two).answer(SearchRequest("Haus", minimum=0)).results
    assert results == []  # this searcher was told of English
    results = opened(one).answer(SearchRequest("Haus", k=50, minimum=0)).results
    assert results[0].chunk.heading == "Häuser"
    assert results[0].lexical > 0
