"""`memkit search` as people, scripts and models call it, and what it shows on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memkit.cli.search import show_full, show_short
from memkit.embedding import Embedder
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search import ranking as search_module
from memkit.search.results import Answer, Excerpt, Result
from tests.ci import first
from tests.cli.conftest import Run, lexical_memory
from tests.cli.fortnight import check_screen
from tests.memory import DAYS, CountingEmbedder, Memory, day, make_chunk, make_memory


def test_for_people(run: Run, read_only: Memory) -> None:
    found = run(read_only, "search", "--full", "which port does the staging gateway use", "-k", "1")
    assert found.status == 0
    assert found.errors == ""
    heading, place, *rest = found.output.splitlines()
    identifier, _, breadcrumb = heading.partition("  ")
    assert len(identifier) == 8
    assert breadcrumb == "2026-11-18 > 09:00 Work > 09:00 Which port does the staging gateway use?"
    assert place.startswith(".memkit/memory/2026-11-18.md:")
    assert "**Answered** It listens on 7443, 443 is taken." in rest
    assert "\x1b" not in found.output
    found = run(read_only, "search", "--json", "which port does the staging gateway use")
    assert list(found.json) == ["query", "mode", "degraded", "took_ms", "best_relevance", "chunks", "results"]


def test_a_full_result_says_what_holds_now_and_where_its_turn_is(capsys: pytest.CaptureFixture[str]) -> None:
    bullet = make_chunk("- Found: The build needs its cache.", kind="summary")
    later = {"id": "0badcafe", "date": "2026-11-20", "text": "The build needs no cache."}
    merged = [{"id": "bbbbbbbb", "kind": "turn"}]
    result = Result("bbbbbbb1", "p", 1, 1, bullet, 1, None, 1, merged=merged, superseded=later)
    show_full(Answer("", "context", "", 0, [result]), "")
    shown = capsys.readouterr().out
    assert "\nsuperseded 2026-11-20: The build needs no cache.\nthe whole turn: memkit expand bbbbbbbb\n" in shown


def test_words_need_no_quotes(run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_SEARCH_MODE", "dense")
    for arguments, mode in (
        ("which port does staging use", "dense"),
        ("which port -k 2 does staging --mode=context use", "context"),
        ("-k2 -- which port does staging use", "dense"),
    ):
        answer = run(read_only, "search", "--json", *arguments.split()).json
        assert (answer["query"], answer["mode"]) == ("which port does staging use", mode)
        assert answer["results"][0]["date"] == "2026-11-18"
    answer = run(read_only, "search", "--json", "--", "what", "does", "--json", "--", "-k", "do").json
    assert answer["query"] == "what does --json -- -k do"


@pytest.mark.parametrize("encoding", first(1, ["ascii", "latin-1"]))
def test_text_and_terminals_that_are_not_unicode(
    run: Run, spawn: Run, fresh: Memory, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file name or a paste can hold any bytes."""
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    fresh.write("notes.md", "# Größe → 中文\n\n" + "Die Größe ist wichtig – 中文. " * 8)
    run(fresh, "index")
    search = ("search", "--mode", "lexical", "Größe", os.fsdecode(b"\xff\xfe"))
    for arguments in (["--json"], []):
        found = spawn(fresh, *search, *arguments, PYTHONIOENCODING=encoding)
        assert (found.status, found.errors) == (0, "")
        assert not arguments or "中文" in json.loads(found.output)["results"][0]["content"]


class TestBatch:
    """Many questions, one start."""

    def test_one_searcher_for_all(self, run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = []
        original = search_module.open_searcher

        def open_searcher(*arguments: object, **options: object) -> object:
            opened.append(arguments)
            return original(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(search_module, "open_searcher", open_searcher)
        text = b'staging port\n\n  \n{"query": "who owns\\nbilling", "id": 7}\nERR_404'
        options = ("-k", "2", "--all", "--explain", "--kind", "turn")
        found = run(read_only, "search", "--batch", "-", *options, stdin=text)
        assert found.status == 0
        assert [answer["line"] for answer in found.lines] == [1, 4, 5]
        for answer in found.lines:
            assert [result["kind"] for result in answer["results"]] == ["turn", "turn"]
            assert all(result["explanation"] for result in answer["results"])
        assert len(opened) == 1
        nothing = run(read_only, "search", "--batch", "-", stdin=b"\n\n  \n")
        assert (nothing.status, nothing.output, nothing.errors) == (0, "", "")

    def test_stdin_is_not_echoed(self, run: Run, read_only: Memory, tmp_path: Path) -> None:
        """It can be any file, and Claude may run this unprompted."""
        secret = b"hunter2-of-a-file\n"
        for line in (secret, b'{"hunter2-of-a-file\n', b'{"query": "hunter2-of-a-file"}'):
            for arguments in ((), ("--explain", "--all"), ("--json",)):
                found = run(read_only, "search", "--batch", "-", *arguments, stdin=line)
                assert "hunter2" not in found.output + found.errors
        (tmp_path / "secrets").write_bytes(secret)
        found = run(read_only, "search", "--batch", str(tmp_path / "secrets"))  # no file is read
        assert (found.status, found.output, "hunter2" in found.errors) == (2, "", False)

    def test_a_bad_line_is_named(self, run: Run, read_only: Memory) -> None:
        for line in ('{"query": 5}', '{"question": "port"}', "{", '{"query": "a"} {"query": "b"}'):
            found = run(read_only, "search", "--batch", "-", stdin=f"port\n\n{line}\n".encode())
            assert (found.status, found.lines[0]["line"]) == (1, 1)
            assert found.errors.startswith("memkit: --batch, line 3: expected")
            assert found.errors.count("\n") == 1
        data = b'\xef\xbb\xbf{"query": "port"}\r\n\xff\xfe\r\n{"query": "\\ud800"}\r\n'  # bytes of any kind
        found = run(read_only, "search", "--batch", "-", stdin=data)
        assert [answer["line"] for answer in found.lines] == [1, 2, 3]


TODAY = date.today()
LONG = "\n\n".join(f"Paragraph {n} on how the gateway was built and why. " * 5 for n in range(12))


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory, model_home: Home, real_embedder: Embedder) -> Memory:
    """Turns of three sessions and of today, a note, instructions, and a file for a domain."""
    memory = make_memory(
        tmp_path_factory.mktemp("varied"),
        {
            **DAYS,
            "today.md": day(
                str(TODAY), ("Is the gateway up?", "The gateway is up."), session="700da700"
            ),
            "notes.md": f"# Gateway notes\n\n{LONG}",
            "billing/rules.md": "# Rules\n\n" + "Every invoice passes the gateway once. " * 5,
            "python.instructions.md": "# Python\n\n" + "Never call the gateway in a test. " * 5,
        },
        embedder=CountingEmbedder(real_embedder),
        models=model_home.models,
    )
    memory.sync()
    return memory


def results(run: Run, memory: Memory, *arguments: str, query: str = "the gateway") -> list[Any]:
    """What a search that lets everything pass finds."""
    if "--min-relevance" not in arguments:
        arguments = ("--all", *arguments)
    found = run(memory, "search", "--json", *arguments, query)
    assert (found.status, found.errors) == (0, "")
    assert found.json["results"]
    return list(found.json["results"])


def test_filters(run: Run, varied: Memory) -> None:
    """That each option reaches its filter; `tests/search/test_filters.py` has the rest."""
    everything = results(run, varied, "-k", "100")
    for arguments, name, expected in (
        (["--since", "2026-11-19", "--until", "2026-11-19"], "date", {"2026-11-19"}),
        (["--since", "2d", "--session", "700da700"], "date", {str(TODAY)}),
        (["--session", "5e55"], "session", {"5e550001", "5e550002", "5e550003"}),
        (["--branch", "main"], "branch", {"main"}),
        (["--kind", "instruction"], "kind", {"instruction"}),
        (["--path", "*.instructions.md"], "source", {".memkit/memory/python.instructions.md"}),
    ):
        found = results(run, varied, "-k", "100", *arguments)
        assert {result[name] for result in found} == expected
        ids = [one["id"] for one in found]
        assert ids == [one["id"] for one in everything if one["id"] in ids]
        assert len(everything) > len(found)
    nothing = run(varied, "search", "--all", "--kind", "note", "--session", "5e55", "the gateway")
    assert nothing.output == "Nothing found.\nTry without --session and --kind.\n"


@pytest.mark.parametrize("wrong", ["someday", "2026-02-30", "12", "a\nb"])
def test_a_bad_day(run: Run, varied: Memory, wrong: str) -> None:
    for option in ("--since", "--until"):
        complaint = run(varied, "search", "gateway", option, wrong).complaint
        assert repr(wrong) in complaint
        assert "write 2026-11-20, 3d, 2w, yesterday" in complaint


def test_relevance_decides_what_is_shown(run: Run, varied: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_SEARCH_BEST_RELEVANCE", "0.9")
    question = "how long must sourdough rise"
    found = run(varied, "search", question)
    assert found.status == 0
    assert found.output.startswith("Nothing found: the nearest entry has a relevance of 0.")
    assert found.output.endswith("(--all shows it).\n")
    answer = run(varied, "search", "--json", question).json
    assert answer["results"] == []
    nearest = results(run, varied, query=question)
    assert max(result["relevance"] for result in nearest) == answer["best_relevance"] < 0.9

    least = sorted(result["relevance"] for result in nearest)[1]
    kept = results(run, varied, "--min-relevance", str(least), query=question)
    assert min(result["relevance"] for result in kept) >= least - 1e-4
    found = run(varied, "search", question, "--min-relevance", "0.95")
    assert found.status == 0
    assert found.output.startswith("Nothing found: the nearest entry has a relevance of 0.")


def test_explained_to_people(run: Run, varied: Memory) -> None:
    lines = run(varied, "search", "--explain", "-k", "1", "ERR_404").output.splitlines()
    assert re.search(r"relevance [01]\.\d\d  score \d\.\d{3}$", lines[1])
    assert re.fullmatch(r"  lexical: rank 1, score \d+\.\d{3}", lines[2])
    assert "  identifier: True" in lines
    plain = run(varied, "search", "--full", "-k", "1", "ERR_404").output.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == plain


def test_all_projects(run: Run, tmp_path: Path) -> None:
    """That the option reaches the search; `tests/search/test_projects.py` has the rest."""
    one = lexical_memory(tmp_path / "one", {"a.md": "# Gateway\n\n" + "The gateway is blue. " * 6})
    two = make_memory(tmp_path / "two", {"a.md": "# Portal\n\n" + "The portal is blue. " * 6}, home=one.home)
    Path(two.project.root).rename(tmp_path / "two" / "other")
    two.project = Project(str(tmp_path / "two" / "other"))
    run(one, "index")
    assert "other: " not in run(two, "search", "which is blue", "--full").output
    text = run(two, "search", "which is blue", "--full", "--all-projects").output
    for heading in ("project: Gateway", "other: Portal"):
        assert re.search(rf"^[0-9a-f]{{12}}  {heading}$", text, re.MULTILINE)
    assert "other: .memkit/memory/a.md\n" in run(two, "search", "which is blue", "--all-projects").output
    found = run(two, "search", "zebra", "--since", "2w")
    assert found.output == "Nothing found.\nTry --all-projects, which adds 1 other project, or without --since.\n"
    assert run(two, "search", "zebra", "--all-projects").output == "Nothing found.\n"


def test_wrong_usage(run: Run, read_only: Memory) -> None:
    for arguments in (
        "", "question --batch -", "two words --batch -", "x -k 0", "x -k many", "x --mode fuzzy", "x -k 3 --budget 500",
        "x --budget 10", "x --budget much", "x --all --min-relevance 0.5", "x --min-relevance 1.5",
        "x --min-relevance 50%", "x --kind letter", "x --since", "--all-projects", "x --no-such-option",
        "--batch /no/such/file", "--batch /",
    ):  # fmt: skip
        found = run(read_only, "search", *arguments.split())
        assert (found.status, found.output) == (2, ""), arguments
        assert found.errors.splitlines()[-1].startswith("Error: ")
    (line,) = run(read_only, "search", "x", "--kind", "decision").errors.splitlines()
    assert line.startswith("Error: 'decision' is not a kind; use turn, summary, fact,")
    assert "A decision is of kind summary or fact" in line


# What `memkit search` shows on a terminal.


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    days = Path(__file__).with_name("streaming_days")
    files = {path.name: path.read_text(encoding="utf-8") for path in days.iterdir()}
    return lexical_memory(tmp_path_factory.mktemp("shown"), files)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a fixture: pytest replaces stdout before each test."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def screen_of(run: Run, memory: Memory, *words: str) -> str:
    found = run(memory, "search", "-k", "10", *(words or ("streaming",)))
    assert (found.status, found.errors) == (0, "")
    return found.output


def without_ids(text: str) -> str:
    return re.sub(r"(?<=  )(?<!session )[0-9a-f]{8}$", "ID", text, flags=re.MULTILINE)


def test_a_screen_of_80_columns(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = screen_of(run, memory)
    check_screen("search-80", without_ids(shown))
    assert max(map(len, shown.splitlines())) == 80
    for identifier in re.findall(r"  ([0-9a-f]{8})$", shown, re.MULTILINE)[:5]:
        assert "treaming" in run(memory, "expand", identifier).output


def test_wide_and_narrow_screens(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (40, 60, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = screen_of(run, memory)
        assert max(map(len, shown.splitlines())) == min(columns, 120)
        assert ("what is the reason?" in shown) == (columns >= 120)
        assert shown.count("\n") <= 22


def test_colors_and_links(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    shown = screen_of(run, memory)
    assert "\x1b[32m\x1b[1mstreaming\x1b[0m" in shown
    day = Path(memory.project.memory, "2025-09-20.md").as_uri()
    assert f"\x1b]8;;{day}#9\x1b\\Token" in shown
    # No yellow and no white: they are hard to read on light backgrounds.
    assert set(re.findall(r"\x1b\[(\d+)m", shown)) <= {"0", "1", "2", "32", "35", "36"}
    bare = re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[\d+m", "", shown)
    check_screen("search-80", without_ids(bare))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in screen_of(run, memory)


def test_unverified_bullets_are_marked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bullet = f"- Fact: the yak grazes {'on the high meadow ' * 4}in May. (unverified)"
    anchor = "<!-- grip:05ac16a2 turns:8b52f4fb check:unverified -->"
    text = f"# 2026-11-20\n\n## 09:00 Yaks <!-- session:5e550001 -->\n\n{bullet} {anchor}\n"
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    memory = make_memory(tmp_path, {"2026-11-20.md": text})
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        (line, *_) = screen_of(run, memory, "yak", "grazes").splitlines()[1:]
        assert re.search(r"Fact: the yak .* \(unverified\) +05ac16a2$", line)
        assert len(line) == columns


def hostile_answer(text: str) -> Answer:
    def result(kind: str, **known: str) -> Result:
        chunk = make_chunk(
            text, kind=kind, source=f".memkit/{text}.md", heading=text, breadcrumb=text, date=text, **known
        )
        excerpt = Excerpt(text, text, text, text, tuple(text.split()), text)
        superseded = {"date": text, "text": text} if kind == "fact" else {}
        return Result(text, text, 1, 1, chunk, 1, None, 1, "/home/shop", [], superseded, {}, excerpt)

    return Answer("", "context", "", 0, [result("turn", session=text), result("note"), result("fact")])


def test_nothing_in_a_result_steers_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    text = (
        "a\x1b]8;;https://evil.example\x1b\\b \x1b]52;c;ZXZpbA==\x07 \x1b[2J\x1b[33mc \x9b31m\x9c \r\n\x08 d\u202egnp"
        " \x1b \x00 %41 e"
    )
    show_short(hostile_answer(text), "/home/other")
    shown = capsys.readouterr().out
    links = re.findall(r"\x1b\]8;;([^\x1b\x07]*)\x1b\\", shown)
    assert len(links) == 6
    for address in filter(None, links):
        assert re.fullmatch(r"file:///home/shop/\.memkit/[\w%./:;()&=#~-]+", address, re.ASCII)
        assert "%1B" in address
        assert "%2541" in address
    left = re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[(?:0|1|2|32|35|36)m", "", shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", left)


def test_text_that_memkit_did_not_cut_into_an_excerpt(capsys: pytest.CaptureFixture[str]) -> None:
    """An older service sends none."""
    chunk = make_chunk("It is.", kind="turn", heading="09:00 Is it?", session="5e550001", date="2026-11-18")
    show_short(Answer("", "context", "", 0, [Result("0123456789ab", "p", 1, 1, chunk, 1, None, 1)]), "")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["2026-11-18", "session", "5e550001"]
    assert second.split() == ["09:00", "Is", "it?", "01234567"]
