"""`memkit projects`, and the memory that is true across projects."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memkit.index.catalog import USER_NAME, known_roots
from memkit.paths import Home
from memkit.projects.project import Project
from tests.cli.conftest import Run
from tests.memory import DAYS, Memory, day, make_memory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(str(tmp_path / "home"))
    Path(home.root).mkdir()
    # By words alone: what is found where is asked here, not how well.
    Path(home.config_file).write_text('[embedding]\nprovider = "none"\n[search]\nmode = "lexical"\n')
    return home


@pytest.fixture
def shop(tmp_path: Path, home: Home) -> Memory:
    memory = make_memory(tmp_path / "1", DAYS, home=home)
    root = Path(memory.project.root).rename(tmp_path / "shop")
    return replace(memory, project=Project(str(root)))


@pytest.fixture
def bank(tmp_path: Path, home: Home) -> Memory:
    text = day("2026-11-21", ("Where is the vault?", "Below the bank, behind the gateway."), session="5e55000b")
    memory = make_memory(tmp_path / "2", {"2026-11-21.md": text}, home=home)
    root = Path(memory.project.root).rename(tmp_path / "bank")
    return replace(memory, project=Project(str(root)))


def listed(run: Run, memory: Memory) -> dict[str, dict[str, Any]]:
    return {one["root"]: one for one in run(memory, "projects", "--json").json["projects"]}


def search(run: Run, memory: Memory, query: str, *more: str) -> list[tuple[str, str]]:
    """Project and heading of each result."""
    answer = run(memory, "search", query, "--all", "--json", *more).json
    return [(one["project"], one["heading"]) for one in answer["results"]]


class TestList:
    def test_nothing(self, run: Run, shop: Memory) -> None:
        assert run(shop, "projects").output == "No project is remembered yet.\n"
        assert run(shop, "projects", "--json").json == {"projects": []}

    def test_all_that_were_searched(self, run: Run, shop: Memory, bank: Memory) -> None:
        for memory in (shop, bank):
            run(memory, "index")
        found = listed(run, shop)
        assert list(found) == [bank.project.root, shop.project.root]  # the latest first
        assert found[shop.project.root] == {
            "root": shop.project.root, "name": "shop", "memory": shop.project.memory, "days": 3,
            "turns": 6, "notes": 0, "last": "2026-11-20", "identity": "path", "remote": None, "exists": True,
            "folder": ".memkit/memory", "linked": [],
        }  # fmt: skip
        text = run(shop, "projects").output
        assert f"shop: 3 days, 6 turns, last 2026-11-20\n    {shop.project.root}\n" in text

    def test_a_missing_project_is_listed_once(self, run: Run, shop: Memory, bank: Memory, tmp_path: Path) -> None:
        run(shop, "index")
        run(bank, "index")
        Path(shop.project.root).rename(tmp_path / "elsewhere")
        found = listed(run, bank)
        assert found[shop.project.root]["exists"] is False
        assert len(found) == 2
        assert "(gone)" in run(bank, "projects").output

    def test_a_renamed_project_with_a_remote(self, run: Run, shop: Memory, bank: Memory, tmp_path: Path) -> None:
        git = ["git", "-C", shop.project.root]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "remote", "add", "origin", "git@example.com:team/shop.git"], check=True)
        run(shop, "index")
        moved = replace(shop, project=Project(str(Path(shop.project.root).rename(tmp_path / "store"))))
        assert listed(run, bank)[shop.project.root]["exists"] is False
        found = listed(run, moved)  # it looks, and so is found
        assert list(found) == [moved.project.root] == known_roots(shop.home)
        assert search(run, moved, "staging")
        assert listed(run, bank) == found
        assert found[moved.project.root]["remote"] == "example.com/team/shop"

    def test_a_damaged_registry_is_named(self, run: Run, shop: Memory) -> None:
        Path(shop.home.projects).mkdir()
        Path(shop.home.projects, "registry.json").write_text("{")
        found = run(shop, "projects")
        assert found.status == 0
        assert "registry.json" in found.errors
        assert "registry.json" in run(shop, "projects", "rename", "x").complaint


class TestLink:
    def test_link_and_unlink(self, run: Run, shop: Memory, bank: Memory) -> None:
        done = run(bank, "projects", "link", shop.project.root)
        assert (done.status, done.errors) == (0, "")
        assert run(bank, "status", "--json").json["project"] == shop.project.root
        assert {name for name, _ in search(run, bank, "gateway")} == {"shop"}
        assert listed(run, shop)[shop.project.root]["linked"] == [bank.project.root]
        assert f"shared by {bank.project.root}" in run(shop, "projects").output
        assert run(bank, "projects", "unlink", "--json").json == {"root": bank.project.root, "shares": None}
        assert {name for name, _ in search(run, bank, "gateway")} == {"bank"}
        assert "does not share another" in run(bank, "projects", "unlink").complaint

    def test_a_project_cannot_link_to_itself(self, run: Run, shop: Memory, bank: Memory) -> None:
        run(bank, "projects", "link", shop.project.root)
        assert "already" in run(shop, "projects", "link", bank.project.root).complaint
        assert "already" in run(shop, "projects", "link", ".").complaint

    def test_errors(self, run: Run, shop: Memory, bank: Memory) -> None:
        assert "no such directory" in run(shop, "projects", "link", "/no/where").complaint
        assert run(shop, "projects", "link").status == 2
        assert run(shop, "projects", "list", "x").status == 2
        assert run(shop, "projects", "link", bank.project.root, "--remove").status == 2

    def test_not_from_where_memkit_is_off(self, run: Run, shop: Memory, bank: Memory) -> None:
        run(bank, "off")
        assert "memkit on" in run(bank, "projects", "link", shop.project.root).complaint


def test_a_name(run: Run, shop: Memory) -> None:
    run(shop, "index")
    run(shop, "projects", "rename", "The \x1b[31mshop")
    assert listed(run, shop)[shop.project.root]["name"] == "The shop"
    assert {name for name, _ in search(run, shop, "gateway")} == {"The shop"}
    assert "empty" in run(shop, "projects", "rename", " \n").complaint


class TestMerge:
    def test_and_removed(self, run: Run, shop: Memory, bank: Memory) -> None:
        run(shop, "index")
        text = run(bank, "projects", "merge", shop.project.root, "--remove").output
        assert "6 turns" in text and "3 files removed" in text
        assert search(run, shop, "staging") == []
        assert search(run, bank, "staging")

    def test_from_a_place_that_is_gone(self, run: Run, shop: Memory, bank: Memory, tmp_path: Path) -> None:
        gone = tmp_path / "gone"
        kept = Project.at_root(str(gone), shop.home)
        Path(kept.memory).parent.mkdir(parents=True)
        Path(shop.project.memory).rename(kept.memory)
        for name in (str(gone), kept.root):
            assert run(bank, "projects", "merge", name).status == 0
        assert search(run, bank, "staging")
        # What is imported of it later, or still waits, goes there too.
        assert Project.at_root(str(gone), shop.home) == bank.project

    def test_errors(self, run: Run, shop: Memory, home: Home, tmp_path: Path) -> None:
        Path(home.memory).mkdir()
        assert "already" in run(shop, "projects", "merge", ".").complaint
        for name in (str(tmp_path / "none"), home.root):
            assert "has no memory" in run(shop, "projects", "merge", name).complaint


class TestUserMemory:
    @pytest.fixture(autouse=True)
    def known(self, home: Home) -> None:
        Path(home.memory).mkdir()
        Path(home.memory, "habits.md").write_text(
            "# Habits\n\n## Gateways\n\nA gateway of ours is always written in Go, in every project.\n"
        )

    def test_it_is_searched_too(self, run: Run, shop: Memory, bank: Memory) -> None:
        for memory, name in ((shop, "shop"), (bank, "bank")):
            assert {project for project, _ in search(run, memory, "gateway")} == {name, USER_NAME}
        assert "memory/habits.md" in run(shop, "search", "gateway", "--all").output

    def test_results_say_so(self, run: Run, shop: Memory) -> None:
        lines = run(shop, "search", "gateway", "--all").output.splitlines()
        assert f"{USER_NAME}: memory/habits.md" in lines
        assert not [line for line in lines if "shop: " in line]
        text = run(shop, "recall", "--stdin", stdin=b"gateway written in Go").output
        assert f'project="{USER_NAME}" source="memory/habits.md' in text
        assert 'project="shop"' not in text

    def test_it_can_be_left_out(self, run: Run, shop: Memory, home: Home) -> None:
        with Path(home.config_file).open("a") as file:
            file.write("user_memory = false\n")
        assert {project for project, _ in search(run, shop, "gateway")} == {"shop"}
        assert {name for name, _ in search(run, shop, "gateway", "--all-projects")} == {"shop", USER_NAME}

    def test_all_projects_have_it_once(self, run: Run, shop: Memory, bank: Memory) -> None:
        run(bank, "index")
        found = search(run, shop, "gateway", "--all-projects")
        assert {name for name, _ in found} == {"shop", "bank", USER_NAME}
        assert [name for name, _ in found].count(USER_NAME) == 1

    def test_it_is_expanded(self, run: Run, shop: Memory, bank: Memory) -> None:
        run(bank, "index")
        for words, path in (("written in Go", "habits.md"), ("below the bank", "2026-11-21.md")):
            answer = run(shop, "search", words, "--all", "--all-projects", "--json", "-k", "1").json
            (section,) = run(shop, "expand", answer["results"][0]["id"], "--json").json["sections"]
            assert Path(section["path"]).name == path
        assert "in this project" in run(shop, "expand", "0123456789ab").complaint

    def test_an_edit_is_found_at_once(self, run: Run, shop: Memory, home: Home) -> None:
        search(run, shop, "gateway")
        Path(home.memory, "more.md").write_text("# Zebra\n\nStripes.\n")
        assert search(run, shop, "zebra") == [(USER_NAME, "Zebra")]

    def test_it_is_listed(self, run: Run, shop: Memory, home: Home) -> None:
        search(run, shop, "gateway")
        one = listed(run, shop)[home.root]
        assert (one["name"], one["memory"], one["exists"]) == (USER_NAME, home.memory, True)

    def test_a_project_without_memory_finds_it(self, run: Run, bank: Memory) -> None:
        bank.path("2026-11-21.md").unlink()
        assert search(run, bank, "gateway") == [(USER_NAME, "Gateways")]
