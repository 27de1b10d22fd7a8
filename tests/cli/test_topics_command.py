"""`memkit topics`: what a project is about."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import pytest

from memkit.cli.screen import cells
from memkit.environment import extras
from memkit.projects.project import Project
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path
from tests.cli.conftest import Run
from tests.cli.fortnight import check_screen
from tests.memory import Memory, make_memory
from tests.messages_api import Failure, MessagesApi, tool
from tests.topics.names_stage import NAMED, NameStage, add_notes, labels_for
from tests.topics.subjects import SUBJECTS, SubjectEmbedder, days, make_subjects, talk


class Today(date):
    """A day soon after the last entry."""

    @classmethod
    def today(cls) -> Today:
        return cls(2026, 5, 20)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Indexed, without topics yet. Nothing is embedded: the commands run without the model."""
    monkeypatch.setenv("MEMKIT_SERVICE_ENABLED", "false")
    monkeypatch.setattr("memkit.embedding.find_embedder", lambda *_: (SubjectEmbedder(), ""))
    monkeypatch.setattr("memkit.topics.topic_list.date", Today)
    return make_subjects(tmp_path)


@pytest.fixture
def grouped(memory: Memory) -> Memory:
    refresh(memory.project, memory.home, memory.settings)
    return memory


def listed(run: Run, memory: Memory, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(memory, "topics", *arguments, "--json").json["topics"]
    return found


@pytest.mark.parametrize("columns", [80, 120])
def test_screens(run: Run, grouped: Memory, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = listed(run, grouped)[0]["id"]
    for shown, arguments in (("list", []), ("show", ["show", name]), ("related", ["related", name])):
        found = run(grouped, "topics", *arguments)
        assert (found.status, found.errors) == (0, "")
        assert max(map(cells, found.output.splitlines())) <= columns
        assert "\x1b" not in found.output
        check_screen(f"topics-{shown}-{columns}", found.output)


def test_few_entries(run: Run, tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(extras, "find_spec", lambda name: None if name == "sklearn" else object())
        complaint = run(memory, "topics").complaint
    assert "topics need another package; you can run `" in complaint
    assert "install 'scikit-learn>=" in complaint
    fresh = make_memory(tmp_path / "fresh", days(8), embedder=SubjectEmbedder())  # type: ignore[arg-type]
    assert len(listed(run, fresh)) == 3  # never indexed before
    few = make_memory(tmp_path / "few", days(1), embedder=SubjectEmbedder())  # type: ignore[arg-type]
    assert run(few, "topics").output == "No topics in 3 entries: a topic needs at least three that are alike.\n"


def test_refresh_and_the_hint_to_it(run: Run, grouped: Memory) -> None:
    before = {one["id"] for one in listed(run, grouped)}
    for path, text in days(4, first=8).items():
        grouped.write(path, text)
    grouped.sync()
    hint = run(grouped, "topics").errors
    assert hint == "memkit: 12 entries changed since; `memkit topics --refresh` computes the topics again\n"
    found = run(grouped, "topics", "--refresh")
    assert (found.status, found.errors) == (0, "")
    after = listed(run, grouped)
    assert {one["id"] for one in after} == before
    assert sum(one["entries"] for one in after) > 24
    assert run(grouped, "topics").errors == ""


def test_search_leads_from_words_to_topics(run: Run, grouped: Memory) -> None:
    found = run(grouped, "topics", "search", "stripe", "refund", "--json").json
    assert found["query"] == "stripe refund"
    assert "billing" in found["topics"][0]["label"] + " ".join(found["topics"][0]["words"])
    shown = run(grouped, "topics", "stripe", "refund").output
    assert found["topics"][0]["id"] in shown
    path = derived_path(grouped.project, grouped.home, grouped.settings)
    label = listed(run, grouped)[0]["label"]
    path.write_text(path.read_text().replace(label, "a\\u001b[2Jb\\u202e"))
    shown = run(grouped, "topics").output
    assert "\x1b" not in shown and "\u202e" not in shown  # labels cannot steer the terminal
    assert "No topic has entries on 'zebra'" in run(grouped, "topics", "search", "zebra").output


def test_rename_is_redacted_cleaned_and_kept(run: Run, grouped: Memory) -> None:
    name = listed(run, grouped)[0]["id"]
    own = "Kitchen\x1b[31m garden\nghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    label = run(grouped, "topics", "rename", name[:5], own, "--json").json["label"]
    assert label.startswith("Kitchen garden") and "ghp_a1" not in label and len(label) <= 50
    run(grouped, "topics", "rename", name, "Kitchen garden")
    shown = run(grouped, "topics", "--refresh", "--json").json["topics"]
    assert [(one["label"], one["named"]) for one in shown if one["id"] == name] == [("Kitchen garden", True)]
    run(grouped, "topics", "rename", name, "")
    assert not next(one for one in listed(run, grouped) if one["id"] == name)["named"]


def test_the_users_own_memory(run: Run, grouped: Memory) -> None:
    user = Project.of_user(grouped.home)
    add_notes(grouped, user, [talk(subject, number)[0] for number in range(6) for subject in SUBJECTS])
    own = listed(run, grouped, "--user")
    assert [(one["project"], one["entries"]) for one in own] == [(user.root, 6)] * 3
    every = listed(run, grouped, "--all-projects")
    assert {one["project"] for one in every} == {grouped.project.root, user.root}
    assert "user memory" in run(grouped, "topics", "--all-projects").output
    assert run(grouped, "topics", "show", own[0]["id"], "--user").status == 0
    assert run(grouped, "topics", "rename", own[0]["id"], "Mine", "--user", "--json").json["label"] == "Mine"


def test_a_refresh_has_a_model_name_them(
    run: Run, tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But no other command does, and a failure is a line on stderr."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "anthropic")
    with MessagesApi(lambda request: [tool("record_labels", labels=labels_for(request.text))]) as api:
        monkeypatch.setenv("MEMKIT_SUMMARIZE_BASE_URL", api.url)
        stage = NameStage(tmp_path / "named")
        derived_path(stage.memory.project, stage.memory.home, stage.memory.settings).unlink()
        words = sorted(one["label"] for one in listed(run, stage.memory))
        with monkeypatch.context() as patch:  # it changes this process
            patch.setattr("memkit.cli.topics._run_for_service", lambda: None)
            run(stage.memory, "topics", "--refresh", "--background")
        assert (api.requests, sorted(one["label"] for one in listed(run, stage.memory))) == ([], words)
        api.script = lambda request: Failure(529, "overloaded_error", "Overloaded")
        found = run(stage.memory, "topics", "--refresh")
        assert found.status == 0
        assert found.errors.startswith("memkit: no model has named these topics: anthropic is unavailable (529)")
        api.script = lambda request: [tool("record_labels", labels=labels_for(request.text))]
        assert run(stage.memory, "topics", "--refresh").errors == ""
        shown = listed(run, stage.memory)
        assert sorted(one["label"] for one in shown) == NAMED and not any(one["named"] for one in shown)
        spent = run(stage.memory, "cost", "--by", "purpose", "--json").json["groups"]
        assert [(one["purpose"], one["calls"], one["failed"]) for one in spent] == [("topics", 2, 1)]
        name = shown[0]["id"]
        assert run(stage.memory, "topics", "rename", name, "Mine", "--json").json["label"] == "Mine"
        assert run(stage.memory, "topics", "rename", name, "", "--json").json["label"] in NAMED


def test_an_unknown_topic_and_wrong_usage(run: Run, grouped: Memory) -> None:
    assert "there is no topic 'zzz'" in run(grouped, "topics", "show", "zzz").complaint
    for words in ("show", "show a b", "rename a", "search", "show x --all-projects", "x --all-projects"):
        assert run(grouped, "topics", *words.split()).status == 2


CHILD = """
import threading
from memkit.cli.topics import _run_for_service

_run_for_service()
print("ready", flush=True)
threading.Event().wait()
"""

PARENT = """
import subprocess, sys

child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_the_background_refresh_ends_with_the_process_that_started_it() -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    gone, alive = psutil.wait_procs([child], timeout=60)
    assert (len(gone), alive) == (1, [])
