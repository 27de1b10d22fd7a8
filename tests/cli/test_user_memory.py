"""What is true across projects: notes in the user's own memory, and what else knows that memory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.memory import DAYS, Memory, make_memory

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


def holders(memory: Memory, word: str) -> list[Path]:
    files = [*Path(memory.home.root).rglob("*"), *Path(memory.project.root).rglob("*")]
    return [path for path in files if path.is_file() and word.encode() in path.read_bytes()]


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
    assert holders(memory, "rutabaga") == []
    assert "quinces" in day.read_text()


def test_all_of_it_is_forgotten_with_user(run: Run, memory: Memory) -> None:
    remember(run, memory, "I prefer quinces.")
    Path(memory.home.memory, "me.md").write_text("# Me\n\nA rutabaga a day.\n")
    run(memory, "index")
    assert run(memory, "forget", "--user", "--everything", "--yes").status == 0
    assert holders(memory, "rutabaga") + holders(memory, "quinces") == []
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
    assert holders(memory, "rutabaga") == []
    assert mine.read_text() == text[: text.index("# Two")] + "# Three\n\n" + "A leek. " * 30 + "\n"


def test_it_is_in_a_backup_and_restored_into_another_home(run: Run, memory: Memory, tmp_path: Path) -> None:
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


def test_an_uninstall_keeps_and_names_it(run: Run, memory: Memory) -> None:
    day = remember(run, memory, "I prefer quinces.")
    text = day.read_text()
    done = run(memory, "uninstall", "--yes", "--json").json
    assert {"path": memory.home.memory, "reason": "the memory"} in done["left"]
    assert [path for path in Path(memory.home.root).rglob("*") if path.is_file()] == [day]
    assert day.read_text() == text
    done = run(memory, "uninstall", "--everything", "--yes", "--json").json
    assert (done["left"], done["problems"]) == ([], [])
    assert not Path(memory.home.memory).exists()


def test_an_audit_of_all_looks_into_it(run: Run, memory: Memory) -> None:
    day = remember(run, memory, "I prefer quinces.")
    day.write_text(day.read_text().replace("quinces.", SECRET))
    assert run(memory, "audit", "--all-projects").status == 1
    assert run(memory, "audit", "--all-projects", "--fix").status == 0
    assert holders(memory, SECRET) == []
    assert "I prefer" in day.read_text()


def test_days_that_are_past_their_time_stay_in_it(run: Run, memory: Memory) -> None:
    Path(memory.home.memory).mkdir(parents=True)
    old = Path(memory.home.memory, "2001-01-01.md")
    old.write_text("# 2001-01-01\n\n## 09:00 Note: a quince <!-- note:01234567 -->\na quince\n")
    memory.write("2001-01-02.md", "# 2001-01-02\n\nA leek.\n")
    run(memory, "index")
    run(memory, "config", "set", "memory.keep_days", "30")
    run(memory, "jobs", "run", "tidy")
    assert old.exists()
    assert not memory.path("2001-01-02.md").exists()
