"""`memkit setup --with`. The installation itself is in tests/environment/test_extras.py."""

from __future__ import annotations

import sys

import pytest

from memkit import environment
from memkit.environment import build
from memkit.environment.extras import EXTRAS
from memkit.environment.install import EnvironmentBuildError
from tests.cli.conftest import Run
from tests.memory import Memory


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What is installed into memkit's own environment, which this Python is."""
    found: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(environment, "is_own", lambda home: True)
    monkeypatch.setattr(build, "add_extras", lambda home, extras: found.append((home, extras)))
    return found


def test_extras_are_installed(run: Run, fresh: Memory, added: list[tuple[str, list[str]]]) -> None:
    done = run(fresh, "setup", "--with", "topics", "--with", "google", "--with", "topics", "--yes")
    assert (done.status, done.output) == (0, "Installed google, topics.\n")
    assert run(fresh, "setup", "--with", "mcp", "--yes", "--json").json == {"installed": ["mcp"]}
    assert added == [(fresh.home.root, ["google", "topics"]), (fresh.home.root, ["mcp"])]


def test_nothing_is_installed_unasked(run: Run, fresh: Memory, added: list[tuple[str, list[str]]]) -> None:
    said = run(fresh, "setup", "--with", "topics").complaint
    assert said == "memkit: no terminal to ask on; run it, or agree with --yes, in a terminal of your own"
    assert run(fresh, "setup", "--with", "requests", "--yes").status == 2
    assert run(fresh, "setup", "--with", "mcp", "--mcp", "codex", "--yes").status == 2
    assert added == []


def test_a_failure_is_one_line(
    run: Run, fresh: Memory, added: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(home: str, extras: list[str]) -> None:
        raise EnvironmentBuildError("no network")

    monkeypatch.setattr(build, "add_extras", fail)
    assert run(fresh, "setup", "--with", "topics", "--yes").complaint == "memkit: no network"


def test_another_environment_is_left_alone(run: Run, fresh: Memory) -> None:
    said = run(fresh, "setup", "--with", "topics", "--yes").complaint
    assert f"does not manage its Python environment {sys.prefix}; run `" in said
    assert f"install '{EXTRAS['topics'][0]}'`" in said
