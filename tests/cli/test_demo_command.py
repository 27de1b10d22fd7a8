"""`memkit demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.memory import Memory


def test_demo_goes_from_a_session_to_the_original_exchange(
    run: Run, fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = run(fresh, "demo", "--json").json
    assert result["day_file"].endswith(".md")
    assert "7443" in result["section"]["content"]
    assert any("7443" in message["text"] for message in result["messages"])
    assert result["degraded"] is False
    assert not list(tmp_path.glob("memkit-demo-*"))
    text = run(fresh, "demo").output
    assert "memkit expand" in text and "which is now deleted" in text
    assert not Path(fresh.home.index).exists()


def test_the_demo_heeds_environment_variables(
    run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "nobody")
    refused = run(fresh, "demo")
    assert refused.status == 1
    assert "MEMKIT_EMBEDDING_PROVIDER" in refused.errors
