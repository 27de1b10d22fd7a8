"""What the machine lacks: room, permission to write, or file descriptors. One line says what and where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.paths import Home
from tests.ci import first
from tests.cli.conftest import REPOSITORY, Run
from tests.memory import DAYS, Memory, day, make_memory

COMMANDS = [
    ("remember", "A quagga is a zebra."), ("config", "set", "search.k", "5"),
    ("forget", "--since", "2026-11-18", "--yes"), ("index",),
]  # fmt: skip


def mount(*arguments: str) -> None:
    try:
        subprocess.run(["mount", *arguments], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")


@pytest.fixture
def small(tmp_path: Path, model_home: Home) -> Iterator[Memory]:
    """A memory whose home is a file system of its own, with an index that is behind."""
    place = tmp_path / "home"
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(place))
    try:
        memory = make_memory(tmp_path, DAYS, models=model_home.models)
        yield memory
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


def fill(place: str) -> None:
    with open(os.path.join(place, "filler"), "wb", buffering=0) as file:
        try:
            while file.write(bytes(65536)):
                pass
        except OSError:
            pass
        try:
            while file.write(bytes(64)):
                pass
        except OSError:
            pass


@pytest.mark.parametrize("state", ["full", "read-only"])
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: words[0])
def test_commands(run: Run, small: Memory, state: str, arguments: tuple[str, ...]) -> None:
    root = small.home.root
    run(small, "index")
    small.write("2026-11-21.md", DAYS["2026-11-18.md"])
    if state == "full":
        fill(root)
    else:
        mount("-o", "remount,ro", root)
    said = run(small, *arguments)
    assert said.status == 1, said.output
    assert "unexpected" not in said.errors
    assert root in said.errors
    reasons = ("No space left on device", "database or disk is full")
    if state == "read-only":
        reasons = ("Read-only file system",)
    assert any(reason in said.errors for reason in reasons), said.errors
    assert len(said.errors.splitlines()) == 1


@pytest.mark.parametrize("state", ["full", "read-only"])
def test_the_session_start_says_so(small: Memory, state: str) -> None:
    root = small.home.root
    if state == "full":
        fill(root)
    else:
        mount("-o", "remount,ro", root)
    event = {"session_id": "5e55aaaa", "cwd": small.project.root, "source": "startup"}
    for _ in range(2):  # each time: nothing can note that it was said
        done = subprocess.run(
            [sys.executable, str(REPOSITORY / "hooks" / "session_start.py")],
            input=json.dumps(event).encode(),
            env={**os.environ, "MEMKIT_HOME": root, "MEMKIT_PYTHON": "/usr/bin/true"},
            capture_output=True,
            check=True,
        )
        answer = json.loads(done.stdout)
        assert "memkit" in answer["hookSpecificOutput"]["additionalContext"]
        (line,) = answer["systemMessage"].splitlines()
        assert line.startswith(f"memkit: cannot remember this session: {root}")
        assert "make room" in line if state == "full" else "make it writable" in line


# With too few file descriptors, a search fails; it never returns an empty answer.


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
        memory = make_memory(root / str(number), files, home=home, embedding={"provider": "none"})
        memory.sync(embedder=None)
    return home


def run_limited(home: Home, descriptors: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return subprocess.run(
        [sys.executable, "-m", "memkit", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
        env={**os.environ, "MEMKIT_HOME": home.root, "PYTHONPATH": str(REPOSITORY)},
        cwd=Path(home.root).parent / "0" / "project", text=True, check=False, preexec_fn=limit,
    )  # fmt: skip


@pytest.mark.parametrize("descriptors", first(1, [12, 6]))
def test_a_search_of_many_projects(home: Home, descriptors: int) -> None:
    before = {one: one.stat().st_mtime_ns for one in Path(home.index).rglob("*")}
    found = run_limited(home, descriptors, "search", "--all-projects", "which port does the gateway use")
    assert found.returncode == 1
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert "Too many open files" in found.stderr
    assert {one: one.stat().st_mtime_ns for one in Path(home.index).rglob("*")} == before
    found = run_limited(home, 1024, "search", "--all-projects", "which port does the gateway use", "-k", "20")
    assert found.returncode == 0
    assert all(f"gateway {number} use" in found.stdout for number in range(PROJECTS))
