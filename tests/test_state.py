"""JSON that is nested so deep that Python's parser gives up is a damaged file like any other."""

from __future__ import annotations

import ast
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from memkit.capture.sessions import LiveSessions, Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.environment import failure_file, last_failure
from memkit.errors import MemkitError
from memkit.hook import events, notices
from memkit.index.catalog import holder_of, recorded_roots
from memkit.index.memory_files import added_paths
from memkit.ipc import unindexed
from memkit.llm.ledger import Ledger
from memkit.paths import Home
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project, Registry, registry_path
from memkit.search import usage
from memkit.service.jobs import JobBook
from memkit.service.operations import PointerHistory
from memkit.state import parse_json

DEEP = "[" * 200_000
PACKAGE = Path(__file__).resolve().parents[1] / "memkit"

OTHERS = {
    "state.py",
    "cli/demo.py",  # its own lines
    "agents/claude_code/transcript.py",  # names that reason
    "llm/providers/structure.py",  # compares with a schema too, which recurses as well
}
"""Modules that call Python's parser themselves."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose every JSON file is nested too deep."""
    found = Home(str(tmp_path / "home"))
    root = Path(found.root)
    names = ["projects/registry.json", "projects/0123456789abcdef.json", "run/jobs.json", "run/hooks.json"]
    names += ["run/notices/a.json", "sessions/5e55.json"]
    names += ["ledger.jsonl", "log/events.jsonl", "forgotten.json", "summaries/5e55.json", "env/failed.json"]
    own = (LiveSessions(found)._path("5e55"), PointerHistory(found)._path("5e55"))
    names += ["run/left.json", *(str(path.relative_to(root)) for path in own)]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(DEEP)
    return found


def test_the_parser() -> None:
    for data in (DEEP, DEEP.encode()):
        with pytest.raises(ValueError, match="nested too deep"):
            parse_json(data)


def test_damaged_files_are_read_as_such(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry_path(home) in Registry.read(home).problem
    assert holder_of(home, "0123456789abcdef") is None
    assert recorded_roots(home) == []
    assert JobBook(home).states() == {}
    assert Path(LiveSessions(home)._path("5e55")).exists()
    assert list(LiveSessions(home)) == []
    assert Path(PointerHistory(home)._path("5e55")).exists()
    assert PointerHistory(home).of("5e55") == set()
    assert list(Sessions(home)) == []
    assert list(SummaryQueue(home)) == []
    assert Ledger(home).calls() == []
    assert usage.usage(home).searches == 0
    assert Path(failure_file(home.root)).exists()
    assert last_failure(home.root) is None
    assert events._settings(home) == events.DEFAULT_SETTINGS
    with pytest.raises(MemkitError, match=r"forgotten\.json"):
        Tombstones(home).unfinished()
    project = Project(str(Path(home.root).parent))
    unindexed.mark(home, project.root)
    for directory in (Path(home.run, "unindexed"), Path(home.run, "notices")):
        for path in directory.iterdir():
            path.write_text(DEEP)
    assert unindexed.roots(home) == []
    assert notices.take(home, project.root) == []
    record = Path(home.projects, "x.paths.json")
    monkeypatch.setattr("memkit.index.memory_files._record", lambda *_: record)
    record.write_text(DEEP)
    with pytest.raises(MemkitError, match="added paths"):
        added_paths(home, project)
    stdin = SimpleNamespace(buffer=io.BytesIO(DEEP.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(ValueError, match="nested too deep"):
        events.read_input()


def test_nothing_else_calls_the_parser() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "json" in text else ():
            is_call = isinstance(node, ast.Attribute) and node.attr in ("load", "loads")
            if is_call and isinstance(node.value, ast.Name) and node.value.id == "json":
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found <= OTHERS
