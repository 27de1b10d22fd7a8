"""`memkit show`: a day, a session, a turn, or anything else with an id."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.cli.output import plain
from memkit.cli.screen import cells
from memkit.cli.show import render, with_ids
from tests.ci import examples
from tests.cli.conftest import Run
from tests.cli.fortnight import check_screen, fortnight
from tests.memory import Memory

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


def test_a_fact_has_no_turn_of_another_file(run: Run, past: Memory) -> None:
    assert run(past, "show", "1f0c33aa").output.startswith("- Decided: amounts are integers of cents. (2026-11-10) (1f0c33aa)\n")


@pytest.mark.parametrize("name", ["today", "yesterday"])
def test_near_days(run: Run, tmp_path: Path, name: str) -> None:
    memory = fortnight(tmp_path)
    assert "; the nearest day is 2026-11-20" in run(memory, "show", name).complaint
    day = date.today() - timedelta(days=int(name == "yesterday"))
    memory.write(f"{day}.md", f"# {day}\n\nwritten by hand\n")
    memory.write(f"{day}.local.md", f"# {day}\n\nkept out of git\n")
    output = run(memory, "show", name).output
    assert "written by hand" in output
    assert "kept out of git" in output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("zz", "has no day, session, turn, or result 'zz'; `memkit sessions` and `memkit search` list them"),
        ("", "has no day, session, turn, or result ''"),
        ("2026-11-14", "has no memory of 2026-11-14; the nearest day is 2026-11-13"),
        ("2026-01-01", "the nearest day is 2026-11-09"),
        ("2026-13-45", "2026-13-45 is not a day of the calendar"),
        ("tomorrow", f"has no memory of {date.today() + timedelta(days=1)}; the nearest day is 2026-11-20"),
        ("0123456789ab", "'0123456789ab'; `memkit sessions` and `memkit search` list them, also what has changed since"),
        ("2026-99-99", "2026-99-99 is not a day of the calendar"),
        ("82c57", "'82c57' matches 2 entries: citation 82c57f55, citation 82c57f56; give more characters"),
        ("a", "matches 19 entries: "),
        ("../../etc/passwd", "has no day, session, turn, or result '../../etc/passwd'"),
        (".*", "has no day, session, turn, or result '.*'"),
        ("\x1b[31m", "has no day, session, turn, or result '\\x1b[31m'"),
    ],
)
def test_not_there(run: Run, past: Memory, name: str, said: str) -> None:
    assert said in run(past, "show", name).complaint


def test_an_exact_id_is_not_ambiguous(run: Run, tmp_path: Path) -> None:
    memory = fortnight(tmp_path)
    memory.write("2026-11-08.md", "# 2026-11-08\n\n## 09:00 A <!-- session:5e55 -->\n\n### 09:00 B <!-- turn:b1 -->\nx\n")
    assert run(memory, "show", "5e55", "--json").json["id"] == "5e55"


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


def test_html_is_text() -> None:
    assert render("use `Map<K>` or Array<string>, <div>x</div>", 80, color=False) == (
        "use Map<K> or Array<string>, <div>x</div>"
    )
