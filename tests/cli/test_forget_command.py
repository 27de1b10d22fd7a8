"""`memkit forget`, `memkit remember`, and `memkit edit`: their output and effect."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from tests.ci import IN_CI
from tests.cli.conftest import Run, holders, lexical_memory
from tests.memory import DAYS, Memory


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Three days, indexed without a model."""
    return lexical_memory(tmp_path, DAYS)


def test_forget_by_query(run: Run, memory: Memory) -> None:
    shown = run(memory, "forget", "--query", "PolicyController", "-k", "1", "--dry-run")
    assert (shown.status, shown.errors) == (0, "")
    assert "2026-11-19 09:02 What broke the login page?" in shown.output
    assert shown.output.endswith("To be erased from journal, archive, and index: 1 turn.\n")
    refused = run(memory, "forget", "--query", "PolicyController", "-k", "1")
    assert refused.status == 1
    assert "no terminal to ask on" in refused.errors
    assert holders("PolicyController", memory.home.root, memory.project.root)
    done = run(memory, "forget", "--query", "PolicyController", "-k", "1", "--yes", "--json")
    assert done.status == 0
    assert (done.json["removed"], len(done.json["turns"]), done.json["days"]) == (True, 1, ["2026-11-19"])
    assert holders("PolicyController", memory.home.root, memory.project.root) == []
    assert "Priya" in memory.path("2026-11-19.md").read_text()
    assert run(memory, "search", "PolicyController").output.startswith("Nothing found")
    assert Tombstones(memory.home).unfinished() is None
    for arguments, said in (
        ((), "name what to forget"),
        (("abc", "--everything"), "give only one of"),
        (("ffffffffffff",), "has the ID 'ffffffffffff'"),
        (("--session", "nobody"), "no session 'nobody' is remembered"),
        (("--query", "xylophone"), "nothing found for that query"),
    ):
        refused = run(memory, "forget", "--yes", *arguments)
        assert (refused.status in (1, 2), refused.output, said in refused.errors) == (True, "", True)
    assert run(memory, "forget", "--until", "2026-11-18", "--yes").output.endswith("Forgotten.\n")
    assert not memory.path("2026-11-18.md").exists()
    assert memory.path("2026-11-19.md").exists()
    if IN_CI:  # reads the whole index in a process of its own
        assert "index-differs" not in run(memory, "doctor", "--deep", "--json").output


def test_remember(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The gateway moves to 7444.\n\n# No heading\nSay <private>not this</private>."
    made = run(memory, "remember", "-", "--tag", "gateway", "--json", stdin=text.encode())
    assert made.status == 0
    note = Path(made.json["path"])
    written = note.read_text()
    assert "Note: The gateway moves to 7444. <!-- note:" in written
    assert "\n**No heading**\nSay [redacted:private].\n\nTags: gateway\n" in written
    found = run(memory, "search", "gateway 7444", "--json", "--all").json["results"][0]
    assert (found["kind"], found["date"], found["session"]) == ("note", note.stem, "")
    assert found["content"].count("7444") == 2
    gone = run(memory, "forget", found["id"], "--yes", "--json")
    assert gone.json["notes"] == [made.json["id"]]
    assert not note.exists()
    assert holders("7444", memory.home.root, memory.project.root) == []
    assert "no text to remember" in run(memory, "remember", " \n").complaint
    assert "at most 20,000 characters" in run(memory, "remember", "x" * 20_001).complaint
    run(memory, "off")
    assert "memkit is off" in run(memory, "remember", "something").complaint
    run(memory, "on")
    monkeypatch.setenv("MEMKIT_DISABLE", "1")
    assert "MEMKIT_DISABLE is set" in run(memory, "remember", "something").complaint


EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[-1])
path.write_text(path.read_text().replace("Priya", "Quentin"))
"""


def test_edit(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "an editor.py"
    script.write_text(EDITOR)
    monkeypatch.setenv("VISUAL", f"'{sys.executable}' '{script}'")
    run(memory, "index")
    before = memory.path("2026-11-19.md").read_text()
    done = run(memory, "edit", "2026-11-19")
    assert done.output.endswith("is changed and indexed.\n")
    assert memory.path("2026-11-19.md").read_text() == before.replace("Priya", "Quentin")
    assert "Quentin" in run(memory, "search", "Quentin").output
    assert run(memory, "edit", "2026-11-19").output.endswith("is unchanged.\n")
    assert "has no memory of 2020-01-01" in run(memory, "edit", "2020-01-01").complaint
    assert run(memory, "edit", "--json").json["changed"] is False
    script.write_text("raise SystemExit(3)")
    assert "the memory is unchanged" in run(memory, "edit", "2026-11-19").complaint
    monkeypatch.setenv("VISUAL", "no-such-editor-anywhere")
    assert "no-such-editor-anywhere: Editing failed" in run(memory, "edit").complaint
    monkeypatch.setenv("VISUAL", "'never closed")
    assert "the memory is unchanged" in run(memory, "edit").complaint


@pytest.fixture
def copy(run: Run, memory: Memory) -> Memory:
    """Another project of the same home, with the same days."""
    root = Path(memory.project.root).with_name("copy")
    shutil.copytree(memory.project.root, root)
    made = dataclasses.replace(memory, project=Project(str(root)))
    for one in (memory, made):
        run(one, "index")
    return made


def test_other_projects_keep_shared_turns(run: Run, memory: Memory, copy: Memory) -> None:
    by_id = run(memory, "forget", "--query", "Priya", "-k", "1", "--yes").output
    assert f"  from {copy.project.root}: 1 of them\n" in by_id
    assert not any("Priya" in path.read_text() for path in Path(copy.project.memory).iterdir())
    shown = run(memory, "forget", "--everything", "--dry-run")
    count = shown.output.count("\n") - 2
    assert f"  {copy.project.root} keeps {count} of them (--everywhere erases them, in a terminal of your own)\n" in shown.output
    told = run(memory, "forget", "--everything", "--dry-run", "--json").json
    assert told["projects"] == {memory.project.root: count}
    assert told["shared"] == {copy.project.root: count}
    assert run(memory, "forget", "--everything", "--yes").output.endswith("Forgotten.\n")
    assert not list(Path(memory.project.memory).glob("*.md"))
    assert len(list(Path(copy.project.memory).glob("*.md"))) == len(DAYS)
    assert "PolicyController" in run(copy, "search", "--all", "PolicyController").output
    again = run(memory, "forget", "--everything", "--yes")
    assert "The memory holds none of that" in again.output


@pytest.mark.parametrize("answer", [True, False])
def test_a_second_question_is_about_shared_turns(
    run: Run, memory: Memory, copy: Memory, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    asked = []

    def agrees(question: str) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr("memkit.cli.forget.confirm", lambda question, yes: None)  # nobody sits there in a test
    monkeypatch.setattr("memkit.cli.forget.user_agrees", agrees)
    assert run(memory, "forget", "--everything").output.endswith("Forgotten.\n")
    assert asked == [f"Also forget it in {copy.project.root}?"]
    assert list(Path(memory.project.memory).iterdir()) == []
    assert any("PolicyController" in path.read_text() for path in Path(copy.project.memory).iterdir()) != answer
