"""`memkit search` as people, scripts and models call it."""

from __future__ import annotations

import json
import os
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memkit.cli.search import show_full
from memkit.embedding import Embedder
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search import ranking as search_module
from memkit.search.results import Answer, Result
from tests.ci import first
from tests.cli.conftest import Run, lexical_memory
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


def test_a_full_result_says_what_holds_now_and_where_its_turn_is(capsys: pytest.CaptureFixture[str]) -> None:
    bullet = make_chunk("- Found: The build needs its cache.", kind="summary")
    later = {"id": "0badcafe", "date": "2026-11-20", "text": "The build needs no cache."}
    merged = [{"id": "bbbbbbbb", "kind": "turn"}]
    result = Result("bbbbbbb1", "p", 1, 1, bullet, 1, None, 1, merged=merged, superseded=later)
    show_full(Answer("", "context", "", 0, [result]), "")
    shown = capsys.readouterr().out
    assert "\nsuperseded 2026-11-20: The build needs no cache.\nthe whole turn: memkit expand bbbbbbbb\n" in shown


def test_for_scripts(run: Run, read_only: Memory) -> None:
    found = run(read_only, "search", "--json", "which port does the staging gateway use")
    assert found.errors == ""
    assert list(found.json) == ["query", "mode", "degraded", "took_ms", "best_relevance", "chunks", "results"]
    assert found.json["results"][0]["date"] == "2026-11-18"


def test_options_after_and_before(run: Run, read_only: Memory) -> None:
    for arguments in (
        ["search", "--mode", "lexical", "-k", "2", "--json", "service"],
        ["search", "service", "--json", "-k2", "--mode=lexical"],
    ):
        answer = run(read_only, *arguments).json
        assert answer["mode"] == "lexical"
        assert len(answer["results"]) == 1


def test_words_need_no_quotes(run: Run, read_only: Memory) -> None:
    for arguments in (
        ["which", "port", "does", "staging", "use"],
        ["which", "port", "-k", "2", "does", "staging", "--mode=context", "use"],
        ["-k2", "--", "which", "port", "does", "staging", "use"],
        ["which port", "does staging use"],
    ):
        answer = run(read_only, "search", "--json", *arguments).json
        assert answer["query"] == "which port does staging use"
        assert answer["results"][0]["date"] == "2026-11-18"
    answer = run(read_only, "search", "--json", "--", "what", "does", "--json", "--", "-k", "do").json
    assert answer["query"] == "what does --json -- -k do"


def test_the_setting_and_the_flag(run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_SEARCH_MODE", "dense")
    monkeypatch.setenv("MEMKIT_SEARCH_K", "1")
    answer = run(read_only, "search", "--json", "the service").json
    assert (answer["mode"], len(answer["results"])) == ("dense", 1)
    answer = run(read_only, "search", "--json", "--all", "the service", "--mode", "context", "-k", "4").json
    assert (answer["mode"], len(answer["results"])) == ("context", 4)


def test_a_question_that_is_not_unicode(spawn: Run, read_only: Memory) -> None:
    """A file name or a paste can hold any bytes."""
    query = os.fsdecode(b"port \xff\xfe")
    for arguments in first(1, [["--json"], []]):
        found = spawn(read_only, "search", "--mode", "lexical", query, *arguments)
        assert (found.status, found.errors) == (0, "")
        assert "7443" in found.output


@pytest.mark.parametrize("encoding", first(1, ["ascii", "latin-1"]))
def test_a_terminal_that_is_not_unicode(
    run: Run, spawn: Run, fresh: Memory, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    fresh.write("notes.md", "# Größe → 中文\n\n" + "Die Größe ist wichtig – 中文. " * 8)
    run(fresh, "index")
    for arguments in (["--json"], []):
        found = spawn(
            fresh, "search", "--mode", "lexical", "Größe", *arguments, PYTHONIOENCODING=encoding
        )
        assert (found.status, found.errors) == (0, "")
        if arguments:
            assert "中文" in json.loads(found.output)["results"][0]["content"]


def test_nothing_found(run: Run, read_only: Memory) -> None:
    found = run(read_only, "search", "--mode", "lexical", "xyzzy")
    assert (found.status, found.output, found.errors) == (0, "Nothing found.\n", "")


def test_no_memory_yet(run: Run, fresh: Memory) -> None:
    for path in Path(fresh.project.memory).iterdir():
        path.unlink()
    found = run(fresh, "search", "port")
    assert found.status == 0
    assert "has no memory yet" in found.errors
    assert run(fresh, "search", "--json", "port").json["results"] == []


class TestBatch:
    """Many questions, one start."""

    def test_one_searcher_for_all(
        self, run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = []
        original = search_module.open_searcher

        def open_searcher(*arguments: object, **options: object) -> object:
            opened.append(arguments)
            return original(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(search_module, "open_searcher", open_searcher)
        text = b'staging port\n\n  \n{"query": "who owns\\nbilling", "id": 7}\nERR_404'
        found = run(read_only, "search", "--batch", "-", "-k", "2", "--all", stdin=text)
        assert found.status == 0
        assert [answer["line"] for answer in found.lines] == [1, 4, 5]
        assert all(len(answer["results"]) == 2 for answer in found.lines)
        assert len(opened) == 1

    def test_stdin_is_not_echoed(self, run: Run, read_only: Memory) -> None:
        """It can be any file, and Claude may run this unprompted."""
        secret = b"hunter2-of-a-file\n"
        for line in (secret, b'{"hunter2-of-a-file\n', b'{"query": "hunter2-of-a-file"}'):
            for arguments in ((), ("--explain", "--all"), ("--json",)):
                found = run(read_only, "search", "--batch", "-", *arguments, stdin=line)
                assert "hunter2" not in found.output + found.errors

    def test_no_file_is_read(self, run: Run, read_only: Memory, tmp_path: Path) -> None:
        (tmp_path / "secrets").write_text("hunter2\n")
        found = run(read_only, "search", "--batch", str(tmp_path / "secrets"))
        assert found.status == 2
        assert found.output == ""
        assert "hunter2" not in found.errors

    @pytest.mark.parametrize("text", [b"", b"\n\n  \n"])
    def test_no_question(self, run: Run, read_only: Memory, text: bytes) -> None:
        found = run(read_only, "search", "--batch", "-", stdin=text)
        assert (found.status, found.output, found.errors) == (0, "", "")

    def test_bytes_of_any_kind(self, run: Run, read_only: Memory) -> None:
        data = b'\xef\xbb\xbf{"query": "port"}\r\n\xff\xfe\r\n{"query": "\\ud800"}\r\n'
        found = run(read_only, "search", "--batch", "-", stdin=data)
        assert [answer["line"] for answer in found.lines] == [1, 2, 3]

    @pytest.mark.parametrize(
        "line", ['{"query": 5}', '{"question": "port"}', "{", '{"query": "a"} {"query": "b"}']
    )
    def test_a_bad_line_is_named(self, run: Run, read_only: Memory, line: str) -> None:
        found = run(read_only, "search", "--batch", "-", stdin=f"port\n\n{line}\n".encode())
        assert found.status == 1
        assert found.lines[0]["line"] == 1
        assert found.errors.startswith("memkit: --batch, line 3: expected")
        assert found.errors.count("\n") == 1


TODAY = date.today()
LONG = "\n\n".join(f"Paragraph {n} on how the gateway was built and why. " * 5 for n in range(12))


@pytest.fixture(scope="module")
def varied(
    tmp_path_factory: pytest.TempPathFactory, model_home: Home, real_embedder: Embedder
) -> Memory:
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


@pytest.mark.parametrize(
    ("arguments", "name", "expected"),
    [
        (["--since", "2026-11-19", "--until", "2026-11-19"], "date", {"2026-11-19"}),
        (["--since", "2d", "--session", "700da700"], "date", {str(TODAY)}),
        (["--session", "5e55"], "session", {"5e550001", "5e550002", "5e550003"}),
        (["--branch", "main"], "branch", {"main"}),
        (["--kind", "instruction"], "kind", {"instruction"}),
        (["--path", "*.instructions.md"], "source", {".memkit/memory/python.instructions.md"}),
    ],
)
def test_filters(
    run: Run, varied: Memory, arguments: list[str], name: str, expected: set[str]
) -> None:
    found = results(run, varied, "-k", "100", *arguments)
    assert {result[name] for result in found} == expected
    everything = results(run, varied, "-k", "100")
    assert len(everything) > len(found)
    assert [one["id"] for one in found] == [
        one["id"] for one in everything if one["id"] in {other["id"] for other in found}
    ]


def test_filters_together_can_leave_nothing(run: Run, varied: Memory) -> None:
    found = run(varied, "search", "--all", "--kind", "note", "--session", "5e55", "the gateway")
    assert (found.status, found.output) == (0, "Nothing found.\nTry without --session and --kind.\n")


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("wrong", ["someday", "2026-02-30", "2026-13-01", "12", "a\nb"])
def test_a_bad_day(run: Run, varied: Memory, option: str, wrong: str) -> None:
    complaint = run(varied, "search", "gateway", option, wrong).complaint
    assert repr(wrong) in complaint
    assert "write 2026-11-20, 3d, 2w, yesterday" in complaint


def test_the_file_at_hand_raises_its_domain(run: Run, varied: Memory, tmp_path: Path) -> None:
    def score(*arguments: str) -> float:
        found = results(run, varied, "-k", "100", *arguments)
        (rules,) = (result for result in found if result["source"].endswith("rules.md"))
        return float(rules["score"])

    plain = score()
    inside = Path(varied.project.root, "src/billing/invoice.py")
    assert score("--file", "src/billing/invoice.py") > plain
    assert score("--file", "./src/../src/billing/invoice.py") > plain
    assert score("--file", str(inside)) > plain
    assert score("--file", "src/web/page.py") == plain
    assert score("--file", str(tmp_path / "page.py")) == plain


def test_a_session_raises_the_domain_of_the_file_it_edited(
    run: Run, varied: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boosts(*arguments: str) -> dict[str, float]:
        return {r["source"]: r["explanation"]["boost"] for r in results(run, varied, "--explain", *arguments)}

    session = "8bb06550-1111-4222-8333-444455556666"
    edit = {"type": "tool_use", "id": "t1", "name": "Edit"}
    edit["input"] = {"file_path": f"{varied.project.root}/src/billing/invoice.py"}
    entry = {"type": "assistant", "uuid": "1", "sessionId": session, "message": {"content": [edit]}}
    transcript = tmp_path / "claude" / "projects" / "x" / f"{session}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps(entry) + "\n")
    (rules,) = (source for source in boosts("-k", "100") if source.endswith("rules.md"))
    assert boosts("-k", "100")[rules] == 1
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
    assert boosts("-k", "100")[rules] == 1.3
    assert boosts("-k", "100", "--file", "src/web/page.py")[rules] == 1


def test_relevance_decides_what_is_shown(
    run: Run, varied: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_nearest_entries_if_nothing_matches_closely(
    run: Run, varied: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKIT_SEARCH_BEST_RELEVANCE", "0.9")
    monkeypatch.setattr(search_module, "NEAREST_RELEVANCE", 0.05)
    question = "how long must sourdough rise"
    named = run(varied, "search", "--json", question).json["nearest"]
    best = results(run, varied, query=question)
    assert [one["id"] for one in named] == [one["id"] for one in best[:3]]
    first, *shown = run(varied, "search", question).output.splitlines()
    assert first == "Nothing matches closely. The nearest entries (--all shows more):"
    assert [line.split()[-1] for line in shown[:3]] == [one["id"][:8] for one in named]
    assert "nearest" not in run(varied, "search", "--json", "--min-relevance", "0", question).json


def test_explained_to_people(run: Run, varied: Memory) -> None:
    lines = run(varied, "search", "--explain", "-k", "1", "ERR_404").output.splitlines()
    assert re.search(r"relevance [01]\.\d\d  score \d\.\d{3}$", lines[1])
    assert re.fullmatch(r"  lexical: rank 1, score \d+\.\d{3}", lines[2])
    assert "  identifier: True" in lines
    plain = run(varied, "search", "--full", "-k", "1", "ERR_404").output.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == plain


def test_options_hold_for_every_line_of_a_batch(run: Run, varied: Memory) -> None:
    arguments = ["--batch", "-", "--kind", "turn", "-k", "1", "--all", "--explain"]
    found = run(varied, "search", *arguments, stdin=b"gateway\nsourdough")
    assert found.status == 0
    for answer in found.lines:
        (result,) = answer["results"]
        assert result["kind"] == "turn"
        assert result["explanation"]


def test_all_projects(run: Run, tmp_path: Path) -> None:
    one = lexical_memory(tmp_path / "one", {"a.md": "# Gateway\n\n" + "The gateway is blue. " * 6})
    two = make_memory(
        tmp_path / "two", {"a.md": "# Portal\n\n" + "The portal is blue. " * 6}, home=one.home
    )
    Path(two.project.root).rename(tmp_path / "two" / "other")
    two.project = Project(str(tmp_path / "two" / "other"))

    def headings(memory: Memory, *arguments: str) -> dict[str, str]:
        answer = run(memory, "search", "--json", "which is blue", *arguments).json
        return {result["heading"]: result["project"] for result in answer["results"]}

    both = {"Gateway": "project", "Portal": "other"}
    assert headings(two) == {"Portal": "other"}
    assert headings(one, "--all-projects") == both
    assert headings(two, "--all-projects") == both
    assert headings(one) == {"Gateway": "project"}
    text = run(two, "search", "which is blue", "--full", "--all-projects").output
    assert re.search(r"^[0-9a-f]{12}  project: Gateway$", text, re.MULTILINE)
    assert re.search(r"^[0-9a-f]{12}  other: Portal$", text, re.MULTILINE)
    assert "other: " not in run(two, "search", "which is blue", "--full").output
    assert "other: .memkit/memory/a.md\n" in run(two, "search", "which is blue", "--all-projects").output
    found = run(two, "search", "zebra", "--since", "2w")
    assert found.output == (
        "Nothing found.\nTry --all-projects, which adds 1 other project, or without --since.\n"
    )
    assert run(two, "search", "zebra", "--all-projects").output == "Nothing found.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["question", "--batch", "-"],
        ["two", "words", "--batch", "-"],
        ["x", "-k", "0"],
        ["x", "-k", "many"],
        ["x", "--mode", "fuzzy"],
        ["x", "-k", "3", "--budget", "500"],
        ["x", "--budget", "10"],
        ["x", "--budget", "much"],
        ["x", "--all", "--min-relevance", "0.5"],
        ["x", "--min-relevance", "1.5"],
        ["x", "--min-relevance", "50%"],
        ["x", "--kind", "letter"],
        ["x", "--since"],
        ["--all-projects"],
        ["x", "--no-such-option"],
        ["--batch", "/no/such/file"],
        ["--batch", "/"],
    ],
)
def test_wrong_usage(run: Run, read_only: Memory, arguments: list[str]) -> None:
    found = run(read_only, "search", *arguments)
    assert found.status == 2
    assert found.output == ""
    assert found.errors.splitlines()[-1].startswith("Error: ")


def test_a_kind_that_is_none(run: Run, read_only: Memory) -> None:
    found = run(read_only, "search", "x", "--kind", "decision")
    assert (found.status, found.output) == (2, "")
    (line,) = found.errors.splitlines()
    assert line.startswith("Error: 'decision' is not a kind; use turn, summary, fact,")
    assert "A decision is of kind summary or fact" in line
