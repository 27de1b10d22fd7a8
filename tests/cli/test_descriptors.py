"""With too few file descriptors, a search fails; it never returns an empty answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memkit.paths import Home
from tests.ci import first
from tests.memory import day, make_memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no limits there")

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECTS = 12


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Many projects, searched by words alone."""
    root = tmp_path_factory.mktemp("projects")
    home = Home(str(root / "home"))
    os.makedirs(home.root, 0o700)
    config = '[search]\nmode = "lexical"\n[embedding]\nprovider = "none"\n[service]\nenabled = false\n'
    Path(home.config_file).write_text(config)
    for number in range(PROJECTS):
        turn = (f"Which port does gateway {number} use?", "It listens on 7443.")
        files = {"2026-11-18.md": day("2026-11-18", turn, session=f"5e55{number:04d}")}
        memory = make_memory(
            root / str(number), files, home=home, embedding={"provider": "none"}
        )
        memory.sync(embedder=None)
    return home


def run(home: Home, descriptors: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return subprocess.run(
        [sys.executable, "-m", "memkit", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "MEMKIT_HOME": home.root, "PYTHONPATH": str(REPOSITORY)},
        cwd=Path(home.root).parent / "0" / "project",
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("descriptors", first(1, [12, 6, 8, 10]))
def test_a_search_of_many_projects(home: Home, descriptors: int) -> None:
    before = {one: one.stat().st_mtime_ns for one in Path(home.index).rglob("*")}
    found = run(home, descriptors, "search", "--all-projects", "which port does the gateway use")
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert "Too many open files" in found.stderr
    assert {one: one.stat().st_mtime_ns for one in Path(home.index).rglob("*")} == before


def test_a_search_with_enough_descriptors(home: Home) -> None:
    found = run(home, 1024, "search", "--all-projects", "which port does the gateway use", "-k", "20")
    assert found.returncode == 0
    assert all(f"gateway {number} use" in found.stdout for number in range(PROJECTS))
