"""A fortnight of short sessions, as day files, and screens to compare with."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.conftest import lexical_memory
from tests.memory import Memory

SCREENS = Path(__file__).parent / "screens"
_WRITES = os.environ.get("SCREENS") == "write"


def check_screen(name: str, text: str) -> None:
    """Compare a screen with `screens/NAME.txt`; escapes are shown as `␛`.

    After a change, look at what `SCREENS=write pytest tests/cli` writes, and commit it.
    """
    path = SCREENS / f"{name}.txt"
    shown = "\n".join(line.rstrip() for line in text.replace("\x1b", "␛").split("\n"))
    if _WRITES:
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


FILES = {path.name: path.read_text(encoding="utf-8") for path in Path(__file__).with_name("fortnight_days").iterdir()}
"""Thirteen sessions in two weeks; one goes over midnight, one over two days."""

ROLLUP = FILES.pop("2026-W47.md")
"""A rollup of the second week."""


def fortnight(root: Path) -> Memory:
    """A memory of these days, not indexed, for searches without a model."""
    return lexical_memory(root, FILES)
