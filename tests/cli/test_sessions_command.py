"""`memkit sessions`: one line for each session, or two on a small screen, newest first."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from memkit.cli.screen import cells
from memkit.projects.registry import changing
from tests.cli.conftest import Run
from tests.cli.fortnight import DAYS, check_screen, fortnight
from tests.memory import Memory, make_memory


def ids(run: Run, memory: Memory, *arguments: str) -> list[str]:
    return [one["session"][:8] for one in run(memory, "sessions", "--json", *arguments).json["sessions"]]


@pytest.mark.parametrize("columns", [80, 120])
def test_screen(run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = run(past, "sessions")
    assert (found.status, found.errors) == (0, "")
    check_screen(f"sessions-{columns}", found.output)


@pytest.mark.parametrize("columns", [40, 60, 72, 115, 116, 200])
def test_any_width(run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run(past, "sessions").output.splitlines()
    assert len(lines) == (14 if columns > 115 else 27)  # one line or two for each of 13 sessions, and a head
    assert max(map(cells, lines)) <= columns


def test_over_midnight_is_one_line(run: Run, past: Memory) -> None:
    found = run(past, "sessions", "--json").json["sessions"]
    (late,) = [one for one in found if one["session"].startswith("c0ffee00")]
    assert (late["begins"], late["ends"]) == ("2026-11-11 23:41", "2026-11-12 00:17")
    assert late["title"] == "Rotate the vault keys by hand once"
    assert late["turns"] == ["a0000005", "a0000006"]
    assert late["outcome"].startswith("All four keys are new")
    assert (late["path"], late["line"]) == (str(past.path("2026-11-11.md")), 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-n", "2"], ["beef0001", "5e55000c"]),
        (["--since", "2026-11-18"], ["beef0001", "5e55000c", "5e55000b", "5e55000a", "5e550009"]),
        (["--since", "2026-11-20"], ["beef0001", "5e55000c"]),
        (["--branch", "feature/orders"], ["beef0001", "5e550007"]),
        (["--branch", "feature/money"], ["5e550003"]),
        (["--branch", "feature"], []),
        (["--file", "deploy/gateway.yaml"], ["5e550001"]),
        (["--file", "./src/orders/batch.py"], ["beef0001"]),
        (["--file", "0042_orders.sql"], ["beef0001", "5e550007"]),
        (["--file", "orders.sql"], []),
        (["--file", "../../etc/passwd"], []),
        (["--file", "0042_orders.sql", "-n", "1"], ["beef0001"]),
    ],
)
def test_filters(run: Run, past: Memory, arguments: list[str], expected: list[str]) -> None:
    assert ids(run, past, *arguments) == expected


def test_more_than_shown(run: Run, past: Memory) -> None:
    assert run(past, "sessions", "-n", "3").output.splitlines()[-1] == "Older ones: memkit sessions -n 12"
    assert "Older" not in run(past, "sessions", "-n", "13").output


def test_more_than_shown_by_the_same_filters(run: Run, past: Memory) -> None:
    filters = ["--since", "2026-11-01", "--branch", "feature/orders"]
    found = run(past, "sessions", *filters, "--all-projects", "-n", "1")
    hint = "Older ones: memkit sessions --since 2026-11-01 --branch feature/orders --all-projects -n 4"
    assert found.output.splitlines()[-1] == hint


def test_the_hint_quotes_what_was_given(run: Run, tmp_path: Path) -> None:
    memory = fortnight(tmp_path)
    for path in memory.path("2026-11-19.md").parent.glob("*.md"):
        path.write_text(path.read_text().replace("0042_orders.sql", "it's; $(x).sql"))
    last = run(memory, "sessions", "--file", "it's; $(x).sql", "-n", "1").output.splitlines()[-1]
    assert shlex.split(last)[2:] == ["memkit", "sessions", "--file", "it's; $(x).sql", "-n", "4"]


def test_a_path_that_a_day_shows_cut(run: Run, tmp_path: Path) -> None:
    memory = fortnight(tmp_path)
    day = memory.path("2026-11-19.md")
    day.write_text(day.read_text().replace("Edit src/orders/batch.py", "Edit …/orders/batch.py"))
    assert ids(run, memory, "--file", "src/orders/batch.py") == ids(run, memory, "--file", "batch.py") == ["beef0001"]
    assert ids(run, memory, "--file", "src/other/batch.py") == []


def test_transcript_alone_lists_them(run: Run, past: Memory) -> None:
    assert run(past, "transcript").output == run(past, "sessions").output
    assert run(past, "transcript", "--json").json == run(past, "sessions", "--json").json


def test_no_session(run: Run, past: Memory, tmp_path: Path) -> None:
    empty = make_memory(tmp_path)
    found = run(empty, "sessions")
    assert found.output == f"No session in {empty.project.root}. --all-projects lists those of all projects.\n"
    assert run(empty, "sessions", "--json").json == {"sessions": []}
    assert run(past, "sessions", "--branch", "x").output.startswith("No such session in ")


def test_needs_no_index(run: Run, tmp_path: Path) -> None:
    memory = fortnight(tmp_path)
    assert len(ids(run, memory)) == 13
    assert not list(Path(memory.home.index).rglob("manifest"))


def test_all_projects(run: Run, tmp_path: Path) -> None:
    here = fortnight(tmp_path)
    other = make_memory(tmp_path / "other", {"2026-11-19.md": "# 2026-11-19\n" + DAYS["2026-11-09"]}, home=here.home)
    with changing(here.home) as registry:  # which makes it known
        registry.link(str(tmp_path / "linked"), other.project.root)
    found = run(here, "sessions", "--all-projects")
    assert all(re.search("  project +\\S", line) for line in found.output.splitlines()[1::2])
    assert len(ids(run, here, "--all-projects")) == 14
    assert len(ids(run, here)) == 13


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_day_is_named_and_the_others_listed(run: Run, tmp_path: Path) -> None:
    memory = fortnight(tmp_path)
    memory.path("2026-11-20.md").chmod(0)
    found = run(memory, "sessions")
    assert found.status == 0
    assert "2026-11-20.md" in found.errors
    assert "5e550009" in found.output


def test_a_file_named_like_a_day_that_the_calendar_lacks(run: Run, tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {"2026-99-99.md": DAYS["2026-11-13"], "2026-11-10.md": DAYS["2026-11-10"]})
    assert ids(run, memory) == ["5e550003", "5e550002"]


def test_a_file_that_is_gone(run: Run, past: Memory) -> None:
    absolute = str(Path(past.project.root, "ci", "nightly.yml"))
    assert ids(run, past, "--file", absolute) == ids(run, past, "--file", "nightly.yml") == ["5e550002"]


def test_a_title_in_markdown_reads_as_text(run: Run, tmp_path: Path) -> None:
    text = "# 2026-11-20\n\n## 09:00 ✅ **All pass** &lt;!-- <!-- session:5e550001 -->\n"
    found = run(make_memory(tmp_path, {"2026-11-20.md": text}), "sessions")
    assert re.search(r"✅ All pass <!--  +5e550001", found.output)
