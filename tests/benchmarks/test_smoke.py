"""Each benchmark still runs, on next to nothing."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.conftest import BENCHMARKS
from tests.ci import only_at_night, only_in_ci
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
        seen = {"Bob": [[f"Bob's gateway {number} listens on port {port}.", "D1:2"]]}
        noted = {"session_1_observation": seen}
        value.append(
            {"sample_id": str(number), "conversation": talk, "qa": qa, "observation": noted}
        )
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def locomo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, with an embedder that needs no model and a home of its own."""
    script = importlib.import_module("locomo")
    monkeypatch.setattr(script, "load_embedder", lambda *_: FakeEmbedder())
    monkeypatch.setenv("MEMKIT_HOME", str(tmp_path / "home"))
    return script


@pytest.mark.parametrize("unit", ["product", "utterance"])
def test_locomo_in_every_mode(
    locomo: Any,
    conversations: Path,
    tmp_path: Path,
    unit: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
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


def test_coding_sessions(
    locomo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repository whose commits name the checkpoints of four sessions."""
    import coding_sessions
    from transcripts import SyntheticTranscripts

    clone, data = tmp_path / "clone", tmp_path / "data"
    clone.mkdir()

    def git(*arguments: str) -> None:
        person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", *person, *arguments], cwd=clone, check=True)

    git("init", "--quiet")
    written = SyntheticTranscripts(projects=1)
    subjects = []
    for number in range(4):
        path = written.write_session(tmp_path, 0.02)
        entries = [json.loads(line) for line in path.open()]
        subjects.append(" ".join(re.findall(r"[a-z]{4,}", entries[0]["message"]["content"])[:8]))
        checkpoint = clone / f"c{number}"
        checkpoint.mkdir()
        facts = {"session_id": f"s{number}", "checkpoint_id": checkpoint.name}
        facts["files_touched"] = re.findall(r'"file_path": "([^"]+)"', path.read_text())
        (checkpoint / "metadata.json").write_text(json.dumps(facts))
        # Claude Code writes without blanks.
        lines = [json.dumps(entry, separators=(",", ":")) for entry in entries]
        (checkpoint / "full.jsonl").write_text("\n".join(lines))
    git("add", ".")
    git("commit", "--quiet", "-m", "Checkpoints of sessions")
    git("update-ref", coding_sessions.checkpoints.BRANCH, "HEAD")
    for number, subject in enumerate(subjects):
        message = f"{subject}\n\nEntire-Checkpoint: c{number}"
        git("commit", "--quiet", "--allow-empty", "-m", message)
    monkeypatch.setattr(coding_sessions, "load_embedder", lambda *_: FakeEmbedder())
    command = ["--data", str(data), "--clone", str(clone), "--json"]
    found = json.loads(run("coding_sessions", command, monkeypatch, capsys))
    assert found["questions"] == {"older": 2, "newer": 2}
    assert list(found["commits"])[-1] == coding_sessions.BASELINE
    assert len(found["commits"]) == len(locomo.MODES) + 1
    assert found["commits"]["memkit, lexical"]["newer"]["session@1"] == 100
    assert found["files"]["as an edit"] == 100


def test_locomo_with_bullets(
    locomo: Any,
    conversations: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["locomo.py", "--data", str(conversations), "--modes", "context", "--json"]
    tokens = []
    for more in ([], ["--bullets"]):
        monkeypatch.setattr(sys, "argv", [*command, *more])
        assert locomo.main() == 0
        found = json.loads(capsys.readouterr().out)["modes"]["context"]["all"]
        assert found["evidence@5"] == 100
        tokens.append(found["tokens@5"])
    assert tokens[1] < tokens[0] / 2  # the port is in a long utterance
    monkeypatch.setattr(sys, "argv", [*command, "--bullets", "--unit", "utterance"])
    with pytest.raises(SystemExit):
        locomo.main()
    assert "--bullets needs --unit product" in capsys.readouterr().err


def test_pointers(
    locomo: Any,
    conversations: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import pointers

    monkeypatch.setattr(pointers, "load_embedder", lambda *_: FakeEmbedder())
    monkeypatch.setattr(pointers, "CURVE", (pointers.CHOSEN, 0.95))
    command = ["--data", str(conversations), "--others", str(conversations)]
    found = json.loads(run("pointers", [*command, "--json"], monkeypatch, capsys))
    chosen = found[f"{pointers.CHOSEN:.2f}"]["test"]
    assert chosen["all related"]["prompts"] == 2
    assert chosen["all related"]["any"] == 100
    assert chosen["all unrelated"]["given"] < 50
    assert found["0.95"]["test"]["all related"]["given"] < 100
    assert "| all related, test | 2 |" in run("pointers", command, monkeypatch, capsys)
    assert pointers.prompts.LEAST_RELEVANCE == pointers.CHOSEN


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_script_can_be_imported(name: str) -> None:
    importlib.import_module(name)


def test_a_long_day(tmp_path: Path) -> None:
    import importing

    found = importing.long_days(tmp_path, (5, 60))
    assert [one["turns"] for one in found] == [5, 60]
    assert all(one["cpu_seconds"] > 0 for one in found)


def run(
    name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """Run a script's `main` and return its output. A missed limit is fine: the sizes are tiny."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    assert importlib.import_module(name).main() in (None, 0, 1)
    return capsys.readouterr().out


@only_in_ci
def test_hooks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run("hooks", ["--runs", "2", "--json"], monkeypatch, capsys))
    assert "SessionStart" in json.dumps(found)


@only_in_ci
def test_redaction(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "corpus", "--bytes", "2000", "--json"]
    assert json.loads(run("redaction", arguments, monkeypatch, capsys))


@only_in_ci
def test_importing(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "mb_per_second" in run("importing", ["--megabytes", "0.3"], monkeypatch, capsys)


@only_at_night
def test_throughput(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(run("throughput", ["--chunks", "8"], monkeypatch, capsys))


@only_at_night
def test_years(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a few days every command does its work; there is no model to load."""
    import processes

    figures = json.loads(run("processes", ["--days", "3", "--runs", "1", "--json"], monkeypatch, capsys))
    assert figures["commands"].keys() == processes.YEARS_BARS.keys()
    assert figures["turns"] > figures["sessions"] > 3
    assert "| forget |" in processes.years_markdown(figures)


def test_timelines(tmp_path: Path) -> None:
    """An added turn changes the file of its month, and no other."""
    growth = importlib.import_module("growth")
    memory = tmp_path / "project" / ".memkit" / "memory"
    (tmp_path / "home").mkdir()
    sizes = growth.write_days(growth.SyntheticMemory(), memory, 40)
    assert sizes["days"] == len(list(memory.iterdir()))
    assert sizes["turns"] > 40
    figures = growth.timelines(tmp_path)
    assert figures["timeline_months"] >= 2
    assert len(figures["timeline_rewritten"]) == 1


@only_at_night
def test_scale(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs `growth`, `rivals`, `processes`, `service`, and `throughput` as well."""
    import processes
    import scale

    engines = [one for one in scale.ENGINES if one != "bm25s" or importlib.util.find_spec("bm25s")]
    monkeypatch.setattr(scale, "ENGINES", engines)
    for name in ("THROUGHPUT_CHUNKS", "TURNS", "REQUESTS"):
        monkeypatch.setattr(scale, name, 8)
    monkeypatch.setattr(processes, "RUNS", 1)
    figures = json.loads(run("scale", ["--chunks", "40", "--json"], monkeypatch, capsys))
    (size,) = figures["sizes"]
    assert size["chunks"] >= 40
    assert len(size["engines"]) == len(engines)
    assert size["processes"]["commands"]["search"] > 0
    assert size["day"]["turns"] == 9
    assert size["load"]["errors"] == []
    assert len(list(scale.scale_report.tables(figures))) > 3


@only_at_night
def test_service(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import service

    for name, value in {"IDLE_SECONDS": 0.1, "FILES": 3, "CLIENTS": 4, "REQUESTS": 8}.items():
        monkeypatch.setattr(service, name, value)
    figures = json.loads(run("service", ["--chunks", "40", "--runs", "2", "--json"], monkeypatch, capsys))
    assert figures["load"]["errors"] == [] if "load" in figures else figures


@only_at_night
def test_serving(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--chunks", "40", "--clients", "4", "--seconds", "1", "--json"]
    figures = json.loads(run("serving", command, monkeypatch, capsys))
    assert figures["many"]["statuses"].keys() == {"200"}
    assert figures["limited"]["statuses"].keys() <= {"200", "429"}
    assert figures["many"]["errors"] == figures["limited"]["errors"] == {}


@only_at_night
@pytest.mark.e2e
def test_page(home_with_model: Path) -> None:
    # In a process of its own: Playwright may run already in this one, for the tests of the page.
    command = [sys.executable, str(BENCHMARKS / "page.py"), "--chunks", "40", "--nodes", "60", "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    assert 0 < found["paint_ms"]["text"] <= found["paint_ms"]["rows"]
    assert found["keys"]["count"] > 10
    assert 0 < found["keys"]["p50_ms"] <= found["keys"]["p95_ms"]
    for name in ("layout", "drag", "pan"):
        assert found["graph"][name]["fps"] > 0


def test_topics(
    conversations: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import topics

    monkeypatch.setattr(topics, "load_embedder", lambda *_: FakeEmbedder())
    command = ["--data", str(conversations), "--scale", "12"]
    found = json.loads(run("topics", [*command, "--json"], monkeypatch, capsys))
    assert (found["entries"], found["subjects"], found["sessions"]) == (4, 2, 4)
    assert set(found["methods"]) >= {"memkit", "keywords", "k-means, k = 2 subjects"}
    assert found["methods"]["memkit"]["noise"] == 100  # four entries are no topic
    assert found["methods"]["k-means, k = 2 subjects"]["topics"] == 2
    assert found["scale"]["entries"] == 12
    assert "One refresh of a large memory" in run("topics", command, monkeypatch, capsys)


@only_in_ci
@pytest.mark.parametrize("bulk_chunks", [90, pytest.param(91, marks=only_at_night)])
def test_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, bulk_chunks: int
) -> None:
    monkeypatch.setattr(importlib.import_module("server"), "BULK_CHUNKS", bulk_chunks)
    arguments = ["--chunks", "90", "--authors", "3", "--queries", "5", "--place", str(tmp_path), "--json"]
    figures = json.loads(run("server", arguments, monkeypatch, capsys))
    (size,) = figures["sizes"]
    assert size["chunks"] == 90
    assert Path(tmp_path, "data").exists() is (bulk_chunks == 90)
    assert size["recall"] > 0.9
    assert figures["away"].keys() == {"stopped", "never answers"}
