"""`memkit fix` and `memkit how`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run
from tests.pointers.test_moments import ERROR, remember


def test_what_was_run_after_an_error(tmp_path: Path, run: Run) -> None:
    memory = remember(tmp_path)
    found = run(memory, "fix", "--json", ERROR).json["fixes"]
    assert [(one["date"], one["session"], one["passed"]) for one in found] == [
        ("2026-11-20", "5e550003", "pytest -q"),
        ("2026-11-18", "5e550001", "pytest -q"),
    ]
    assert run(memory, "fix", "-n", "1", *ERROR.split()).output == (
        "2026-11-20  session 5e550003  aaaa0003\n  pytest -q\n    failed: ModuleNotFoundError: No module named 'yaml'\n"
        "    then: pip install pyyaml\n    then: Edit deploy/load.py\n    passed: pytest -q\n"
    )
    assert run(memory, "fix", "1 failed").output.startswith("No command failed with this message")


def test_the_commands_of_a_tool(tmp_path: Path, run: Run) -> None:
    memory = remember(tmp_path)
    assert run(memory, "how", "pytest").output == "pytest -q\n  2 times, last on 2026-11-20  aaaa0004\n"
    assert run(memory, "how", "--json", "pip").json["commands"][0]["times"] == 2
    assert run(memory, "how", "cargo").output == "No command with cargo has worked here.\n"
