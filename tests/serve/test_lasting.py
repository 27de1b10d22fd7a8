"""What the API stored outlives a backup and a merge, and leaves nothing behind when it is erased."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from starlette.testclient import TestClient

from memkit.journal.digest import read_note
from memkit.journal.journal import Journal
from memkit.maintenance.merge import merge
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.serve.keys import Keys
from tests.memory import Memory
from tests.serve.running import environment

METADATA = {"ticket": "OPS-12 about the numbat", "parts": [1, {"a": None}]}


def store(client: TestClient) -> str:
    body = {"text": "The gateway moves.\n\nTo 7444.", "tags": ["wombat"], "metadata": METADATA}
    return str(client.post("/memory/store", json=body).json()["id"])


def command(memory: Memory, *words: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memkit", *words], env=environment(memory, **variables),
        cwd=memory.project.root, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def noted(journal: Journal, name: str) -> object:
    days = [journal.day(day) for day in journal.days()]
    return next(
        (read_note(day.text(one)) for day in days for one in day.sections if one.pairs.get("note") == name), None
    )


def test_a_merge_and_a_backup_have_the_note_and_no_key(admin: TestClient, memory: Memory, tmp_path: Path) -> None:
    name = store(admin)
    command(memory, "backup", str(tmp_path / "b"))
    target = Project(str(tmp_path / "target"))
    Path(target.root).mkdir()
    merge(memory.project, target, memory.home, Journal(target))
    assert noted(Journal(target), name) == (["wombat"], METADATA)
    shutil.rmtree(memory.project.memory, ignore_errors=True)
    command(memory, "restore", "--yes", str(tmp_path / "b"), MEMKIT_HOME=str(tmp_path / "other"))
    assert noted(Journal(memory.project), name) == (["wombat"], METADATA)
    assert not Path(Home(str(tmp_path / "other")).serve_keys).exists()


def test_an_erased_note_leaves_no_word_of_its_metadata(admin: TestClient, memory: Memory) -> None:
    name = store(admin)
    assert admin.get("/memory/search", params={"query": "numbat wombat"}).json()["results"]
    assert admin.delete(f"/memory/{name}").json()["notes"] == [name]
    for place in (memory.home.root, memory.project.memory):
        for path in Path(place).rglob("*"):
            if path.is_file():
                assert b"numbat" not in path.read_bytes(), path


def test_the_doctor_closes_the_keys_to_others(memory: Memory, keys: Keys) -> None:
    _, secret = keys.create("", "read")
    path = Path(memory.home.serve_keys)
    path.chmod(0o644)
    command(memory, "doctor", "--fix")
    assert path.stat().st_mode & 0o777 == 0o600
    assert keys.find(secret)
