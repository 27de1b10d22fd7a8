"""`memkit statusline` with options; see tests/hook/test_status_line.py for what Claude Code runs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run
from tests.memory import DAYS, make_memory


def test_the_status_line_of_a_project(run: Run, tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    shown = run(memory, "statusline", "--project", memory.project.root)
    assert shown.output.startswith("memkit ")
    assert " session" in shown.output
    assert run(memory, "statusline", "--json", stdin=b"{}").json == {"line": shown.output.rstrip("\n")}
