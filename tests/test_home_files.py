"""The table of the files in the memory home names every file, and only these."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.embedding.weights import MODEL
from memkit.home_files import HOME_FILES, PROJECT_FILES, TEMPORARY, find_files, kind_of, top_names
from memkit.ipc import spool
from memkit.paths import Home
from tests.cli.conftest import Run, run
from tests.memory import DAYS, make_memory

__all__ = ["run"]

FIXTURES = Path(__file__).parent / "fixtures" / "homes"


def unknown_files(home: Path) -> list[str]:
    """The files of a home that the table does not name."""
    found = []
    for path in home.rglob("*"):
        name = path.relative_to(home).as_posix()
        is_memory = name.startswith("memory/") or "/.memkit/" in name
        if path.is_file() and not is_memory and kind_of(name) is None:
            found.append(name)
    return found


def test_a_home_in_use_has_no_other_files(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    memory = make_memory(tmp_path, DAYS)
    home = Path(memory.home.root)
    spool.put(memory.home, {"event": "UserPromptSubmit", "session": "s", "project": memory.project.root})
    backup = str(tmp_path / "b.tar.zst")
    for command in (
        ("index",), ("config", "set", "search.k", "3"), ("work",), ("search", "gateway"), ("remember", "The gateway moves."),
        ("remember", "--user", "I prefer tabs."), ("projects", "rename", "shop"),
        ("forget", "--query", "PolicyController", "-k", "1", "--yes"), ("audit", "--fix"), ("doctor", "--fix"),
        ("backup", backup), ("restore", backup, "--yes"),
    ):  # fmt: skip
        run(memory, *command)
    assert len(list(home.rglob("*"))) > 20
    assert unknown_files(home) == []
    assert [kind for kind in (*HOME_FILES, *PROJECT_FILES) if kind.is_derived and kind.in_backup] == []


@pytest.mark.parametrize("home", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_homes_of_earlier_versions_have_no_other_files(home: str) -> None:
    for root in FIXTURES.joinpath(home).rglob("home"):
        assert unknown_files(root) == []


def test_every_path_of_the_home_is_in_the_table() -> None:
    home = Home("/home")
    known = {kind.pattern.partition("/")[0] for kind in HOME_FILES} | {"memory"}
    for path in vars(home).values():
        name = Path(path).relative_to("/home").as_posix()
        if name != ".":
            assert name.split("/")[0] in known
            is_directory = any(kind.pattern.startswith(f"{name}/") for kind in HOME_FILES)
            assert is_directory or kind_of(name) or name == "memory", name


def test_the_rows_of_the_table(tmp_path: Path) -> None:
    assert kind_of(f"models/{MODEL}/model.onnx") is not None
    for name in ("archive/box.zip", "models/mine/weights", "env/venv/x", "run", "index/chroma", "archive/a/b.md"):
        assert kind_of(name) is None
    registry = kind_of("projects/registry.json")
    assert registry is not None
    assert registry.version == "version"
    path = tmp_path / "projects" / "registry.json"
    path.parent.mkdir()
    path.touch()
    (tmp_path / "projects" / "link.json").symlink_to(path)
    found = [(kind, file) for kind in HOME_FILES for file in find_files(str(tmp_path), kind)]
    assert found == [(registry, str(path))]
    assert list(top_names())[-1] == "run"  # an uninstall needs the locks until its end
    assert kind_of(".memkit/memory/2026-11-20.md", PROJECT_FILES) is PROJECT_FILES[0]
    assert TEMPORARY == ".*.tmp"
