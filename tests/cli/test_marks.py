"""Marks from git on the screen, in JSON, and in what the model reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.browse import git_marks
from memkit.cli.screen import cells
from tests.browse.test_git_marks import AMPLE, commit, git
from tests.cli.conftest import Run
from tests.cli.fortnight import fortnight
from tests.memory import Memory

LINE = "deploy/gateway.yaml changed in 1 commit"


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A fortnight on `main`, and a repository that has moved on."""
    monkeypatch.setattr(git_marks, "SECONDS", AMPLE)
    memory = fortnight(tmp_path.resolve())
    root = Path(memory.project.root)
    git(root, "init", "-qb", "trunk")
    (root / ".git" / "info" / "exclude").write_text("/.memkit/\n")
    commit(root, "2026-11-01", deploy__gateway_yaml="1")
    commit(root, "2026-11-12", deploy__gateway_yaml="2")
    return memory


def test_search(run: Run, changed: Memory) -> None:
    lines = run(changed, "search", "which port does the staging gateway use").output.splitlines()
    assert f"         git: {LINE}" in lines
    assert max(map(cells, lines)) <= 80
    full = run(changed, "search", "--full", "which port does the staging gateway use").output
    assert f"\ngit: {LINE}\n" in full
    assert "\x1b" not in full


def test_json(run: Run, changed: Memory) -> None:
    found = run(changed, "search", "--json", "staging gateway port").json["results"]
    (one,) = [result for result in found if result["turns"] == ["a0000001"]]
    assert one["git"] == {"changed": {"deploy/gateway.yaml": 1}, "line": LINE}
    (section,) = run(changed, "expand", "--json", one["id"]).json["sections"]
    assert section["git"] == one["git"]
    assert f"git: {LINE}" in run(changed, "expand", one["id"]).output.splitlines()


def test_recall(run: Run, changed: Memory) -> None:
    found = run(changed, "recall", "--stdin", stdin=b"which port does the staging gateway use?").output
    assert f' git="{LINE}"' in found


def test_rank_stays(run: Run, changed: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with_marks = run(changed, "search", "--json", "--all", "gateway port orders").json["results"]
    monkeypatch.setattr(git_marks, "SECONDS", 0.0)
    monkeypatch.setenv("PATH", "")
    without = run(changed, "search", "--json", "--all", "gateway port orders").json["results"]
    assert [(one["id"], one["score"]) for one in with_marks] == [(one["id"], one["score"]) for one in without]
    assert len(with_marks) > 3
