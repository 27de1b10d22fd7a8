"""`memkit uninstall` removes all of memkit, and nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from memkit.agents.codex import installation as codex
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.sessions import Session, Sessions
from memkit.environment import launcher_path, launcher_text, write_launcher
from memkit.projects.project import Project
from tests.cli.conftest import Run
from tests.memory import DAYS, Memory, make_memory

FAKE_CLIENT = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
if sys.argv[1:3] == ["plugin", "uninstall"]:
    os.unlink({installed!r})
"""


@pytest.fixture
def memory(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A home with files of every kind."""
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    memory = make_memory(tmp_path, DAYS)
    home = memory.home
    assert run(memory, "config", "set", "search.k", "3").status == 0
    run(memory, "index")
    run(memory, "work")
    Sessions(home).save(Session("5e550001", "/gone.jsonl", memory.project.root))
    Archive(home).append("5e550001", [ArchivedTurn("8ad3df7f", ())])
    Path(home.ledger).write_text("{}\n")
    for path in ("env/0123456789abcdef/bin/python", "env/.lock", "models/all-MiniLM-L6-v2/tokenizer.json",
                 "log/memkit.log.1", "log/worker.log", "run/shown/a.json", "run/service.sock"):  # fmt: skip
        Path(home.root, path).parent.mkdir(parents=True, exist_ok=True)
        Path(home.root, path).write_text("x")
    return memory


def gone_project(memory: Memory) -> Path:
    """A day of a project whose directory is gone."""
    project = Project.at_root("/home/you/gone-for-ever", memory.home)
    day = Path(project.memory, "2026-11-01.md")
    day.parent.mkdir(parents=True)
    day.write_text("# 2026-11-01\n")
    return day


def test_everything_but_the_markdown_is_removed(run: Run, memory: Memory) -> None:
    day = gone_project(memory)
    done = run(memory, "uninstall", "--yes", "--json").json
    assert done["problems"] == []
    assert [*Path(memory.home.root).rglob("*.*")] == [day.parents[1], day]
    assert sorted(path.name for path in Path(memory.project.memory).iterdir()) == sorted(DAYS)
    left = {"path": memory.project.memory, "reason": "the memory"}
    assert left in done["left"] and {one["path"] for one in done["left"]} >= {left["path"], str(day.parent)}


def test_keep_memory_removes_derived_files_and_memkits_launcher(run: Run, memory: Memory) -> None:
    day = gone_project(memory)
    write_launcher("#!/bin/sh\nexec /usr/bin/memkit\n")  # of somebody else
    done = run(memory, "uninstall", "--keep-memory", "--yes", "--json").json
    assert done["problems"] == []
    assert launcher_path().exists() and str(launcher_path()) not in done["removed"]
    kept = {"config.toml", "ledger.jsonl", "archive", "sessions", "projects"}
    assert {path.name for path in Path(memory.home.root).iterdir()} == kept
    assert day.exists()
    assert Archive(memory.home).turns("5e550001")
    write_launcher(launcher_text("/memkit", "0"))
    assert str(launcher_path()) in run(memory, "uninstall", "--keep-memory", "--yes", "--json").json["removed"]
    assert not launcher_path().exists()


def test_foreign_files_stay_and_are_listed(run: Run, memory: Memory, tmp_path: Path) -> None:
    others = [Path(memory.home.root, name) for name in
              ("mine.txt", "models/my-model/weights", "env/venv/x", "archive/box.zip", "log/diary.txt")]  # fmt: skip
    others.append(Path(memory.project.root, ".memkit", "mine"))
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a").write_text("mine")
    Path(memory.home.index, "snapshots", "link").symlink_to(tmp_path / "precious")
    (tmp_path / "spool").mkdir()
    Path(memory.home.spool).symlink_to(tmp_path / "spool")
    done = run(memory, "uninstall", "--everything", "--yes", "--json").json
    left = [path for path in Path(memory.home.root).rglob("*") if path.is_file()]
    assert sorted(left) == sorted(others[:-1])
    assert others[-1].exists()
    assert (tmp_path / "precious" / "a").exists()
    assert (tmp_path / "spool").is_dir()
    named = {one["path"] for one in done["left"]}
    assert {str(others[0]), str(others[1].parent), str(others[-1]), str(tmp_path / "spool")} <= named


@pytest.mark.parametrize("root", ["/", "user", "."])
def test_no_home_directory_is_removed(
    run: Run, memory: Memory, tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user" / "index").mkdir(parents=True)
    memory.home.root = str(tmp_path / root) if root != "/" else "/"
    done = run(memory, "uninstall", "--everything", "--yes")
    assert "holds more than memkit; nothing is removed" in done.complaint
    assert (tmp_path / "user" / "index").is_dir()
    (tmp_path / "other").mkdir()
    memory.home.root = str(tmp_path / "other")
    assert "there is no memory home" in run(memory, "uninstall", "--yes").complaint


def test_codex_loses_what_was_not_edited(
    run: Run, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    codex.install(["/opt/memkit"])
    codex.skill_file().write_text(codex.skill_file().read_text().replace("Search", "Look"))
    assert re.search(r"^  hooks and skill +Codex$", run(memory, "uninstall").output, re.MULTILINE)
    done = run(memory, "uninstall", "--yes", "--json").json
    assert {"path": str(codex.skill_file()), "reason": "you edited what memkit wrote there"} in done["left"]
    assert codex.skill_file().exists() and not codex.hooks_file().exists()


def test_it_asks_first(run: Run, memory: Memory) -> None:
    asked = run(memory, "uninstall")
    assert (asked.status, asked.errors) == (1, "memkit: this needs confirmation, but there is no terminal to ask on; run it in a terminal of your own\n")
    assert asked.output.startswith(f"This will be removed from {memory.home.root} and your agents:\n")
    assert re.search(r"^  original exchanges +1 file +[0-9]+ bytes$", asked.output, re.MULTILINE)
    assert re.search(r"^  model +1 file +1 byte$", asked.output, re.MULTILINE)
    assert asked.output.endswith(f"This stays (the memory):\n  {memory.project.memory}\n")
    assert run(memory, "uninstall", "--keep-memory", "--everything").status == 2
    assert Path(memory.home.root, "env", "0123456789abcdef").is_dir()


def test_a_summary_is_short_and_a_dry_run_lists_all(run: Run, memory: Memory) -> None:
    for number in range(40):
        Path(memory.home.sessions, f"{number}.json").write_text("{}")
        Path(memory.home.root, f"mine-{number}\x1b[2J").write_text("mine")
    shown = run(memory, "uninstall").output
    assert len(shown.splitlines()) < 30
    assert re.search(r"^  state of sessions +41 files", shown, re.MULTILINE)
    assert "  … and 30 more; --dry-run lists all\n" in shown
    everything = run(memory, "uninstall", "--dry-run")
    assert everything.status == 0
    assert "\x1b" not in everything.output
    for number in range(40):
        assert f"{number}.json\n" in everything.output
        assert f"mine-{number}\ufffd" in everything.output or f"mine-{number}\n" in everything.output
    planned = run(memory, "uninstall", "--dry-run", "--json").json
    assert (planned["removed"], planned["problems"]) == ([], [])
    assert memory.home.index in {os.path.dirname(path) for path in planned["would_remove"]}
    assert all(os.path.lexists(path) for path in planned["would_remove"])


def test_claude_code_uninstalls_the_plugin(run: Run, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "claude" / "plugins" / "installed_plugins.json"
    installed.parent.mkdir(parents=True)
    installed.write_text(json.dumps({"plugins": {"memkit@memkit": [], "other@memkit": []}}))
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    refused = run(memory, "uninstall", "--keep-memory", "--yes")
    assert (refused.status, "there is no `claude`" in refused.errors) == (1, True)
    log, client = tmp_path / "said", tmp_path / "bin" / "claude"
    client.parent.mkdir()
    client.write_text(FAKE_CLIENT.format(python=sys.executable, log=str(log), installed=str(installed)))
    client.chmod(0o700)
    monkeypatch.setenv("PATH", f"{client.parent}{os.pathsep}{path}")
    assert run(memory, "uninstall", "--yes", "--json").json["problems"] == []
    assert log.read_text() == "plugin uninstall memkit@memkit\nplugin marketplace remove memkit\n"
