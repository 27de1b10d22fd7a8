"""`memkit projects`, and the memory that is true across projects."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memkit.index.catalog import USER_NAME
from memkit.paths import Home
from memkit.projects.project import Project
from tests.cli.conftest import Run, holders
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

    def test_all_that_were_searched(self, run: Run, shop: Memory, bank: Memory) -> None:
        assert run(shop, "projects").output == "No project is remembered yet.\n"
        assert run(shop, "projects", "--json").json == {"projects": []}
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
        Path(shop.project.root).rename(f"{shop.project.root}-away")
        assert [one["exists"] for one in listed(run, bank).values()] == [True, False]
        assert "(gone)" in run(bank, "projects").output


class TestLink:
    def test_link_and_unlink(self, run: Run, shop: Memory, bank: Memory) -> None:
        done = run(bank, "projects", "link", shop.project.root)
        assert (done.status, done.errors) == (0, "")
        assert run(bank, "status", "--json").json["project"] == shop.project.root
        assert {name for name, _ in search(run, bank, "gateway")} == {"shop"}
        assert listed(run, shop)[shop.project.root]["linked"] == [bank.project.root]
        for place in (bank.project.root, "."):  # not to itself
            assert "already" in run(shop, "projects", "link", place).complaint
        assert f"shared by {bank.project.root}" in run(shop, "projects").output
        assert run(bank, "projects", "unlink", "--json").json == {"root": bank.project.root, "shares": None}
        assert {name for name, _ in search(run, bank, "gateway")} == {"bank"}
        assert "does not share another" in run(bank, "projects", "unlink").complaint
        assert "no such directory" in run(shop, "projects", "link", "/no/where").complaint
        for words in ("link", "list x", f"link {bank.project.root} --remove"):
            assert run(shop, "projects", *words.split()).status == 2
        run(bank, "off")
        assert "memkit on" in run(bank, "projects", "link", shop.project.root).complaint


def test_a_name(run: Run, shop: Memory) -> None:
    run(shop, "index")
    run(shop, "projects", "rename", "The \x1b[31mshop")
    assert listed(run, shop)[shop.project.root]["name"] == "The shop"
    assert {name for name, _ in search(run, shop, "gateway")} == {"The shop"}
    assert "empty" in run(shop, "projects", "rename", " \n").complaint


class TestMerge:
    def test_and_removed(self, run: Run, shop: Memory, bank: Memory, home: Home, tmp_path: Path) -> None:
        run(shop, "index")
        Path(home.memory).mkdir()
        assert "already" in run(shop, "projects", "merge", ".").complaint
        for name in (str(tmp_path / "none"), home.root):
            assert "has no memory" in run(shop, "projects", "merge", name).complaint
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


class TestUserMemory:
    @pytest.fixture(autouse=True)
    def known(self, home: Home) -> None:
        Path(home.memory).mkdir()
        Path(home.memory, "habits.md").write_text(
            "# Habits\n\n## Gateways\n\nA gateway of ours is always written in Go, in every project.\n"
        )

    def test_results_say_so(self, run: Run, shop: Memory) -> None:
        lines = run(shop, "search", "gateway", "--all").output.splitlines()
        assert f"{USER_NAME}: memory/habits.md" in lines
        assert not [line for line in lines if "shop: " in line]
        text = run(shop, "recall", "--stdin", stdin=b"gateway written in Go").output
        assert f'project="{USER_NAME}" source="memory/habits.md' in text
        assert 'project="shop"' not in text

    def test_every_project_finds_and_expands_it(self, run: Run, shop: Memory, bank: Memory, home: Home) -> None:
        run(bank, "index")
        for memory, name in ((shop, "shop"), (bank, "bank")):
            assert {project for project, _ in search(run, memory, "gateway")} == {name, USER_NAME}
        found = search(run, shop, "gateway", "--all-projects")
        assert {name for name, _ in found} == {"shop", "bank", USER_NAME}
        assert [name for name, _ in found].count(USER_NAME) == 1
        for words, path in (("written in Go", "habits.md"), ("below the bank", "2026-11-21.md")):
            answer = run(shop, "search", words, "--all", "--all-projects", "--json", "-k", "1").json
            (section,) = run(shop, "expand", answer["results"][0]["id"], "--json").json["sections"]
            assert Path(section["path"]).name == path
        one = listed(run, shop)[home.root]
        assert (one["name"], one["memory"], one["exists"]) == (USER_NAME, home.memory, True)
        Path(home.memory, "more.md").write_text("# Zebra\n\nStripes.\n")
        assert search(run, shop, "zebra") == [(USER_NAME, "Zebra")]  # at once
        bank.path("2026-11-21.md").unlink()  # also where a project has no memory
        assert search(run, bank, "gateway") == [(USER_NAME, "Gateways")]
        with Path(home.config_file).open("a") as file:
            file.write("user_memory = false\n")
        assert {project for project, _ in search(run, shop, "gateway")} == {"shop"}
        assert USER_NAME in {name for name, _ in search(run, shop, "gateway", "--all-projects")}


# What is true across projects: notes in the user's own memory, and what else knows that memory.


SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Three days of a project, searched without a model."""
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return make_memory(tmp_path, DAYS)


def remember(run: Run, memory: Memory, text: str) -> Path:
    """The file in which the note stands."""
    made = run(memory, "remember", "--user", text, "--json").json
    assert Path(made["path"]).parent == Path(memory.home.memory)
    return Path(made["path"])


def test_a_note_is_found_from_every_project_and_forgotten_for_good(run: Run, memory: Memory) -> None:
    day = remember(run, memory, "I take rutabagas for lunch.")
    remember(run, memory, "I prefer quinces.")
    assert not Path(memory.home.root, ".gitignore").exists()
    assert sorted(path.name for path in Path(memory.project.memory).iterdir()) == sorted(DAYS)
    other = make_memory(Path(memory.home.root).parent / "elsewhere", home=memory.home)
    for where in (memory, other):
        result, *_ = run(where, "search", "rutabagas", "--json").json["results"]
        assert Path(where.home.root, result["source"]) == day
    shown = run(other, "forget", result["id"], "--dry-run")
    assert "Note: I take rutabagas" in shown.output
    assert run(other, "forget", result["id"], "--yes").output.endswith("Forgotten.\n")
    assert holders("rutabaga", memory.home.root, memory.project.root) == []
    assert "quinces" in day.read_text()
    day.write_text(day.read_text().replace("quinces.", SECRET))
    assert run(memory, "audit", "--all-projects").status == 1
    assert run(memory, "audit", "--all-projects", "--fix").status == 0
    assert holders(SECRET, memory.home.root) == []
    assert run(memory, "forget", "--user", "--everything", "--yes").status == 0
    assert holders("I prefer", memory.home.root, memory.project.root) == []
    assert sorted(path.name for path in Path(memory.project.memory).iterdir()) == sorted(DAYS)


def test_a_passage_of_it_goes_once_though_projects_lie_below_the_home(run: Run, memory: Memory) -> None:
    text = "# One\n\n" + "A quince. " * 30 + "\n\n# Two\n\nThe rutabaga. " + "So be it. " * 30
    Path(memory.home.memory).mkdir(parents=True)
    mine = Path(memory.home.memory, "me.md")
    mine.write_text(text + "\n\n# Three\n\n" + "A leek. " * 30 + "\n")
    kept = Path(memory.home.projects, "gone-01234567", ".memkit", "memory", "2026-11-01.md")
    kept.parent.mkdir(parents=True)
    kept.write_text("# 2026-11-01\n\nSomething.\n")
    result, *_ = run(memory, "search", "rutabaga", "--json").json["results"]
    assert run(memory, "forget", result["id"], "--yes").status == 0
    assert holders("rutabaga", memory.home.root, memory.project.root) == []
    assert mine.read_text() == text[: text.index("# Two")] + "# Three\n\n" + "A leek. " * 30 + "\n"


def test_it_is_restored_into_another_home_kept_for_ever_and_uninstalled_last(run: Run, memory: Memory, tmp_path: Path) -> None:
    day = remember(run, memory, "I prefer quinces.")
    backup = str(tmp_path / "b.tar.zst")
    done = run(memory, "backup", backup, "--json").json
    assert done["projects"] == sorted([memory.home.root, memory.project.root])
    text = day.read_text()
    home = Path(memory.home.root)
    home.rename(tmp_path / "other-home")
    memory.home = type(memory.home)(str(tmp_path / "other-home"))
    shutil.rmtree(memory.home.memory)
    assert run(memory, "restore", backup, "--yes").status == 0
    assert Path(memory.home.memory, day.name).read_text() == text
    assert not home.exists()
    old = Path(memory.home.memory, "2001-01-01.md")
    old.write_text("# 2001-01-01\n\n## 09:00 Note: a quince <!-- note:01234567 -->\na quince\n")
    memory.write("2001-01-02.md", "# 2001-01-02\n\nA leek.\n")
    run(memory, "index")
    run(memory, "config", "set", "memory.keep_days", "30")
    run(memory, "jobs", "run", "tidy")
    assert old.exists()  # days that are past their time stay in it
    assert not memory.path("2001-01-02.md").exists()
    done = run(memory, "uninstall", "--yes", "--json").json
    assert {"path": memory.home.memory, "reason": "the memory"} in done["left"]
    assert {path for path in Path(memory.home.root).rglob("*") if path.is_file()} == {old, Path(memory.home.memory, day.name)}
    done = run(memory, "uninstall", "--everything", "--yes", "--json").json
    assert (done["left"], done["problems"]) == ([], [])
    assert not Path(memory.home.memory).exists()
