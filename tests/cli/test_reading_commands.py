"""The commands that Claude may run unprompted, see `memkit.hook.reading`, read this project's memory only."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click
import pytest

from memkit import cli
from memkit.capture.sessions import Session, Sessions
from memkit.hook.reading import ALWAYS, ASKING, COMMANDS
from memkit.ipc import spool
from memkit.projects.project import Project
from tests.cli.conftest import Run
from tests.memory import DAYS, Memory, make_memory

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


def test_a_session_stays_in_its_project_after_cd(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory, other = in_session_elsewhere(monkeypatch, tmp_path)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "8bb06550-aa")
    Sessions(memory.home).save(Session("8bb06550-aa", project=memory.project.root))
    assert run(memory, "remember", "The port is 7443.").status == 0
    moved = replace(memory, project=Project(other))
    for arguments in (("remember", "x"), ("search", "x"), ("export",), ("status",)):
        assert "can use only its own" in run(moved, *arguments).complaint


def test_a_session_whose_start_still_waits_stays_in_its_project(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory, other = in_session_elsewhere(monkeypatch, tmp_path)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "8bb06550-aa")
    start = {"event": "SessionStart", "session": "8bb06550-aa", "project": memory.project.root}
    name = spool.put(memory.home, start)
    moved = replace(memory, project=Project(other))
    assert "can use only its own" in run(moved, "remember", "x").complaint
    assert spool.claim(memory.home, name, time.time())
    assert "can use only its own" in run(moved, "remember", "x").complaint
    assert run(memory, "remember", "The port is 7443.").status == 0
