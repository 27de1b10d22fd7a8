"""A home that cannot be written, full or read-only: one line that says what and where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.paths import Home
from tests.cli.conftest import REPOSITORY, Run
from tests.memory import DAYS, Memory, make_memory

COMMANDS = [
    ("remember", "A quagga is a zebra."),
    ("config", "set", "search.k", "5"),
    ("forget", "--since", "2026-11-18", "--yes"),
    ("index",),
]


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
