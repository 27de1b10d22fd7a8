"""The first session of a project says how many old ones could be imported, and never again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memkit.hook.notices import import_notice
from memkit.paths import Home
from tests.hook.conftest import Stage


def start(stage: Stage, folder: Path) -> dict[str, Any]:
    event = stage.event("SessionStart", transcript_path=str(folder / "own.jsonl"))
    return stage.run("session_start", event).json


@pytest.fixture
def folder(stage: Stage) -> Path:
    """The client's folder of the project, with three old sessions and what is none."""
    folder = stage.root / "projects" / "-home-shop"
    folder.mkdir(parents=True)
    for name in ("a.jsonl", "b.jsonl", "c.jsonl", "own.jsonl", "agent-1.jsonl", "notes.txt"):
        (folder / name).write_text("{}\n")
    return folder


def test_it_is_said_once(stage: Stage, folder: Path) -> None:
    said = "memkit: 3 earlier sessions of this project are not in its memory; run `memkit import` to add them."
    assert start(stage, folder)["systemMessage"] == said
    (folder / "d.jsonl").write_text("{}\n")
    assert "systemMessage" not in start(stage, folder)
    assert stage.errors() == ""


def test_each_project_has_its_own(stage: Stage, folder: Path) -> None:
    start(stage, folder)
    other = folder.with_name("-home-other")
    other.mkdir()
    (other / "a.jsonl").touch()
    assert (
        "1 earlier session of this project is not in its memory"
        in start(stage, other)["systemMessage"]
    )


def test_sessions_whose_events_wait_do_not_count(stage: Stage, folder: Path) -> None:
    """As the session that installed memkit, while the environment is being built."""
    for name in ("a", "b"):
        stage.run("stop", stage.event("Stop", transcript_path=str(folder / f"{name}.jsonl")))
    assert "1 earlier session of this project" in start(stage, folder)["systemMessage"]


def test_sessions_that_memkit_knows_do_not_count(stage: Stage, folder: Path) -> None:
    sessions = stage.home / "sessions"
    sessions.mkdir(parents=True)
    for name in "abc":
        (sessions / f"{name}.json").touch()
    assert "systemMessage" not in start(stage, folder)


def test_a_new_project_has_nothing_to_offer(stage: Stage, folder: Path) -> None:
    assert "systemMessage" not in start(stage, folder.with_name("-not-there-yet"))


@pytest.mark.parametrize(
    "transcript", ["", "own.jsonl", "/own.jsonl", "/a/../own.jsonl", "/a/b c/own.jsonl"]
)
def test_no_name_of_ours_is_made_of_any_path(tmp_path: Path, transcript: str) -> None:
    assert import_notice(Home(str(tmp_path / "home")), transcript) is None
    assert not (tmp_path / "home").exists()


def test_an_unwritable_home_costs_nothing_but_the_offer(stage: Stage, folder: Path) -> None:
    stage.home.write_text("a file")
    answer = start(stage, folder)
    assert "memkit" in answer["hookSpecificOutput"]["additionalContext"]
    assert answer["systemMessage"].startswith("memkit: cannot remember this session: ")
    assert "import" not in answer["systemMessage"]
