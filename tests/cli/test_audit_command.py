"""`memkit audit`: its output and exit status."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.files import MOST_BYTES
from memkit.paths import Home
from tests.cli.conftest import Run, lexical_memory
from tests.memory import DAYS, Memory

KEY = "ghp" + "_" + "a1B2c3D4e5" * 4


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two days, one of them with a key, indexed without a model."""
    day = DAYS["2026-11-18.md"].replace("443 is taken.", f"443 is taken, the key is {KEY}.")
    return lexical_memory(tmp_path, {"2026-11-18.md": day, "2026-11-19.md": DAYS["2026-11-19.md"]})


def holders(home: Home) -> list[Path]:
    files = (path for path in Path(home.root).rglob("*") if path.is_file())
    return [path for path in files if KEY.lower().encode() in path.read_bytes().lower()]


def test_a_found_secret_is_fixed(run: Run, memory: Memory) -> None:
    run(memory, "index")
    assert holders(memory.home)
    path = memory.path("2026-11-18.md")
    found = run(memory, "audit")
    assert found.status == 1
    assert f"found  github-token  journal  {path}:7\n" in found.output
    assert "index" in found.output
    assert found.output.endswith("2 secrets found; `memkit audit --fix` redacts them.\n")
    fixed = run(memory, "audit", "--fix")
    assert fixed.status == 0
    assert fixed.output.endswith("2 secrets redacted.\n")
    assert KEY not in found.output + found.errors + fixed.output + fixed.errors
    assert "443 is taken, the key is [redacted:github-token]." in path.read_text()
    assert holders(memory.home) == []
    again = run(memory, "audit")
    assert (again.status, again.output) == (0, "Nothing found.\n")


def test_json(run: Run, memory: Memory) -> None:
    memory.write("notes.md", f"# Notes\n\n{KEY}\n")
    found = run(memory, "audit", "--json")
    assert found.status == 1
    assert found.json["left"] == 2
    fixed = run(memory, "audit", "--fix", "--json")
    assert fixed.status == 1
    (left,) = (one for one in fixed.json["findings"] if one["where"] == "markdown")
    place = str(memory.path("notes.md"))
    assert left == {"where": "markdown", "place": place, "line": 3, "kind": "github-token", "fixed": False}
    assert KEY not in found.output + fixed.output


def test_a_file_that_cannot_be_read_is_reported(run: Run, memory: Memory) -> None:
    memory.write("2026-11-20.md", "")
    os.truncate(memory.path("2026-11-20.md"), MOST_BYTES + 1)
    found = run(memory, "audit")
    assert found.status == 1
    assert "cannot read" in found.errors
    assert "2026-11-20.md" in found.errors
    assert "journal" in found.output


def test_an_import_needs_memkit_to_be_enabled(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").touch()
    monkeypatch.setenv("MEMKIT_DISABLE", "1")
    refused = run(memory, "import", str(tmp_path / "t.jsonl"))
    assert "MEMKIT_DISABLE is set" in refused.complaint
