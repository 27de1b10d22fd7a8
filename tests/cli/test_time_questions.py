"""Questions about time, as `memkit search` and `memkit recall` show their answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memkit.cli.overview import show_overview
from memkit.cli.screen import cells
from memkit.search.overview import Line, Overview, PeriodNode, TopicCount
from memkit.search.results import Answer
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path
from tests.cli.conftest import Run, lexical_memory
from tests.cli.fortnight import ROLLUP, check_screen, fortnight
from tests.memory import Memory
from tests.topics.subjects import SubjectEmbedder, make_subjects


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
def test_time_screens(
    run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, name: str, query: str
) -> None:
    check(run, past, monkeypatch, name, query)


def check(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, name: str, query: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = run(memory, "search", query)
    assert (found.status, found.errors) == (0, "")
    assert max(map(cells, found.output.splitlines())) <= 80
    check_screen(name, found.output)


def test_a_few_sessions_have_two_lines_on_a_wide_screen(
    run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = run(past, "search", "what did we do on 2026-11-16").output
    assert re.search(r"\n2026-11-16 09:05 +Review the migration of orders +5e550007\n", shown)
    assert "→ Decided: orders move in batches of 5,000." in shown
    assert "title → outcome" in run(past, "search", "what did we do from 2026-11-09 to 2026-11-20").output


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


def test_a_period_without_a_memory(run: Run, tmp_path: Path) -> None:
    memory = lexical_memory(tmp_path)
    found = run(memory, "search", "what did we do yesterday")
    assert found.status == 0
    assert found.output.startswith("The memory holds nothing for ")


def test_lines_of_other_projects_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    def overview(*roots: str) -> Overview:
        lines = (Line("2026-11-19 09:00", f"Fact of {root}", "ab12cd34", "", root) for root in roots)
        return Overview("period", lines=tuple(lines))

    answer = Answer("", "overview", "", 0.0, [], overview=overview("/a/shop", "/a/bank-office"))
    show_overview(answer, "/a/shop")
    shown = capsys.readouterr().out
    assert "2026-11-19 09:00  shop         Fact of /a/shop" in shown
    assert "2026-11-19 09:00  bank-office  Fact of /a/bank-office" in shown
    show_overview(Answer("", "overview", "", 0.0, [], overview=overview("/a/shop")), "/a/shop")
    assert "2026-11-19 09:00  Fact of /a/shop" in capsys.readouterr().out


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
