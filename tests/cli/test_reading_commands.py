"""The commands that Claude may run unprompted, see `memkit.hook.reading`, read this project's memory only."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from memkit import cli
from memkit.hook.reading import ALWAYS, ASKING, COMMANDS
from tests.cli.conftest import Run
from tests.memory import DAYS, make_memory

PRESENT = [name for name in COMMANDS if name in cli.cli.list_commands(click.Context(cli.cli))]


@pytest.mark.parametrize("name", PRESENT)
def test_each_option_either_asks_or_not(name: str) -> None:
    """Add a new option to one of the lists of `memkit.hook.reading`."""
    command = cli.cli.get_command(click.Context(cli.cli), name)
    assert command is not None
    options = {text for one in command.params if isinstance(one, click.Option) for text in one.opts}
    assert options - {"--stdin"} <= {*COMMANDS[name].split(), *ALWAYS.split(), *ASKING.split()}
    assert {*COMMANDS[name].split(), *ALWAYS.split()}.isdisjoint(ASKING.split())


@pytest.mark.parametrize("name", PRESENT)
def test_a_session_reads_no_other_project(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    arguments = {"recall": ["--stdin"], "sessions": [], "transcript": []}.get(name, ["x"])
    monkeypatch.setenv("CLAUDECODE", "1")
    (tmp_path / "other").mkdir()
    found = run(make_memory(tmp_path, DAYS), name, *arguments, "--project", str(tmp_path / "other"), stdin=b"x")
    assert "can read only its own project's memory" in found.output + found.errors
