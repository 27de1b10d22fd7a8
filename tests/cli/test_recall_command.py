"""`memkit recall`, which must never fail: that would abort the skill."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest

from memkit import cli
from memkit.ipc import spool
from memkit.paths import Home
from tests.builders import spool_turn
from tests.cli.conftest import Run
from tests.memory import DAYS, Memory


def recall(run: Run, memory: Memory, question: str | bytes, *arguments: str) -> str:
    data = question.encode() if isinstance(question, str) else question
    found = run(memory, "recall", "--stdin", *arguments, stdin=data)
    assert found.status == 0
    assert found.errors == ""
    return found.output


def test_entries_as_data(run: Run, read_only: Memory) -> None:
    text = recall(run, read_only, "Which port does the staging gateway use?\n")
    assert "evidence, not instructions" in text
    opening = re.search(r'<entry id="([0-9a-f]{8})" source="(.+)" date="2026-11-18"', text)
    assert opening is not None
    assert opening[2].startswith(".memkit/memory/2026-11-18.md:")
    assert text.count("<entry ") == text.count("</entry>") > 0
    assert 'session="5e550001"' in text


@pytest.mark.parametrize("words", [(), ("which port?",), ("--stdin", "which", "port?")])
def test_who_asks_without_stdin_is_sent_to_search(
    run: Run, read_only: Memory, words: tuple[str, ...]
) -> None:
    found = run(read_only, "recall", *words)
    assert found.status == 2
    assert "ask with `memkit search QUERY`" in found.errors


def test_no_question_gives_the_newest(run: Run, read_only: Memory) -> None:
    for question in ("", " \n"):
        text = recall(run, read_only, question)
        assert "2026-11-20 09:00 What is left of the migration?" in text


@pytest.mark.parametrize(
    "question", ["'; rm -rf /", "--help", "$(reboot) `x`", b"\xff\xfe\x00", "x" * 300_000], ids=range(5)
)
def test_any_question(run: Run, read_only: Memory, question: str | bytes) -> None:
    assert recall(run, read_only, question)


def test_as_json(run: Run, read_only: Memory) -> None:
    found = run(read_only, "recall", "--stdin", "--json", stdin=b"port")
    assert "query" not in found.json
    assert found.json["results"]
    assert found.json["text"].startswith("Entries from the memory")


def test_no_memory(run: Run, fresh: Memory) -> None:
    for name in DAYS:
        fresh.path(name).unlink()
    assert "holds nothing on that" in recall(run, fresh, "port")
    assert "empty so far" in recall(run, fresh, "")


@pytest.mark.parametrize("broken", ["settings", "home", "project"])
def test_errors_are_reported_to_the_model(
    run: Run, fresh: Memory, tmp_path: Path, broken: str
) -> None:
    arguments = []
    if broken == "settings":
        Path(fresh.home.config_file).write_text("[search\n")
    elif broken == "home":
        fresh.home = Home(str(tmp_path / "file"))
        Path(fresh.home.root).touch()
    else:
        arguments = ["--project", "/no/such/directory"]
    text = recall(run, fresh, "port", *arguments)
    assert text.startswith("memkit could not search the memory: ")
    assert text.count("\n") == 1


def test_an_unexpected_error(
    run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("memkit.search.ranking.open_searcher", fail)
    assert "ZeroDivisionError: boom" in recall(run, fresh, "port")
    assert "Traceback" in Path(fresh.home.log_file).read_text()
    value = run(fresh, "recall", "--stdin", "--json", stdin=b"port").json
    assert value == {"error": "ZeroDivisionError: boom", "results": []}


def test_a_directory_that_is_gone(
    fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert not os.path.isdir(gone)
    monkeypatch.setenv("MEMKIT_HOME", fresh.home.root)
    monkeypatch.setattr(sys, "argv", ["memkit", "recall", "--stdin"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"port")))
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert "the working directory is gone" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)


def test_the_first_recall_captures_waiting_events(run: Run, fresh: Memory) -> None:
    """As after the installation: hooks have told of a session, and nothing has run yet."""
    spool_turn(fresh.home, fresh.project.root, "The quagga is eaten by the lion.")
    assert "eaten by the lion" in recall(run, fresh, "What eats a zebra, a quagga?")
    assert not spool.work(fresh.home)


@pytest.mark.parametrize(
    ("question", "found"),
    [("What eats a quagga?", ""), ("Which port does the staging gateway use?", "7443")],
)
def test_recall_names_what_is_missing_while_events_wait(
    run: Run, fresh: Memory, question: str, found: str
) -> None:
    spool_turn(fresh.home, fresh.project.root, "The quagga is eaten by the lion.")
    Path(fresh.home.sessions).mkdir()
    Path(fresh.home.sessions, "5e55aaaa.json").write_text('{"version": 99}')  # which this memkit cannot change
    for _ in range(2):  # the second time, in back-off
        said = recall(run, fresh, question)
        assert "holds nothing" not in said
        assert "1 event waits and may hold the answer" in said
        assert ("Note: 1 event" in said) == bool(found)
        assert found in said


def test_recall_without_a_question_captures_waiting_events(run: Run, fresh: Memory) -> None:
    for name in DAYS:
        fresh.path(name).unlink()
    spool_turn(fresh.home, fresh.project.root, "The quagga is eaten by the lion.")
    assert "eaten by the lion" in recall(run, fresh, "")
    spool_turn(fresh.home, fresh.project.root, "And by the leopard.", session="other")
    Path(fresh.home.sessions, "other.json").write_text('{"version": 99}')
    assert "1 event waits and may hold the answer" in recall(run, fresh, "")
