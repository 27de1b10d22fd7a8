"""`memkit timeline`: from the whole memory down to the original messages, page by page."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest

from memkit.cli.screen import cells
from memkit.text import estimate_tokens
from tests.cli.conftest import Run
from tests.cli.fortnight import ROLLUP, fortnight
from tests.memory import Memory, make_memory
from tests.timeline.conftest import FIRST, LAST, archive, day_text

STAMP = f"{LAST - timedelta(days=(LAST - FIRST).days % 2):%y%m%d}"
"""The newest day of the long memory, as its ids have it."""


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Two weeks, the second one with a rollup. Not to be changed."""
    memory = fortnight(tmp_path_factory.mktemp("fortnight"))
    memory.write("2026-W47.md", ROLLUP)
    return memory


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Every second day of 14 months. The archive has the newest session. Not to be changed."""
    days = [FIRST + timedelta(days=number) for number in range(0, (LAST - FIRST).days + 1, 2)]
    memory = make_memory(tmp_path_factory.mktemp("long"), {f"{day}.md": day_text(day) for day in days})
    archive(memory, days[-1])
    return memory


def test_today_and_show(run: Run, past: Memory) -> None:
    shown = run(past, "show", "2026-W47").output
    assert shown.startswith("# 2026-W47 Orders and ports\n")
    assert "- 2026-11-18: 3 sessions, 3 turns" in shown
    assert "has no memory of" in run(past, "timeline", "today").complaint


def test_children_only(run: Run, past: Memory) -> None:
    whole = run(past, "timeline", "2026-W47").output
    lines = run(past, "timeline", "2026-W47", "--children").output
    assert whole.endswith(f"\n\n{lines}")
    assert [line.split()[0] for line in lines.splitlines()[1:]] == [f"2026-11-{day}" for day in range(16, 21)]
    found = run(past, "timeline", "2026-W47", "--children", "--json").json
    assert set(found) == {"node", "path", "children", "next"}
    assert found["path"] == ["2026", "2026-11", "2026-W47"]


@pytest.mark.parametrize("columns", [40, 50, 60, 80, 120, 200])
@pytest.mark.parametrize("arguments", ["", "2026-11 --depth 5", "a000000f", "--search port", "2026-W47"])
def test_any_width(
    run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, arguments: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run(past, "timeline", *arguments.split()).output.splitlines()
    assert max(map(cells, lines)) <= columns


def test_search_without_a_match(run: Run, past: Memory) -> None:
    nothing = run(past, "timeline", "2026-W47", "--search", "zebra")
    assert (nothing.status, nothing.output) == (0, "No turn of 2026-W47 has all of: zebra\n")


def test_search_words_are_no_pattern(run: Run, past: Memory) -> None:
    for words in (".*", "[a-z]+", "%", "$(id)"):
        assert run(past, "timeline", "--search", words, "--json").json["matches"] == []


def test_events(run: Run, long: Memory, past: Memory) -> None:
    messages = run(long, "timeline", f"a{STAMP}0", "--events", "--limit", "7", "--json").json["events"]
    assert (len(messages), messages[0]["text"]) == (7, "Why is it slow?")
    shown = run(long, "timeline", f"a{STAMP}1", "--events", "--limit", "2").output
    assert "It is warm now." not in shown  # the page ends before
    assert "characters more)" in shown
    without = run(past, "timeline", "2026-11-20", "--events")
    assert without.output.splitlines() == [
        "The archive has no message of 2026-11-20.",
        "without an original: a000000f, a0000010, a0000011",
    ]


def test_an_answer_has_a_limit(run: Run, long: Memory) -> None:
    for arguments in (["2026", "--depth", "5"], ["--search", "cache"], [f"a{STAMP}0", "--events"]):
        for form in ([], ["--json"]):
            found = run(long, "timeline", *arguments, "--limit", "100", *form)
            assert estimate_tokens(found.output) <= 4_400, (arguments, form)


def test_the_line_with_the_next_page_is_a_command(run: Run, long: Memory) -> None:
    shown = run(long, "timeline", "2026", "--depth", "2", "--limit", "4").output
    seen = [line.split()[0] for line in shown.splitlines() if re.match(r" *2026-(W\d\d|\d\d) ", line)]
    while (last := shown.splitlines()[-1]).startswith("More: memkit "):
        shown = run(long, *shlex.split(last.removeprefix("More: memkit "))).output
        assert not shown.startswith("2026")  # no overview again
        seen += [line.split()[0] for line in shown.splitlines() if re.match(r" *2026-", line)]
    expected = run(long, "timeline", "2026", "--depth", "2", "--limit", "100", "--json").json
    assert seen == [one["id"] for one in expected["children"]]
    words = "cache 'of; $(touch here)"
    assert run(long, "timeline", "--search", "cache of", "--limit", "1").output.splitlines()[-1] == (
        "More: memkit timeline --limit 1 --search 'cache of' --after a2509141"
    )
    assert run(long, "timeline", "--search", words).status == 0
    assert not Path(long.project.root, "here").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--children", "--events"], "give one of"),
        (["--search", "x", "--events"], "give one of"),
        (["--search", " "], "needs words"),
        (["--search", "x", "--depth", "2"], "--depth is for the list"),
        (["--events", "--depth", "2"], "--depth is for the list"),
        (["--depth", "6"], "--depth"),
        (["--depth", "0"], "--depth"),
        (["--limit", "0"], "--limit"),
        (["--limit", "101"], "--limit"),
        (["2026", "2025"], "unexpected extra argument"),
        (["--output", "x"], "No such option"),
    ],
)
def test_usage(run: Run, past: Memory, arguments: list[str], message: str) -> None:
    found = run(past, "timeline", *arguments)
    assert (found.status, found.output) == (2, "")
    assert message in found.errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2026-03"], "no memory of 2026-03; the nearest day is 2026-11-09"),
        (["2026-W99"], "no node '2026-W99'"),
        (["2026-02-30"], "no node '2026-02-30'"),
        (["../../etc/passwd"], "no node '../../etc/passwd'"),
        (["a00000"], "matches several turns"),
        (["--after", "zzzz"], "no node 'zzzz' to go on after"),
        (["--search", "port", "--after", "zzzz"], "nothing 'zzzz' to go on after"),
        (["--events", "--after", "zzzz.1"], "nothing 'zzzz.1' to go on after"),
    ],
)
def test_errors_are_one_line(run: Run, past: Memory, arguments: list[str], message: str) -> None:
    assert message in run(past, "timeline", *arguments).complaint


def test_an_empty_memory(run: Run, tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {})
    assert run(memory, "timeline").output.endswith("has no memory yet\n")
    assert run(memory, "timeline", "--json").json["children"] == []
    assert run(memory, "timeline", "--search", "x").output == "No turn of the memory has all of: x\n"
    assert run(memory, "timeline", "--events").output == "The archive has no message of this memory.\n"
    assert "has no memory of 2026" in run(memory, "timeline", "2026").complaint
