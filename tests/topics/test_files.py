"""Labels and members outlive a backup, a merge, and a move; what is derived goes with what it was made from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from memkit.index import index_lock
from memkit.journal.journal import Journal
from memkit.maintenance.merge import merge
from memkit.projects.project import Project
from memkit.projects.registry import changing
from memkit.settings.load import Settings
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path
from memkit.topics.topic_list import read_topics, rename
from memkit.topics.topic_store import ModelLabel, changing_kept, drop_outdated_topics, read_kept
from tests.cli.conftest import Run, clean_environment, run
from tests.memory import Memory, make_memory
from tests.topics.subjects import SubjectEmbedder, days, make_subjects

__all__ = ["clean_environment", "run"]

TODAY = date(2026, 5, 20)


@pytest.fixture
def named(tmp_path: Path) -> tuple[Memory, str]:
    """A memory with topics, and the id of the one that the user named. A model named the others."""
    memory = make_subjects(tmp_path)
    found = refresh(memory.project, memory.home, memory.settings)
    rename(memory.project, memory.home, found.topics[0].id, "Mine")
    with changing_kept(memory.home, memory.project) as kept:
        for one in found.topics[1:]:
            own = kept.topics[one.id]
            label = ModelLabel(f"Model's {one.id}", own.members, own.members)
            kept.topics[one.id] = replace(own, model_label=label)
    return memory, found.topics[0].id


def labels(memory: Memory, project: Project | None = None) -> dict[str, str]:
    found = read_topics(project or memory.project, memory.home, memory.settings, TODAY)
    return {one.id: one.label for one in found.topics}


def test_a_backup_brings_labels_and_ids_back(run: Run, named: tuple[Memory, str], tmp_path: Path) -> None:
    memory, name = named
    before = labels(memory)
    archive = tmp_path / "b.tar.zst"
    assert run(memory, "backup", str(archive)).status == 0
    shutil.rmtree(memory.home.projects)
    derived = derived_path(memory.project, memory.home, memory.settings)
    derived.unlink()
    assert run(memory, "restore", str(archive), "--yes").status == 0
    assert not derived.exists()  # it is not in a backup
    refresh(memory.project, memory.home, memory.settings)
    assert labels(memory) == before
    assert before == {one: "Mine" if one == name else f"Model's {one}" for one in before}


def test_a_restore_brings_no_label_of_something_forgotten(
    run: Run, named: tuple[Memory, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, mine = named
    monkeypatch.setattr("memkit.embedding.find_embedder", lambda *_: (SubjectEmbedder(), ""))
    archive = tmp_path / "b.tar.zst"
    assert run(memory, "backup", str(archive)).status == 0
    kept = read_kept(memory.home, memory.project).topics
    name = next(one for one in kept if one != mine)
    assert run(memory, "forget", min(kept[name].members), "--yes").status == 0
    for _ in range(2):
        after = read_kept(memory.home, memory.project).topics
        assert [one for one in after if after[one].model_label is None] == sorted([mine, name])
        (path,) = Path(memory.home.projects).glob("*.topics.json")
        path.unlink()
        assert run(memory, "restore", str(archive), "--yes").status == 0
        assert path.exists()


def test_a_merge_takes_labels_along(named: tuple[Memory, str], tmp_path: Path) -> None:
    memory, name = named
    target = make_memory(tmp_path / "target", {}, embedder=SubjectEmbedder(), home=memory.home)  # type: ignore[arg-type]
    with index_lock(memory.home, 5):
        for _ in range(2):
            merge(memory.project, target.project, memory.home, Journal(target.project, home=memory.home))
    target.sync()
    refresh(target.project, memory.home, memory.settings)
    assert labels(memory, target.project) == labels(memory)
    assert labels(memory)[name] == "Mine" and "Model's" in "".join(labels(memory).values())
    assert read_kept(memory.home, memory.project).topics[name].label == "Mine"  # until it is removed


def test_a_moved_project_keeps_its_labels(named: tuple[Memory, str], tmp_path: Path) -> None:
    memory, name = named
    moved = Project(str(tmp_path / "moved"))
    Path(memory.project.root).rename(moved.root)
    with changing(memory.home) as registry:
        registry.move(memory.project.root, moved.root)
    assert read_kept(memory.home, moved).topics[name].label == "Mine"
    rename(moved, memory.home, name, "Mine, too")
    assert read_kept(memory.home, moved).topics[name].label == "Mine, too"


def test_topics_go_when_days_were_removed_for_good(named: tuple[Memory, str]) -> None:
    memory, _ = named
    derived = derived_path(memory.project, memory.home, memory.settings)
    drop_outdated_topics(memory.home, {memory.project.root})
    assert derived.exists()  # nothing has changed
    for month in (3, 4):  # one of each of two topics, so that a model has named one of these
        memory.path(f"2026-{month:02d}-01.md").unlink()
    memory.sync()
    assert derived.exists()  # still readable
    drop_outdated_topics(memory.home, {"/other"})
    assert derived.exists()
    kept = read_kept(memory.home, memory.project).topics
    gone = next(one for one, label in labels(memory).items() if label == "Mine")
    assert all(one.model_label for other, one in kept.items() if other != gone)
    drop_outdated_topics(memory.home, {memory.project.root})
    assert not derived.exists()
    left = read_kept(memory.home, memory.project).topics
    for name, one in left.items():  # what rests on the removed entries goes
        assert (one.model_label is None) == (name == gone or one.members != kept[name].members)
    assert sum(left[name].members < kept[name].members for name in left) == 2
    (path,) = Path(memory.home.projects).glob("*.topics.json")
    path.write_text("{")
    drop_outdated_topics(memory.home, {memory.project.root, "/other"})
    assert path.read_text() == "{"  # the labels may be saved from it
    assert [path] == list(Path(memory.home.projects).glob("*.topics.json"))


def test_a_project_in_use_is_not_locked_by_a_killed_refresh(named: tuple[Memory, str]) -> None:
    """A process that dies between its two files: the next one finishes, with the same ids and labels."""
    memory, name = named
    before = labels(memory)
    for path, text in days(4, first=8).items():
        memory.write(path, text)
    memory.sync()
    script = f"""
import os
from memkit.projects.project import Project
from memkit.paths import Home
from memkit.settings.load import Settings
from memkit.topics import compute
compute.write_derived = lambda *_: os.kill(os.getpid(), 9)
compute.refresh(Project({memory.project.root!r}), Home({memory.home.root!r}), Settings())
"""
    repository = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=repository, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert labels(memory).keys() == before.keys()  # the earlier topics can be read
    assert sum(len(one.members) for one in read_kept(memory.home, memory.project).topics.values()) > 24
    refresh(memory.project, memory.home, Settings())
    assert labels(memory).keys() == before.keys()
    assert labels(memory)[name] == "Mine"
    assert read_kept(memory.home, memory.project).changes == []
