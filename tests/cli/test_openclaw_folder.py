"""`memkit projects folder memory`: every command works on days that OpenClaw writes, too."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from memkit.hook.guide import guide, session_facts
from memkit.hook.tally import full_tally
from memkit.journal.digest import make_digest
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.projects.project import Project, Registry
from tests.builders import turn_of
from tests.cli.conftest import Run, lexical_memory
from tests.memory import DAYS, Memory, make_memory

TODAY = datetime.now(timezone.utc).date().isoformat()
THEIRS = f"# {TODAY}\n\n- The quagga likes tabs.\n" + "- Nobody asked it why, and it did not say.\n" * 3
MORE = "\n## 18:00 Evening\n\n- The quagga went home.\n"
EDITOR = "import sys; p = sys.argv[1]; t = open(p).read(); open(p, 'w').write(t.replace('tabs', 'spaces'))"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Three days of memkit's, OpenClaw's folder chosen, and in it a note between OpenClaw's own lines."""
    return lexical_memory(tmp_path, DAYS)


def theirs(memory: Memory) -> Path:
    return Path(memory.project.root, "memory", f"{TODAY}.md")


@pytest.fixture
def note(memory: Memory, run: Run) -> str:
    """The ID of the note."""
    theirs(memory).parent.mkdir()
    theirs(memory).write_text(THEIRS)
    Path(memory.project.root, "MEMORY.md").write_text("# Facts\n\nThe okapi is a fact of OpenClaw.\n")
    done = run(memory, "projects", "folder", "memory", "--json")
    assert done.json == {"root": memory.project.root, "folder": "memory"}
    added = run(memory, "remember", "The staging gateway moves to 7444.", "--json").json
    assert added["path"] == str(theirs(memory))
    with theirs(memory).open("a") as file:
        file.write(MORE)
    run(memory, "index")
    return str(added["id"])


def test_reading(run: Run, memory: Memory, note: str) -> None:
    for query, source in (("gateway 7444", theirs(memory).name), ("okapi", "MEMORY.md"), ("quagga", theirs(memory).name)):
        found = run(memory, "search", query, "--json").json["results"][0]
        assert Path(found["source"]).name == source
    shown = run(memory, "show", "today").output
    assert "7444" in shown and "quagga likes" in shown and "quagga went home" in shown
    assert run(memory, "show", note, "--json").json["path"] == str(theirs(memory))
    years = run(memory, "timeline", "--json").json
    assert TODAY[:4] in json.dumps(years)
    assert "7444" in run(memory, "timeline", TODAY).output
    assert "7444" in run(memory, "export").output
    listed = run(memory, "projects", "--json").json["projects"][0]
    assert (listed["folder"], listed["days"], listed["last"]) == ("memory", 4, TODAY)
    assert "    new days go to memory/\n" in run(memory, "projects").output


def test_days_count_before_the_folder_is_chosen(run: Run, memory: Memory) -> None:
    """They are read where readers count, and nothing writes to them."""
    theirs(memory).parent.mkdir()
    theirs(memory).write_text(THEIRS)
    counted = run(memory, "status", "--json").json["memory"]
    assert (counted["days"], counted["last"]) == (len(DAYS) + 1, TODAY)
    assert run(memory, "timeline", TODAY, "--json").json["node"]["days"] == 1
    assert f"to {TODAY})" in guide(memory.home, memory.project, set())
    assert f"to {TODAY})" in session_facts(memory.project, 1000, set())
    run(memory, "forget", "--since", TODAY, "--yes")
    run(memory, "remember", "The zebra sleeps.")
    assert theirs(memory).read_text() == THEIRS
    assert Journal(memory.project).day_for(TODAY) == TODAY


def test_the_users_own_memory_counts_once(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    Path(home.memory).mkdir()
    Path(home.memory, f"{TODAY}.md").write_text("## 09:00 A <!-- session:s1 turn:1c9d02aa -->\n")
    assert full_tally(home, Project.of_user(home)).turns == 1


@pytest.mark.parametrize("what", [["8ad3df7f"], ["--session", "fd0aee29"], ["--since", "2026-11-21"]])
def test_forgetting_turns(run: Run, memory: Memory, what: list[str]) -> None:
    folder = Path(memory.project.root, "memory")
    folder.mkdir()
    day = folder / "2026-11-21.md"
    day.write_text("# 2026-11-21\n\nTheirs.\n")
    run(memory, "projects", "folder", "memory")
    turn = turn_of("Where is the okapi?", "In the stable.", time=datetime(2026, 11, 21, 14, 2, tzinfo=timezone.utc))
    project = Project(memory.project.root, memory.home)
    Journal(project, home=memory.home).write([make_digest(turn, memory.project.root, redact)])
    with day.open("a") as file:
        file.write(MORE)
    assert "stable" in run(memory, "search", "okapi", "--json").output
    assert "2026-11-21.openclaw" in run(memory, "forget", *what, "--dry-run").output
    assert run(memory, "forget", *what, "--yes").status == 0
    assert day.read_text() == "# 2026-11-21\n\nTheirs.\n" + MORE
    assert run(memory, "search", "okapi", "--json").json["results"] == []


@pytest.mark.parametrize(
    ("what", "days"), [(["NOTE"], len(DAYS)), (["--since", TODAY], len(DAYS)), (["--everything"], 0)]
)
def test_forgetting(run: Run, memory: Memory, note: str, what: list[str], days: int) -> None:
    chunk = run(memory, "search", "quagga likes", "--json").json["results"][0]["id"]
    assert "a file of your own" in run(memory, "forget", chunk, "--yes").complaint
    assert run(memory, "forget", *(note if word == "NOTE" else word for word in what), "--yes").status == 0
    assert theirs(memory).read_text() == THEIRS + MORE
    assert len(list(Path(memory.project.memory).glob("*.md"))) == days
    assert run(memory, "search", "7444", "--json").json["results"] == []


def test_an_audit_redacts_memkits_sections_only(run: Run, memory: Memory, note: str) -> None:
    path = Path(memory.home.config_file)
    path.write_text(path.read_text() + '[capture]\nredact = ["7444", "quagga"]\n')
    found = run(memory, "audit", "--json").json["findings"]
    places = [one for one in found if one["where"] in ("journal", "markdown")]
    own = {(Path(one["place"]).name, one["line"], one["where"]) for one in places}
    lines = theirs(memory).read_text().split("\n")
    expected = {
        (theirs(memory).name, number, "journal" if "7444" in line else "markdown")
        for number, line in enumerate(lines, start=1)
        if "7444" in line or "quagga" in line
    }
    assert own == expected
    run(memory, "audit", "--fix")
    text = theirs(memory).read_text()
    assert text.startswith(THEIRS) and text.endswith(MORE) and "7444" not in text


def test_merging_back_and_forth_editing_and_uninstalling(
    run: Run, memory: Memory, note: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = make_memory(tmp_path / "other", home=memory.home)
    merged = run(other, "projects", "merge", memory.project.root, "--remove", "--json").json
    assert merged["removed"] == len(DAYS) + 1
    assert theirs(memory).read_text() == THEIRS + MORE
    text = Path(other.project.memory, f"{TODAY}.md").read_text()
    assert "7444" in text and "quagga" not in text
    again = run(memory, "projects", "merge", other.project.root, "--json").json
    assert again["turns"] == merged["turns"]
    assert theirs(memory).read_text().startswith(THEIRS + MORE) and "7444" in theirs(memory).read_text()
    for folder in (".memkit/memory", "memory/", ".memkit/memory"):
        assert run(memory, "projects", "folder", folder).status == 0
        assert run(memory, "search", "gateway 7444", "--json").json["results"][0]["id"]
        assert run(memory, "show", note).status == 0
    assert run(memory, "remember", "A second note.", "--json").json["path"] == str(theirs(memory))
    assert "not in .git/hooks" in run(memory, "projects", "folder", ".git/hooks").complaint
    assert run(memory, "projects", "folder").status == 2
    codes = [one["code"] for one in run(memory, "doctor", "--json").json["findings"]]
    assert not [code for code in codes if code.startswith("memory-")]
    script = tmp_path / "edit.py"
    script.write_text(EDITOR)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    assert run(memory, "edit", "today", "--json").json == {"path": str(theirs(memory)), "changed": True}
    assert theirs(memory).read_text().startswith(THEIRS.replace("tabs", "spaces") + MORE)
    done = run(memory, "uninstall", "--everything", "--yes", "--json").json
    assert {"path": str(theirs(memory).parent), "reason": "its days may be OpenClaw's, too"} in done["left"]
    assert not Path(memory.project.root, ".memkit").exists()
    assert "7444" in theirs(memory).read_text()


def test_a_backup_comes_back(run: Run, memory: Memory, note: str, tmp_path: Path) -> None:
    backup = str(tmp_path / "b.tar.zst")
    assert run(memory, "backup", backup).status == 0
    text = theirs(memory).read_text()
    for gone in (memory.home.root, theirs(memory).parent, Path(memory.project.memory).parent):
        shutil.rmtree(gone)
    assert run(memory, "restore", backup, "--yes").status == 0
    assert theirs(memory).read_text() == text
    assert run(memory, "restore", backup, "--yes", "--json").json["written"] == 0
    assert Registry.read(memory.home).folders == {memory.project.root: "memory"}
    assert run(memory, "show", note).status == 0
    other = make_memory(tmp_path / "other", home=memory.home)  # from here on elsewhere
    shutil.rmtree(memory.project.root)
    Path(memory.home.projects, "registry.json").unlink()
    assert run(other, "restore", backup, "--yes").status == 0  # its directory is gone
    kept = Project.at_root(memory.project.root, memory.home)
    assert "7444" in Path(kept.memory, f"{TODAY}-openclaw.md").read_text()
    shutil.rmtree(kept.root)
    Path(memory.home.projects, "registry.json").unlink(missing_ok=True)
    moved = ("--move", memory.project.root, other.project.root)
    assert run(other, "restore", backup, "--yes", *moved).status == 0
    assert "7444" in theirs(other).read_text()
    assert run(other, "show", note).status == 0
