"""Time on the command line: `memkit timeline`, and questions about time to `memkit search` and `memkit recall`."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest

from memkit.cli.overview import show_overview
from memkit.cli.screen import cells
from memkit.search.overview import Line, Overview, PeriodNode, TopicCount
from memkit.search.results import Answer
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path
from tests.cli.conftest import Run
from tests.cli.fortnight import ROLLUP, check_screen, fortnight
from tests.memory import Memory, make_memory
from tests.timeline.conftest import FIRST, LAST, archive, day_text
from tests.topics.subjects import SubjectEmbedder, make_subjects

STAMP = f"{LAST - timedelta(days=(LAST - FIRST).days % 2):%y%m%d}"
"""The newest day of the long memory, as its ids have it."""


@pytest.fixture(scope="module")
def with_rollup(tmp_path_factory: pytest.TempPathFactory) -> Memory:
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


def test_today_and_show(run: Run, with_rollup: Memory) -> None:
    shown = run(with_rollup, "show", "2026-W47").output
    assert shown.startswith("# 2026-W47 Orders and ports\n")
    assert "- 2026-11-18: 3 sessions, 3 turns" in shown
    assert "has no memory of" in run(with_rollup, "timeline", "today").complaint


def test_children_only_and_any_width(run: Run, with_rollup: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(with_rollup, "timeline", "2026-W47").output
    lines = run(with_rollup, "timeline", "2026-W47", "--children").output
    assert whole.endswith(f"\n\n{lines}")
    assert [line.split()[0] for line in lines.splitlines()[1:]] == [f"2026-11-{day}" for day in range(16, 21)]
    found = run(with_rollup, "timeline", "2026-W47", "--children", "--json").json
    assert set(found) == {"node", "path", "children", "next"}
    assert found["path"] == ["2026", "2026-11", "2026-W47"]
    for columns in (40, 60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        for arguments in ("", "2026-11 --depth 5", "a000000f", "--search port", "2026-W47"):
            lines = run(with_rollup, "timeline", *arguments.split()).output.splitlines()
            assert max(map(cells, lines)) <= columns, arguments


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


def test_usage_and_errors(run: Run, with_rollup: Memory, tmp_path: Path) -> None:
    for words, message in (
        ("--children --events", "give one of"), ("--search x --events", "give one of"),
        ("--search x --depth 2", "--depth is for the list"), ("--events --depth 2", "--depth is for the list"),
        ("--depth 6", "--depth"), ("--depth 0", "--depth"), ("--limit 0", "--limit"), ("--limit 101", "--limit"),
        ("2026 2025", "unexpected extra argument"), ("--output x", "No such option"),
    ):  # fmt: skip
        found = run(with_rollup, "timeline", *words.split())
        assert (found.status, found.output, message in found.errors) == (2, "", True), words
    for words, message in (
        ("2026-03", "no memory of 2026-03; the nearest day is 2026-11-09"), ("2026-W99", "no node '2026-W99'"),
        ("../../etc/passwd", "no node '../../etc/passwd'"), ("a00000", "matches several turns"),
        ("--after zzzz", "no node 'zzzz' to go on after"),
        ("--search port --after zzzz", "nothing 'zzzz' to go on after"),
        ("--events --after zzzz.1", "nothing 'zzzz.1' to go on after"),
    ):  # fmt: skip
        assert message in run(with_rollup, "timeline", *words.split()).complaint
    for pattern in (".*", "[a-z]+", "%", "$(id)", "zebra"):
        assert run(with_rollup, "timeline", "--search", pattern).output == f"No turn of the memory has all of: {pattern}\n"
    empty = make_memory(tmp_path, {})
    assert run(empty, "timeline").output.endswith("has no memory yet\n")
    assert run(empty, "timeline", "--events").output == "The archive has no message of this memory.\n"


# Questions about time, as `memkit search` and `memkit recall` show their answers.


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("time-period", "what did we do from 2026-11-16 to 2026-11-18"),
        ("time-week", "what did we do from 2026-11-16 to 2026-11-22"),
        ("time-words", "which port did the gateway use on 2026-11-09"),
        ("time-outside", "ERR_404 on 2026-11-09"),
        ("time-nothing", "what did we do on 2026-11-14"),
        ("time-open", "what is left open?"),
    ],
)
def test_time_screens(run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, name: str, query: str) -> None:
    check(run, past, monkeypatch, name, query)


def check(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, name: str, query: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = run(memory, "search", query)
    assert (found.status, found.errors) == (0, "")
    assert max(map(cells, found.output.splitlines())) <= 80
    check_screen(name, found.output)


def test_a_week_with_a_rollup(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fortnight(tmp_path)
    memory.write("2026-W47.md", ROLLUP)
    query = "what did we do from 2026-11-16 to 2026-11-22"
    check(run, memory, monkeypatch, "time-rollup", query)
    node = run(memory, "search", "--json", query).json["overview"]["nodes"][0]
    assert (node["node"], node["title"]) == ("2026-W47", "Orders and ports")
    shown = run(memory, "show", node["lines"][0]["id"])
    assert "orders move in batches of 5,000" in shown.output
    told = run(memory, "recall", "--stdin", stdin=query.encode()).output
    assert '<entry node="2026-W47">Orders and ports</entry>' in told


def test_topics_of_a_month(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is grouped for a question."""
    monkeypatch.setattr("memkit.embedding.find_embedder", lambda *_: (SubjectEmbedder(), ""))
    memory = make_subjects(tmp_path)
    query = "what topics did we work on from 2026-03-01 to 2026-04-30"
    check(run, memory, monkeypatch, "time-no-topics", query)
    assert not derived_path(memory.project, memory.home, memory.settings).exists()
    refresh(memory.project, memory.home, memory.settings)
    check(run, memory, monkeypatch, "time-topics", query)
    found = run(memory, "search", "--json", query).json["overview"]["topics"]
    assert [one["entries"] for one in found] == [8, 8]  # not those of May
    shown = run(memory, "topics", "show", found[0]["id"], "--json").json
    assert shown["label"] == found[0]["label"]


def test_nodes_and_topics_of_other_projects_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    roots = ("/a/shop", "/a/bank-office")
    lines = {root: (Line("2026-11-19", f"Fact of {root} \x1b[31m", "1f0c33ab", "", root, ("82c57f55",)),) for root in roots}
    nodes = tuple(PeriodNode("2026-W47", root, "Ports", lines[root], omitted=2) for root in roots)
    topics = tuple(TopicCount("0a1b2c3d", root, "orders", 7, "2026-11-16", "2026-11-20") for root in roots)
    overview = Overview("topics", nodes=nodes, topics=topics)
    show_overview(Answer("", "overview", "", 0.0, [], overview=overview), "/a/shop")
    shown = capsys.readouterr().out.splitlines()
    heads = [line for line in shown if "memkit timeline 2026-W47" in line]
    assert [line.split("  ")[0] for line in heads] == ["2026-W47 shop Ports", "2026-W47 bank-office Ports"]
    assert sum("and 2 more" in line for line in shown) == 2
    assert [line.split()[:3] for line in shown if "0a1b2c3d" in line] == [["shop", "orders", "7"], ["bank-office", "orders", "7"]]
    assert max(map(cells, shown)) <= 80
    assert "\x1b" not in "".join(shown)
