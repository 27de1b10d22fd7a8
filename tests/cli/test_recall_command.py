"""What Claude runs: `memkit recall`, which must never fail, and commands that read this project's memory only."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import click
import pytest

from memkit import cli
from memkit.capture.sessions import Session, Sessions
from memkit.hook.reading import ALWAYS, ASKING, COMMANDS
from memkit.ipc import spool
from memkit.paths import Home
from memkit.projects.project import Project
from tests.builders import spool_turn
from tests.cli.conftest import Run
from tests.memory import DAYS, Memory, make_memory


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
    found = run(read_only, "recall", "--stdin", "--json", stdin=b"port").json
    assert "query" not in found and found["results"]
    assert found["text"].startswith("Entries from the memory")


def test_who_asks_without_stdin_is_sent_to_search(run: Run, read_only: Memory) -> None:
    for words in ("", "which port?", "--stdin which port?"):
        found = run(read_only, "recall", *words.split())
        assert (found.status, "ask with `memkit search QUERY`" in found.errors) == (2, True)


def test_any_question(run: Run, read_only: Memory) -> None:
    for question in ("'; rm -rf /", "--help", "$(reboot) `x`", b"\xff\xfe\x00", "x" * 300_000):
        assert recall(run, read_only, question)
    for question in ("", " \n"):  # the newest
        assert "2026-11-20 09:00 What is left of the migration?" in recall(run, read_only, question)


@pytest.mark.parametrize("broken", ["settings", "home", "project"])
def test_errors_are_reported_to_the_model(run: Run, fresh: Memory, tmp_path: Path, broken: str) -> None:
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


def test_an_unexpected_error(run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
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
    for name in DAYS:
        fresh.path(name).unlink()
    for path in Path(fresh.project.memory).glob("*.md"):
        path.unlink()
    assert "holds nothing on that" in recall(run, fresh, "port")
    assert "empty so far" in recall(run, fresh, "")
    spool_turn(fresh.home, fresh.project.root, "The quagga is eaten by the leopard.", session="other")
    assert "eaten by the leopard" in recall(run, fresh, "")  # also without a question


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


# The commands that Claude may run unprompted, see `memkit.hook.reading`, read this project's memory only.


PRESENT = [name for name in COMMANDS if name in cli.cli.list_commands(click.Context(cli.cli))]


@pytest.mark.parametrize("name", PRESENT)
def test_each_option_either_asks_or_not(name: str) -> None:
    """Add a new option to one of the lists of `memkit.hook.reading`."""
    command = cli.cli.get_command(click.Context(cli.cli), name)
    assert command is not None
    options = {text for one in command.params if isinstance(one, click.Option) for text in one.opts}
    assert options - {"--stdin"} <= {*COMMANDS[name].split(), *ALWAYS.split(), *ASKING.split()}
    assert {*COMMANDS[name].split(), *ALWAYS.split()}.isdisjoint(ASKING.split())


def required(command: click.Command) -> list[str]:
    """Return words for the required arguments of a command."""
    given = [one for one in command.params if isinstance(one, click.Argument) and one.required]
    return [next(iter(getattr(one.type, "choices", ["x"]))) for one in given]


def in_session_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Memory, str]:
    """Return a memory whose project a session works in, and another project."""
    memory, other = make_memory(tmp_path, DAYS), tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")  # or a search looks for the model on the network
    return memory, str(other)


def test_no_command_of_a_session_uses_another_project(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory, other = in_session_elsewhere(monkeypatch, tmp_path)
    group = click.Context(cli.cli)
    for name in cli.cli.list_commands(group):
        command = cli.cli.get_command(group, name)
        assert command is not None
        if name not in ("service", "statusline", "work"):
            options = ["--stdin"] if name == "recall" else []  # its answer is the refusal
            found = run(memory, name, *options, *required(command), "--project", other, stdin=b"x")
            assert "can use only its own project's memory" in found.output + found.errors, name


@pytest.mark.parametrize(
    "arguments",
    [
        "remember --user x", "forget --user abcd", "forget --everywhere abcd", "audit --all-projects",
        "stats --all-projects", "sessions --all-projects", "search --all-projects x", "backup x.tar.zst", "restore x.tar.zst", "import --all", "import x.jsonl",
        "projects merge x", "projects link x",
    ],
)  # fmt: skip
def test_no_option_leads_a_session_out_of_its_project(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: str
) -> None:
    memory, _ = in_session_elsewhere(monkeypatch, tmp_path)
    assert "can use only its own project's memory" in run(memory, *arguments.split()).complaint
    Path(memory.home.root).mkdir(exist_ok=True)
    Path(memory.home.config_file).write_text("[recall]\nother_projects = true\n")
    assert "can use only" not in run(memory, *arguments.split()).errors


@pytest.mark.parametrize("is_known", [True, False])
def test_a_session_stays_in_its_project_after_cd(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_known: bool
) -> None:
    """Also while its start still waits."""
    memory, other = in_session_elsewhere(monkeypatch, tmp_path)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "8bb06550-aa")
    moved, name = replace(memory, project=Project(other)), ""
    if is_known:
        Sessions(memory.home).save(Session("8bb06550-aa", project=memory.project.root))
    else:
        start = {"event": "SessionStart", "session": "8bb06550-aa", "project": memory.project.root}
        name = spool.put(memory.home, start)
    for words in ("remember x", "search x", "export", "status"):
        assert "can use only its own" in run(moved, *words.split()).complaint
    if name:
        assert spool.claim(memory.home, name, time.time())
        assert "can use only its own" in run(moved, "remember", "x").complaint
    assert run(memory, "remember", "The port is 7443.").status == 0
