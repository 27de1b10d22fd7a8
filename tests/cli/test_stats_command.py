"""`memkit stats`."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ElementTree
from datetime import date
from pathlib import Path

import pytest

from memkit.llm.ledger import Call, Ledger
from memkit.search import usage
from tests.cli.conftest import Run, lexical_memory
from tests.memory import DAYS, Memory, make_memory

WORK = (
    "## 23:10 Night <!-- session:5e550003 -->\n\n"
    "- Decided: it is 7443. <!-- grip:82c57f55 turns:aaaa0001 -->\n\n"
    "### 23:10 On and on <!-- turn:aaaa0001 -->\n"
    "**Asked** On and on?\n"
    "**Did** Read a.py · Edit a.py · Edit src/[red]b[/red]\x1b[31m\x07$x$.py · Bash `ls` → 3\n"
    "**Answered** Yes.\n"
)
FILES = {**DAYS, "2026-11-21.md": f"# 2026-11-21\n\n{WORK}"}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return lexical_memory(tmp_path, FILES)


def test_everything_there_is(run: Run, memory: Memory, tmp_path: Path) -> None:
    empty = make_memory(tmp_path / "empty")
    assert "0 days\n" in run(empty, "stats", "--svg", str(tmp_path / "a.svg")).output + run(empty, "stats").output
    assert (tmp_path / "a.svg").stat().st_size
    assert run(empty, "stats", "--json").json["by_day"] == []
    now = time.time()
    ledger = Ledger(memory.home)
    ledger.record(Call("1", now, "summarize", "anthropic", "m", memory.project.root, 100, 20, 0.5, "ok"))
    ledger.record(Call("2", now, "summarize", "anthropic", "m", "/another", 100, 20, 0.5, "ok"))
    both = f"/another, {memory.project.root}"
    shares = {"/another": 2, memory.project.root: 1}
    ledger.record(Call("3", now, "summarize", "anthropic", "m", both, 100, 20, 0.6, "ok", shares=shares))
    usage.note(memory.home, "pointers", ["aaaa"])
    usage.note(memory.home, "expand", ["aaaa"])
    found = run(memory, "stats", "--json").json
    assert found["projects"] == [memory.project.root]
    assert (found["days"], found["turns"], found["sessions"], found["bullets"]) == (4, 7, 3, 1)
    for name in ("turns", "words", "bullets"):
        assert found[name] == sum(day[name] for day in found["by_day"])
    assert found["by_day"][-1] == {"day": "2026-11-21", "turns": 1, "words": 4, "bullets": 1, "sessions": 1}
    assert (found["hours"][9], found["hours"][23], sum(found["hours"])) == (6, 1, 7)
    first, second = found["files"]
    assert first == {"root": memory.project.root, "path": "a.py", "edited": 1, "mentioned": 2}
    assert second["mentioned"] == 1
    spent = found["calls"]
    assert (spent["calls"], spent["tokens_in"], spent["tokens_out"], round(spent["usd"], 9)) == (2, 134, 27, 0.7)
    assert found["pointers"] == {"given": 1, "followed": 1, "kinds": {"prompt": {"given": 1, "followed": 1}}}
    assert found["bytes"]["memory"] == sum(len(text.encode()) for text in FILES.values())
    assert found["bytes"]["environment"] == 0
    for first, turns in (("0001-01-01", 7), ("2026-11-20", 2), ("2026-11-22", 0), ("9999-12-31", 0)):
        assert run(memory, "stats", "--json", "--since", first).json["turns"] == turns
    assert "2026-13-01" in run(memory, "stats", "--since", "2026-13-01").complaint
    other = make_memory(tmp_path / "two", {"2026-11-21.md": WORK}, home=memory.home)
    run(memory, "index")
    run(other, "index")
    assert run(memory, "stats", "--all-projects", "--json").json["turns"] == 8
    assert "2 projects" in run(memory, "stats", "--all-projects").output


def test_a_search_is_counted_without_its_question(run: Run, memory: Memory) -> None:
    assert run(memory, "stats", "--json").json["searches"] == 0
    for command in (["search", "which gateway"], ["recall", "--stdin"]):
        assert run(memory, *command, stdin=b"which gateway").status == 0
    assert run(memory, "search", "--batch", "-", stdin=b"gateway\nnightly\n").status == 0
    found = run(memory, "stats", "--json").json
    assert found["searches"] == 4
    assert date.fromtimestamp(found["counted_since"]) == date.today()
    usage.note(memory.home, "pointers", ["aaaa"])
    since = f"(all projects, since {date.today()})"
    shown = run(memory, "stats").output
    assert f"searches   4 {since}\n" in shown
    assert f"pointers   1 shown, 0 followed {since}\n" in shown
    assert "gateway" not in Path(memory.home.events_file).read_text()


def test_a_search_that_cannot_be_counted_still_answers(run: Run, memory: Memory) -> None:
    run(memory, "search", "gateway")
    Path(memory.home.events_file).unlink()
    Path(memory.home.events_file).mkdir()
    found = run(memory, "search", "--json", "gateway")
    assert found.status == 0
    assert found.json["results"]


def newest_week(output: str) -> str:
    """The column of the newest week, a year being shown."""
    rows = output.split("\n")
    start = next(number for number, row in enumerate(rows) if row.startswith("Mon"))
    return "".join(row[56:57] or " " for row in rows[start : start + 7])


def test_what_is_shown(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(memory, "stats").output
    assert "4 days, 2026-11-18 to 2026-11-21" in shown
    assert "7 turns in 3 sessions" in shown
    numbers = shown.partition("\n\n")[0].splitlines()[1:]  # without the project, whose path may be long
    assert all(len(line) <= 80 for line in numbers), shown
    assert "most between 9:00 and 10:00" in shown
    assert newest_week(shown) == "··▓█▒▒ "
    assert "src/[red]b[/red]\ufffd$x$.py" in shown  # no mark-up, nothing that steers a terminal
    assert "\x1b" not in shown
    assert "earlier days" not in shown
    memory.write("2025-01-01.md", FILES["2026-11-18.md"])
    monkeypatch.setenv("COLUMNS", "200")
    assert "1 earlier day not shown" in run(memory, "stats").output
    assert "earlier" not in run(memory, "stats", "--since", "2026-01-01").output


def test_a_picture(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "made.svg"
    found = run(memory, "stats", "--svg", str(path))
    assert found.status == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert str(path) in found.errors
    text = path.read_text()
    shown = "".join(ElementTree.fromstring(text).itertext()).replace("\xa0", " ")
    for wanted in ("7 turns in 3 sessions", "Mon", "█", "most between 9:00 and 10:00", "[red]b[/red]\ufffd$x$.py"):
        assert wanted in shown
    assert re.findall(r"(?:href|url|import)\W+https?:", text) == []
    missing = tmp_path / "nowhere" / "made.svg"
    assert (f"cannot write the picture {missing}" in run(memory, "stats", "--svg", str(missing)).complaint)


def test_a_picture_of_hostile_names_is_text(run: Run, tmp_path: Path) -> None:
    hostile = "</text></svg><script>alert(1)</script>&x.py"
    memory = make_memory(tmp_path, {"2026-11-21.md": f"# 2026-11-21\n\n{WORK.replace('a.py', hostile)}"})
    path = tmp_path / "a.svg"
    assert run(memory, "stats", "--svg", str(path)).status == 0
    picture = ElementTree.fromstring(path.read_text())
    assert hostile in "".join(picture.itertext()).replace("\xa0", " ")
    assert not [one for one in picture.iter() if one.tag.endswith("script")]
