"""The files that were edited most, by topic and week, and what came of the work on them."""

from __future__ import annotations

from pathlib import Path

from memkit.interface import InterfaceMemory as Front
from memkit.topics.compute import refresh
from memkit.topics.file_map import MOST_WEEKS
from tests.memory import Memory, make_memory
from tests.topics.subjects import SubjectEmbedder, days


def edited(text: str, file: str, times: int) -> str:
    """A day whose turns each edit a file."""
    lines = "".join(f"- Edit `{file}`\n" for _ in range(times))
    return text.replace("\n**Answered**", f"\n**Did**\n\n{lines}- Edit `/etc/hosts`\n- Read `README.md`\n\n**Answered**")


def make(root: Path) -> Memory:
    files = {name: edited(text, f"src/{name[5:7]}.py", 1 + (name[5:7] == "05")) for name, text in days(8).items()}
    memory = make_memory(root, files, embedder=SubjectEmbedder())  # type: ignore[arg-type]
    memory.sync()
    return memory


def test_files_are_grouped_by_topic_and_counted_by_week(tmp_path: Path) -> None:
    memory = make(tmp_path)
    front = Front(memory.project, home=memory.home, settings_of=lambda _: memory.settings)
    bare = front.files()
    assert [group["topic"] for group in bare["groups"]] == [""]
    refresh(memory.project, memory.home, memory.settings)
    found = front.files()
    assert found["all"] == 3  # what was read, and what is outside of the project, is left out
    labels = {one.id: one.label for one in front.topics(compute=False).topics}
    rows = {}
    for group in found["groups"]:
        assert group["label"] == labels[group["topic"]]
        (row,) = group["files"]
        rows[row["path"]] = row
    assert {path: row["edits"] for path, row in rows.items()} == {"src/05.py": 16, "src/03.py": 8, "src/04.py": 8}
    assert found["groups"][0]["files"][0]["path"] == "src/05.py"
    assert rows["src/05.py"]["weeks"] == {"2026-W18": 16}
    assert (found["weeks"][0], found["weeks"][-1], len(found["weeks"])) == ("2026-W09", "2026-W18", 10)
    largest = found["largest"][0]
    assert (largest["path"], largest["week"], largest["edits"]) == ("src/05.py", "2026-W18", 16)
    assert largest["title"] == "Work" and largest["outcome"]
    assert [len(group["files"]) for group in front.files(1)["groups"]] == [1]


def test_only_the_last_weeks_count(tmp_path: Path) -> None:
    memory = make(tmp_path)
    memory.write("2027-01-05.md", edited(days(4)["2026-03-01.md"].replace("2026-03-01", "2027-01-05"), "src/new.py", 1))
    front = Front(memory.project, home=memory.home, settings_of=lambda _: memory.settings)
    found = front.files()
    assert (len(found["weeks"]), found["weeks"][-1], found["all"]) == (MOST_WEEKS, "2027-W01", 1)


def test_nothing_was_edited(tmp_path: Path) -> None:
    memory = make_memory(tmp_path)
    front = Front(memory.project, home=memory.home, settings_of=lambda _: memory.settings)
    assert front.files() == {"weeks": [], "groups": [], "largest": [], "all": 0}
