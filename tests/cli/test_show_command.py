"""`memkit show`: a day, a session, a turn, or anything else with an id."""

from __future__ import annotations

import os
import re
import shlex
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.cli.output import plain
from memkit.cli.screen import cells
from memkit.cli.show import render, with_ids
from memkit.projects.registry import changing
from tests.ci import examples
from tests.cli.conftest import Run
from tests.cli.fortnight import FILES, check_screen, fortnight
from tests.memory import Memory, make_memory

STYLE = re.compile(r"\x1b\[([0-9;]*)m")
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LIGHT_AND_DARK = {"", "0", "1", "2", "3", "4", "9", "31", "32", "34", "35", "36"}
"""Bold, dim, italic, underline, strike, and the basic colors that both show: no black, yellow, or white."""


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("color", [False, True])
def test_screen(past: Memory, columns: int, color: bool) -> None:
    text = past.path("2026-11-20.md").read_text()
    shown = render(text, columns, color=color)
    check_screen(f"show-day-{columns}{'-color' * color}", shown + "\n")
    bare = STYLE.sub("", shown)
    assert max(map(cells, bare.split("\n"))) <= columns
    assert "<!--" not in shown
    codes = {code for match in STYLE.finditer(shown) for code in match[1].split(";")}
    assert codes <= (LIGHT_AND_DARK if color else set())


def test_a_pipe_gets_markdown(run: Run, past: Memory) -> None:
    found = run(past, "show", "2026-11-20")
    assert (found.status, found.errors) == (0, "")
    check_screen("show-day-pipe", found.output)


@pytest.mark.parametrize(
    ("name", "kind", "id", "session", "turns", "place"),
    [
        ("2026-11-20", "day", "2026-11-20", None, ["a000000f", "a0000010", "a0000011"], ("2026-11-20.md", 1)),
        ("5e550003", "session", "5e550003", "5e550003", ["a0000004"], ("2026-11-10.md", 19)),
        ("beef", "session", "beef0001-1111-4222-8333-444455556666", "beef0001-1111-4222-8333-444455556666",
         ["a000000e", "a0000011"], ("2026-11-19.md", 3)),
        ("5e550001", "session", "5e550001", "5e550001", ["a0000001"], ("2026-11-09.md", 3)),
        ("a0000001", "turn", "a0000001", "5e550001", ["a0000001"], ("2026-11-09.md", 3)),
        ("a000000f", "turn", "a000000f", "5e55000c", ["a000000f"], ("2026-11-20.md", 8)),
        ("82c57f55", "citation", "82c57f55", "5e550007", ["a000000a"], ("2026-11-16.md", 5)),
        ("ab12", "note", "ab12cd34", None, [], ("2026-11-17.md", 14)),
        ("1f0c", "fact", "1f0c33aa", None, ["a0000004"], ("MEMORY.md", 5)),
    ],
)  # fmt: skip
def test_names(
    run: Run, past: Memory, name: str, kind: str, id: str, session: str | None, turns: list[str], place: tuple[str, int]
) -> None:
    found = run(past, "show", name, "--json").json
    content = found.pop("content")
    file, line = place
    assert found == {
        "kind": kind, "id": id, "path": str(past.path(file)), "line": line, "session": session, "turns": turns,
        **({"tags": [], "metadata": {}} if kind == "note" else {}),
    }  # fmt: skip
    assert "<!--" not in content
    shown = run(past, "show", name).output
    assert f"{file}:{line}" in shown
    if kind in ("session", "turn"):
        assert f"original exchange: memkit transcript {session}" in shown


def test_a_session_has_all_its_days(run: Run, past: Memory) -> None:
    content = run(past, "show", "c0ffee", "--json").json["content"]
    assert re.findall(r"^#{1,3} (.*)", content, re.MULTILINE) == [
        "2026-11-11", "23:41 Rotate the vault keys by hand once", "23:41 Rotate the vault keys by hand once",
        "2026-11-12", "00:17 yes, all four", "00:17 yes, all four",
    ]  # fmt: skip


def test_a_session_of_one_turn_has_one_heading(run: Run, past: Memory) -> None:
    for name in ("5e550001", "2026-11-09"):
        output = run(past, "show", name).output
        (heading,) = re.findall("^.*staging gateway use.*$", output, re.MULTILINE)
        assert heading.startswith("## 09:12 Which port")
        assert "a0000001)" in heading


def test_a_citation_comes_with_its_turn(run: Run, past: Memory) -> None:
    output = run(past, "show", "82c57f55").output
    assert output.startswith("- Decided: orders move in batches of 5,000. (82c57f55)\n\n### 09:05 Review")
    assert "proof: memkit cite 82c57f55" in output
    fact = run(past, "show", "1f0c33aa").output  # has no turn of another file
    assert fact.startswith("- Decided: amounts are integers of cents. (2026-11-10) (1f0c33aa)\n")


@pytest.mark.parametrize(("name", "days"), [("today", 0), ("yesterday", 1), ("3 days ago", 3)])
def test_near_days(run: Run, tmp_path: Path, name: str, days: int) -> None:
    memory = fortnight(tmp_path)
    assert "; the nearest day is 2026-11-20" in run(memory, "show", *name.split()).complaint
    day = date.today() - timedelta(days=days)
    assert f"has no memory of {day}" in run(memory, "timeline", name).complaint
    memory.write(f"{day}.md", f"# {day}\n\nwritten by hand\n")
    memory.write(f"{day}.local.md", f"# {day}\n\nkept out of git\n")
    output = run(memory, "show", name).output
    assert "written by hand" in output
    assert "kept out of git" in output
    memory.write("2026-11-08.md", "# 2026-11-08\n\n## 09:00 A <!-- session:5e55 -->\n\n### 09:00 B <!-- turn:b1 -->\nx\n")
    assert run(memory, "show", "5e55", "--json").json["id"] == "5e55"  # exact, so not ambiguous


def test_not_there(run: Run, past: Memory) -> None:
    for name, said in (
        ("zz", "has no day, session, turn, or result 'zz'; `memkit sessions` and `memkit search` list them"),
        ("", "has no day, session, turn, or result ''"), ("2026-01-01", "the nearest day is 2026-11-09"),
        ("2026-11-14", "has no memory of 2026-11-14; the nearest day is 2026-11-13"),
        ("tomorrow", f"has no memory of {date.today() + timedelta(days=1)}; the nearest day is 2026-11-20"),
        ("0123456789ab", "'0123456789ab'; `memkit sessions` and `memkit search` list them, also what has changed since"),
        ("2026-13-45", "2026-13-45 is not a day of the calendar"), ("a", "matches 19 entries: "),
        ("82c57", "'82c57' matches 2 entries: citation 82c57f55, citation 82c57f56; give more characters"),
        ("../../etc/passwd", "has no day, session, turn, or result '../../etc/passwd'"),
        (".*", "has no day, session, turn, or result '.*'"),
        ("\x1b[31m", "has no day, session, turn, or result '\\x1b[31m'"),
    ):  # fmt: skip
        assert said in run(past, "show", name).complaint


def test_a_result_of_search(run: Run, read_only: Memory) -> None:
    (result, *_) = run(read_only, "search", "migration", "--json").json["results"]
    found = run(read_only, "show", result["id"], "--json").json
    assert (found["kind"], found["id"], found["session"]) == ("turn", result["id"], "5e550003")
    assert "What is left of the migration?" in found["content"]
    assert "original exchange: memkit transcript 5e550003 --turn " in run(read_only, "show", result["id"][:6]).output


SPECIAL = st.sampled_from(
    ["# ", "## ", "- ", "1. ", "> ", "```", "~~~", "|", "|---|", "\n", "\n\n", "    ", "**", "`", "~~", "<b>", "<kbd>",
     "</kbd>", "[a](#b)", "[a](http://b)", "![i](j)", "[![i](j)](k)", "&#27;", "&#x202e;", "&#xe000;", "\x1b[31m", "\x1b]8;;x\x1b\\",
     "\u202e", "\ue000", "\ue001", "日本", "<!-- turn:a1 -->", "<!-- grip:b2 turns:c3 -->", "<!-- own -->", "---", "=", "\\", "[[", "]("]
)  # fmt: skip


@given(st.lists(SPECIAL | st.text(max_size=5), max_size=30).map("".join), st.booleans())
@example("| a | b |\n|---|---|\n| ![i](j) | [![i](j)](k) |", True)
@example("- - - 1. # a\n> - ![x](y)", False)
@example("a</kbd>b", True)
@example("[a [b](#c) d](e)", True)
@settings(max_examples=examples(300))
def test_any_text_is_rendered_safely(text: str, color: bool) -> None:
    shown = render(text, 60, color=color)
    assert not UNSAFE.search(STYLE.sub("", shown))
    assert not UNSAFE.search(with_ids(text))


@given(st.lists(st.text("abc <>&*_`#-", min_size=1, max_size=12), max_size=6).map(" ".join))
@settings(max_examples=examples(100))
def test_every_word_is_shown(text: str) -> None:
    letters = re.sub("[^abc]", "", plain(text))
    assert re.sub("[^abc]", "", render(f"x {text}", 60, color=False)) == letters


@pytest.mark.parametrize("text", ["> " * 300 + "a", "".join(f"{' ' * 2 * n}- a\n" for n in range(100)), "[" * 3000, "*a " * 2000])
def test_deep_nesting(text: str) -> None:
    assert "a" in render(f"a {text}\n\n{text}", 60, color=True)


def test_an_id_at_the_end_of_a_full_line() -> None:
    for length in range(40, 62):
        text = "word " * 10 + "x" * (length - 50)
        shown = render(f"- {text} <!-- grip:82c57f55 turns:a1 -->", 60, color=False)
        assert max(map(cells, shown.split("\n"))) <= 60
        assert shown.endswith("(82c57f55)")


# `memkit sessions`: one line for each session, or two on a small screen, newest first.


def ids(run: Run, memory: Memory, *arguments: str) -> list[str]:
    return [one["session"][:8] for one in run(memory, "sessions", "--json", *arguments).json["sessions"]]


@pytest.mark.parametrize("columns", [80, 120])
def test_sessions_screen(run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = run(past, "sessions")
    assert (found.status, found.errors) == (0, "")
    check_screen(f"sessions-{columns}", found.output)
    if columns == 80:
        assert run(past, "transcript").output == found.output
        assert run(past, "transcript", "--json").json == run(past, "sessions", "--json").json
    for width in (40, 60, 72, 115, 116, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = run(past, "sessions").output.splitlines()
        assert len(lines) == (14 if width > 115 else 27)  # one line or two for each of 13 sessions, and a head
        assert max(map(cells, lines)) <= width


def test_over_midnight_is_one_line(run: Run, past: Memory) -> None:
    found = run(past, "sessions", "--json").json["sessions"]
    (late,) = [one for one in found if one["session"].startswith("c0ffee00")]
    assert (late["begins"], late["ends"]) == ("2026-11-11 23:41", "2026-11-12 00:17")
    assert late["title"] == "Rotate the vault keys by hand once"
    assert late["turns"] == ["a0000005", "a0000006"]
    assert late["outcome"].startswith("All four keys are new")
    assert (late["path"], late["line"]) == (str(past.path("2026-11-11.md")), 3)


def test_filters(run: Run, past: Memory) -> None:
    for words, expected in (
        ("-n 2", "beef0001 5e55000c"), ("--since 2026-11-20", "beef0001 5e55000c"),
        ("--since 2026-11-18", "beef0001 5e55000c 5e55000b 5e55000a 5e550009"),
        ("--branch feature/orders", "beef0001 5e550007"), ("--branch feature/money", "5e550003"), ("--branch feature", ""),
        ("--file deploy/gateway.yaml", "5e550001"), ("--file ./src/orders/batch.py", "beef0001"),
        ("--file 0042_orders.sql", "beef0001 5e550007"), ("--file orders.sql", ""), ("--file ../../etc/passwd", ""),
        ("--file 0042_orders.sql -n 1", "beef0001"), ("--file nightly.yml", "5e550002"),
        (f"--file {past.project.root}/ci/nightly.yml", "5e550002"),
    ):  # fmt: skip
        assert ids(run, past, *words.split()) == expected.split(), words


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


def test_no_session(run: Run, past: Memory, tmp_path: Path) -> None:
    empty = make_memory(tmp_path)
    found = run(empty, "sessions")
    assert found.output == f"No session in {empty.project.root}. --all-projects lists those of all projects.\n"
    assert run(empty, "sessions", "--json").json == {"sessions": []}
    assert run(past, "sessions", "--branch", "x").output.startswith("No such session in ")
    (tmp_path / "odd").mkdir()
    text = "# 2026-11-20\n\n## 09:00 ✅ **All pass** &lt;!-- <!-- session:5e550001 -->\n"
    odd = make_memory(tmp_path / "odd", {"2026-99-99.md": FILES["2026-11-13.md"], "2026-11-20.md": text})  # no such day
    assert ids(run, odd) == ["5e550001"]
    assert re.search(r"✅ All pass <!--  +5e550001", run(odd, "sessions").output)
    assert not list(Path(odd.home.index).rglob("manifest"))  # needs no index


def test_all_projects(run: Run, tmp_path: Path) -> None:
    here = fortnight(tmp_path)
    other = make_memory(tmp_path / "other", {"2026-11-19.md": FILES["2026-11-09.md"].replace("2026-11-09", "2026-11-19")}, home=here.home)
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
