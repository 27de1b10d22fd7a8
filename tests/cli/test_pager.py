"""Long output is paged as git does it: by `$PAGER`, only on a terminal, only if it is longer than the screen."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, on_terminal
from tests.memory import Memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

PAGER = f"{sys.executable} -c 'import sys; print(\"PAGED\", len(sys.stdin.read().strip().splitlines()))'"


def test_only_what_is_longer_than_the_screen(past: Memory) -> None:
    assert on_terminal(past, "sessions", PAGER=PAGER, rows=27) == "PAGED 27\n"
    shown = on_terminal(past, "sessions", PAGER=PAGER, rows=28)
    assert "PAGED" not in shown
    assert set(re.findall("\x1b\\[(.*?)m", shown)) == {"0", "1", "2"}  # bold and dim suit light and dark
    assert len(shown.splitlines()) == 27


@pytest.mark.parametrize("pager", ["", "cat"])
def test_no_pager(past: Memory, pager: str) -> None:
    assert "5e550001" in on_terminal(past, "sessions", PAGER=pager, rows=10)


def test_no_color(past: Memory) -> None:
    shown = on_terminal(past, "show", "2026-11-20", NO_COLOR="1", PAGER="cat")
    assert "Staging gateway port (5e55000c)" in shown
    assert "\x1b" not in shown


def test_never_in_a_pipe(spawn: Run, past: Memory, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    found = spawn(past, "show", "2026-11-20", PAGER=f"touch {mark}", LINES="3")
    assert found.status == 0
    assert not mark.exists()


def test_a_repository_cannot_set_the_pager_of_a_session(past: Memory, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hostile = {"PAGER": f"touch {mark}", "LESSOPEN": f"|touch {mark}", "LESS": "-o/tmp/x", "GIT_PAGER": f"touch {mark}"}
    shown = on_terminal(past, "sessions", rows=5, CLAUDECODE="1", **hostile)
    assert "5e550001" in shown
    assert not mark.exists()


def test_a_pager_is_run_without_a_shell(past: Memory, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    shown = on_terminal(past, "sessions", rows=5, PAGER=f"{PAGER}; touch {mark}")
    assert not mark.exists(), shown


def test_a_pager_that_cannot_be_parsed(past: Memory) -> None:
    shown = on_terminal(past, "sessions", rows=5, PAGER="less '", status=1)
    assert shown.startswith("memkit: cannot run the pager \"less '\": ")
