"""`memkit demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.ci import only_in_ci
from tests.cli.conftest import Run
from tests.memory import Memory


@only_in_ci
def test_demo_goes_from_hooks_to_the_original_exchange(
    run: Run, fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(fresh.home.root).mkdir(exist_ok=True)
    if not Path(fresh.home.models).exists():
        pytest.skip("no model")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = run(fresh, "demo", "--json").json
    assert result["events"].count("Stop") == 2
    assert "7443" in result["section"]["content"]
    assert any("7443" in message["text"] for message in result["messages"])
    assert not list(tmp_path.glob("memkit-demo-*"))
    text = run(fresh, "demo").output
    assert "memkit expand" in text and "which is now deleted" in text
