"""Each benchmark still runs, on next to nothing."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import BENCHMARKS
from tests.memory import FakeEmbedder


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """Two conversations of two sessions, in the format of LoCoMo."""
    value = []
    for number, port in enumerate((7443, 8443)):
        words = {
            "session_1": [
                ("Ann", f"Hello Bob, which port does the gateway {number} use?"),
                ("Bob", f"The gateway {number} listens on port {port}, as ever. " * 20),
            ],
            "session_2": [
                ("Ann", f"Priya waters the plants of house {number} on Monday."),
                ("Bob", "Thank you, that is kind of her."),
            ],
        }
        talk: dict[str, object] = {}
        for index, (name, said) in enumerate(words.items(), start=1):
            talk[f"{name}_date_time"] = f"1:56 pm on {index} May, 2023"
            talk[name] = [
                {"speaker": who, "dia_id": f"D{index}:{place}", "text": text}
                for place, (who, text) in enumerate(said, start=1)
            ]
        qa = [
            {"question": "Which port?", "answer": port, "evidence": ["D1:2"], "category": 1},
            {"question": "Who waters the plants?", "evidence": ["D2:1"], "category": 2},
        ]
        value.append({"sample_id": str(number), "conversation": talk, "qa": qa})
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("unit", ["product", "utterance"])
def test_locomo_in_every_mode(
    conversations: Path,
    tmp_path: Path,
    unit: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import locomo

    monkeypatch.setattr(locomo, "load_embedder", lambda home: FakeEmbedder())
    monkeypatch.setenv("MEMKIT_HOME", str(tmp_path / "home"))
    command = ["locomo.py", "--data", str(conversations), "--unit", unit, "--json"]
    monkeypatch.setattr(sys, "argv", command)
    assert locomo.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["modes"]) == list(locomo.MODES)
    for found in report["modes"].values():
        assert found["questions"] == 4
        assert found["all"]["evidence@10"] > 0
    monkeypatch.setattr(sys, "argv", command[:-1])
    assert locomo.main() == 0
    assert "evidence@10" in capsys.readouterr().out
    other = tmp_path / "other.txt"
    other.write_text("How deep is the sea?\n")
    monkeypatch.setattr(sys, "argv", [*command, "--off-topic", str(other)])
    assert locomo.main() == 0
    assert json.loads(capsys.readouterr().out)["off-topic questions"] == 2


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_script_can_be_imported(name: str) -> None:
    importlib.import_module(name)


def test_a_long_day(tmp_path: Path) -> None:
    import importing

    found = importing.long_days(tmp_path, (5, 60))
    assert [one["turns"] for one in found] == [5, 60]
    assert all(one["cpu_seconds"] > 0 for one in found)
