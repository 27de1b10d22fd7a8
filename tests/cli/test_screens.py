"""The main screens, as a person sees them: whole, at 80 and 120 columns, with and without color."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

import pytest

from memkit import cli
from memkit.cli.context import Context
from memkit.cli.screen import cells
from tests.ci import first
from tests.cli.conftest import Run, on_terminal
from tests.cli.fortnight import ROLLUP, SCREENS, check_screen, fortnight
from tests.memory import DAYS, Memory, make_memory

COLORS = {"0", "1", "2", "4", "31", "32", "36"}
"""What is legible on light and on dark: weights and basic colors, without yellow, white, and backgrounds."""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory below the user's home directory, so that its paths are the same everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    return make_memory(tmp_path, DAYS)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["--help", "status", "stats", "config list", "service"])
def test_screen(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run(memory, *command.split()).output
    assert max(map(len, shown.splitlines())) <= columns
    assert "\x1b" not in shown
    check_screen(f"{command.strip('-').replace(' ', '-')}-{columns}", shown)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("all", ""), ("month", "2026-11 --depth 2"), ("week", "2026-W47"), ("day", "2026-11-20"),
     ("segment", "a000000f"), ("search", "--search port --limit 4")],
)  # fmt: skip
def test_timeline(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: str, columns: int
) -> None:
    """From the whole memory down to a segment. The second week has a rollup."""
    memory = fortnight(tmp_path)
    memory.write("2026-W47.md", ROLLUP)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run(memory, "timeline", *arguments.split()).output
    assert max(map(cells, shown.splitlines())) <= columns
    check_screen(f"timeline-{name}-{columns}", shown)


@pytest.mark.parametrize(("as_json", "is_counted"), [(False, False), (False, True), (True, False)])
def test_progress(monkeypatch: pytest.MonkeyPatch, as_json: bool, is_counted: bool) -> None:
    """It is drawn on a terminal and erased at the end; with `--json` there is none."""
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with Context(None, as_json).progress("[red]reading\x1b[2J", is_counted=is_counted) as progress:
            progress(3, 7)
        terminal.write("end")
        terminal.flush()
        drawn = ""
        while not drawn.endswith("end"):
            drawn += os.read(ours, 65536).decode()
    os.close(ours)
    assert "\x1b[2J" not in drawn
    if as_json:
        assert drawn == "end"
    else:
        assert "[red]reading" in drawn and ("3/7" in drawn) == is_counted
        assert drawn.endswith("\x1b[2Kend")


def test_help_fits_on_a_page() -> None:
    assert len((SCREENS / "help-80.txt").read_text().splitlines()) <= 62
    assert set(cli._INTERNAL) == {"mcp", "recall", "statusline", "work"}


@pytest.mark.parametrize("command", first(1, ["config list", "stats"]))
def test_color(memory: Memory, command: str) -> None:
    shown = {"TERM": "xterm-256color", "PAGER": "cat"}
    on_terminal(memory, *command.split(), **shown)  # the first run of stats caches numbers, which take space
    colored = on_terminal(memory, *command.split(), **shown)
    codes = set(re.findall(r"\x1b\[([0-9;]*)m", colored))
    assert codes and {part for code in codes for part in code.split(";")} <= COLORS
    plain = on_terminal(memory, *command.split(), **shown, NO_COLOR="1")
    assert set(re.findall(r"\x1b\[([0-9;]*)m", plain)) <= {"0", "1", "2"}
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == re.sub(r"\x1b\[[0-9;]*m", "", plain)
