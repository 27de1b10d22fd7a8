"""`memkit search` as people, scripts and models call it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memkit.recall import search as search_module
from tests.unit.cli.conftest import Run
from tests.unit.memory import Memory


def test_for_people(run: Run, read_only: Memory) -> None:
    found = run(read_only, "search", "which port does the staging gateway use", "-k", "1")
    assert found.status == 0
    assert found.errors == ""
    first, place, *rest = found.output.splitlines()
    identifier, _, breadcrumb = first.partition("  ")
    assert len(identifier) == 12
    assert breadcrumb == "2026-11-18 > 09:00 Work > 09:00 Which port does the staging gateway use?"
    assert place.startswith(".memkit/memory/2026-11-18.md:")
    assert "**Answered** It listens on 7443, 443 is taken." in rest
    assert "\x1b" not in found.output


def test_for_scripts(run: Run, read_only: Memory) -> None:
    found = run(read_only, "search", "--json", "which port does the staging gateway use")
    assert found.errors == ""
    assert list(found.json) == ["query", "mode", "degraded", "took_ms", "results"]
    assert found.json["results"][0]["date"] == "2026-11-18"


def test_options_after_and_before(run: Run, read_only: Memory) -> None:
    for arguments in (
        ["search", "--mode", "lexical", "-k", "2", "--json", "service"],
        ["search", "service", "--json", "-k2", "--mode=lexical"],
    ):
        answer = run(read_only, *arguments).json
        assert answer["mode"] == "lexical"
        assert len(answer["results"]) == 1


def test_the_setting_and_the_flag(run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_SEARCH_MODE", "dense")
    monkeypatch.setenv("MEMKIT_SEARCH_K", "1")
    answer = run(read_only, "search", "--json", "the service").json
    assert (answer["mode"], len(answer["results"])) == ("dense", 1)
    answer = run(read_only, "search", "--json", "the service", "--mode", "context", "-k", "4").json
    assert (answer["mode"], len(answer["results"])) == ("context", 4)


@pytest.mark.parametrize(
    "query",
    ["", "?!", "-- --json", "'; DROP TABLE x; --", "a[b", '{"query": 1}', "é 中文 😀", "x" * 100_000],
    ids=range(8),
)
def test_any_question(run: Run, read_only: Memory, query: str) -> None:
    found = run(read_only, "search", "--json", "--", query)
    assert found.status == 0
    assert found.json["query"] == query


def test_a_question_that_is_not_unicode(spawn: Run, read_only: Memory) -> None:
    """A file name or a paste can hold any bytes."""
    query = os.fsdecode(b"port \xff\xfe")
    assert spawn(read_only, "search", "--json", query).json["results"]
    found = spawn(read_only, "search", query)
    assert (found.status, found.errors) == (0, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_is_not_unicode(spawn: Run, fresh: Memory, encoding: str) -> None:
    fresh.write("notes.md", "# Größe → 中文\n\n" + "Die Größe ist wichtig – 中文. " * 8)
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


def test_the_first_search_makes_the_index(run: Run, fresh: Memory) -> None:
    found = run(fresh, "search", "--json", "staging port")
    assert found.errors == ""
    assert "gateway" in found.json["results"][0]["heading"]
    fresh.write("notes.md", "# Zebra\n\n" + "The zebra crossing is painted on Tuesdays. " * 4)
    assert run(fresh, "search", "--json", "zebra").json["results"][0]["heading"] == "Zebra"


class TestBatch:
    """Many questions, one start."""

    def test_from_a_file(
        self, run: Run, read_only: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = []
        original = search_module.open_searcher

        def open_searcher(*arguments: object, **options: object) -> object:
            opened.append(arguments)
            return original(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(search_module, "open_searcher", open_searcher)
        path = tmp_path / "questions"
        path.write_text('staging port\n\n  \n{"query": "who owns\\nbilling", "id": 7}\nERR_404')
        found = run(read_only, "search", "--batch", str(path), "-k", "2")
        assert found.status == 0
        assert [answer["query"] for answer in found.lines] == [
            "staging port", "who owns\nbilling", "ERR_404",
        ]  # fmt: skip
        assert all(len(answer["results"]) == 2 for answer in found.lines)
        assert len(opened) == 1

    def test_from_stdin(self, run: Run, read_only: Memory) -> None:
        found = run(read_only, "search", "--batch", "-", "--json", stdin="Größe\nport".encode())
        assert [answer["query"] for answer in found.lines] == ["Größe", "port"]

    @pytest.mark.parametrize("text", [b"", b"\n\n  \n"])
    def test_no_question(self, run: Run, read_only: Memory, text: bytes) -> None:
        found = run(read_only, "search", "--batch", "-", stdin=text)
        assert (found.status, found.output, found.errors) == (0, "", "")

    def test_bytes_of_any_kind(self, run: Run, read_only: Memory, tmp_path: Path) -> None:
        path = tmp_path / "questions"
        path.write_bytes(b'\xef\xbb\xbf{"query": "port"}\r\n\xff\xfe\r\n{"query": "\\ud800"}\r\n')
        queries = [answer["query"] for answer in run(read_only, "search", "--batch", str(path)).lines]
        assert queries[0] == "port"
        assert len(queries) == 3

    @pytest.mark.parametrize(
        "line", ['{"query": 5}', '{"question": "port"}', "{", '{"query": "a"} {"query": "b"}']
    )
    def test_a_bad_line_is_named(self, run: Run, read_only: Memory, line: str) -> None:
        found = run(read_only, "search", "--batch", "-", stdin=f"port\n\n{line}\n".encode())
        assert found.status == 1
        assert found.lines[0]["query"] == "port"
        assert found.errors.startswith("memkit: --batch, line 3: expected")
        assert found.errors.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["question", "--batch", "-"],
        ["two", "words"],
        ["x", "-k", "0"],
        ["x", "-k", "many"],
        ["x", "--mode", "rrf"],
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
