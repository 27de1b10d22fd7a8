"""Long output is paged as git does it: by `$PAGER`, only on a terminal, only if it is longer than the screen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, environment
from tests.cli.fortnight import fortnight
from tests.maintenance.clones import Person
from tests.memory import Memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

PAGER = f"{sys.executable} -c 'import sys; print(\"PAGED\", len(sys.stdin.read().strip().splitlines()))'"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Not to be changed."""
    return fortnight(tmp_path_factory.mktemp("fortnight"))


def on_terminal(
    memory: Memory | Person, *arguments: str, rows: int = 24, status: int = 0, answer: str = "", **variables: str
) -> str:
    """Run a command on a terminal of 80 columns where somebody types `answer`; return what it shows."""
    import fcntl
    import struct
    import termios

    own, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    known = environment(memory, TERM="dumb", **variables)
    known = {name: value for name, value in known.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    known |= variables
    with subprocess.Popen(
        [sys.executable, "-m", "memkit", *arguments],
        cwd=memory.project.root, env=known, stdin=terminal, stdout=terminal, stderr=terminal,
    ) as process:  # fmt: skip
        os.close(terminal)
        os.write(own, answer.encode())
        shown = b""
        try:
            while part := os.read(own, 65536):
                shown += part
        except OSError:  # Linux reports the end so
            pass
        finally:
            os.close(own)
        assert process.wait(60) == status
    return shown.decode().replace("\r\n", "\n")


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
