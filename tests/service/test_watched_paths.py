from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.service.watcher import WatchedPaths, watched_paths

MEMORY = Path(".memkit", "memory")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    root.mkdir()
    return root


def directories(root: Path, found: WatchedPaths) -> dict[str, bool]:
    return {os.path.relpath(path, root): deep for path, deep in found.directories.items()}


def test_existing_directories_on_the_way_are_watched(root: Path) -> None:
    assert directories(root, watched_paths(str(root), [MEMORY])) == {".": False}
    (root / ".memkit").mkdir()
    assert directories(root, watched_paths(str(root), [MEMORY])) == {".": False, ".memkit": False}
    (root / MEMORY).mkdir()
    assert directories(root, watched_paths(str(root), [MEMORY])) == {
        ".": False, ".memkit": False, ".memkit/memory": True,
    }  # fmt: skip
    assert directories(root, watched_paths(str(root), [MEMORY, Path(".")])) == {".": True}


def test_outside_the_project_only_the_nearest_directory_is_watched(root: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "notes" / "deep" / "a.md"]
    assert directories(root, watched_paths(str(root), paths)) == {"..": False}
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    assert directories(root, watched_paths(str(root), paths)) == {"../notes/deep": False}


def test_a_link_and_its_target_are_watched(root: Path) -> None:
    (root / ".away" / "notes").mkdir(parents=True)
    (root / "notes").symlink_to(root / ".away" / "notes")
    found = watched_paths(str(root), [Path("notes")])
    assert directories(root, found) == {".": False, ".away": False, ".away/notes": True}
    assert found.concern(str(root / "notes"), is_directory=False)


def test_the_target_of_a_link_out_of_the_project_is_not_watched(root: Path, tmp_path: Path) -> None:
    (tmp_path / "away" / "deep").mkdir(parents=True)
    (root / "notes").symlink_to(tmp_path / "away")
    found = watched_paths(str(root), [Path("notes")])
    assert directories(root, found) == {".": False}
    assert found.concern(str(root / "notes"), is_directory=False)


@pytest.mark.parametrize(
    ("path", "is_directory", "concerns"),
    [
        (".memkit", True, True),
        (".memkit/memory", True, True),
        (".memkit/memory/a.md", False, True),
        (".memkit/memory/deep/a.MARKDOWN", False, True),
        (".memkit/memory/deep", True, True),
        (".memkit/memory/a.md~", False, False),
        (".memkit/memory/.#a.md", False, False),
        (".memkit/memory/#a.md#", False, False),
        (".memkit/memory/.a.md.swp", False, False),
        (".memkit/memory/4913", False, False),
        (".memkit/memory/a.md.tmp", False, False),
        (".memkit/memory/.git", True, False),
        (".memkit/memory2/a.md", False, False),
        (".memkit/other.md", False, False),
        ("README.md", False, True),
        ("other.md", False, False),
        ("src", True, False),
    ],
)
def test_names_that_concern_a_memory(
    root: Path, path: str, is_directory: bool, concerns: bool
) -> None:
    (root / MEMORY).mkdir(parents=True)
    found = watched_paths(str(root), [MEMORY, Path("README.md")])
    assert found.concern(str(root / path), is_directory) == concerns
