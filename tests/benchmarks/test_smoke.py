"""Each benchmark still runs, on next to nothing."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from memkit.embedding import load_embedder
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from memkit.summarize import wording
from tests.benchmarks.conftest import BENCHMARKS
from tests.ci import AT_NIGHT, only_at_night, only_in_ci, sized
from tests.memory import FakeEmbedder

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a script's `main` and returns its output, read as JSON if it is. A missed limit is fine: the sizes are tiny."""

    def run(name: str, *arguments: object) -> Any:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        script = importlib.import_module(name)
        if name in ("locomo", "coding_sessions", "pointers", "topics"):
            monkeypatch.setattr(script, "load_embedder", lambda *_: FakeEmbedder())
        assert script.main() in (None, 0, 1)
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else out

    return run


@pytest.fixture
def conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two conversations of two sessions, in the format of LoCoMo, and a home of their own."""
    monkeypatch.setenv("MEMKIT_HOME", str(tmp_path / "home"))
    value = []
    for number, port in enumerate((7443, 8443)):
        answer = f"The gateway {number} listens on port {port}, as ever. " * 20
        words = {
            "session_1": [("Ann", f"Hello Bob, which port does the gateway {number} use?"), ("Bob", answer)],
            "session_2": [("Ann", f"Priya waters the plants of house {number} on Monday."), ("Bob", "That is kind.")],
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
        noted = {"session_1_observation": {"Bob": [[f"Bob's gateway {number} listens on port {port}.", "D1:2"]]}}
        value.append({"sample_id": str(number), "conversation": talk, "qa": qa, "observation": noted})
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_script_can_be_imported(name: str) -> None:
    importlib.import_module(name)


@pytest.mark.parametrize("unit", ["product", "utterance"])
def test_locomo(run: Run, conversations: Path, tmp_path: Path, unit: str) -> None:
    import locomo

    command = ["locomo", "--data", conversations, "--unit", unit]
    assert list(run(*command, "--json")["modes"]) == list(locomo.MODES)
    assert "evidence@10" in run(*command)
    other = tmp_path / "other.txt"
    other.write_text("How deep is the sea?\n")
    assert run(*command, "--modes", "lexical", "--off-topic", other, "--json")["off-topic questions"] == 2


def test_locomo_with_bullets(run: Run, conversations: Path) -> None:
    command = ["locomo", "--data", conversations, "--modes", "context"]
    plain, bullets = (run(*command, "--json", *more)["modes"]["context"]["all"] for more in ([], ["--bullets"]))
    assert bullets["tokens@5"] < plain["tokens@5"] / 2  # the port is in a long utterance
    with pytest.raises(SystemExit):
        run(*command, "--bullets", "--unit", "utterance")


def test_coding_sessions(run: Run, tmp_path: Path, conversations: Path) -> None:
    """A repository whose commits name the checkpoints of four sessions."""
    import coding_sessions
    from transcripts import SyntheticTranscripts

    clone = tmp_path / "clone"
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
        git("commit", "--quiet", "--allow-empty", "-m", f"{subject}\n\nEntire-Checkpoint: c{number}")
    found = run("coding_sessions", "--data", tmp_path / "data", "--clone", clone, "--json")
    assert found["questions"] == {"older": 2, "newer": 2}
    assert list(found["commits"])[-1] == coding_sessions.BASELINE


def test_pointers(run: Run, conversations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pointers

    monkeypatch.setattr(pointers, "CURVE", (pointers.CHOSEN, 0.95))
    command = ["pointers", "--data", conversations, "--others", conversations]
    assert run(*command, "--json")[f"{pointers.CHOSEN:.2f}"]["test"]["all related"]["prompts"] == 2
    assert "| all related, test | 2 |" in run(*command)
    assert pointers.prompts.LEAST_RELEVANCE == pointers.CHOSEN


def test_topics(run: Run, conversations: Path) -> None:
    import topics

    command = ["topics", "--data", conversations, "--scale", sized(0, 0, 12)]
    found = run(*command, "--json")
    assert (found["entries"], found["subjects"], found["sessions"]) == (4, 2, 4)
    assert set(found["methods"]) >= {"memkit", "keywords", "k-means, k = 2 subjects"}
    assert "k-means" in topics._text(found, [conversations])


def test_synthetic_data_is_the_same_at_each_run(tmp_path: Path) -> None:
    import growth
    import importing
    from synthetic import SyntheticMemory

    days = list(islice(SyntheticMemory(7).days(), 5))
    assert days == [SyntheticMemory(7).day(number) for number in range(5)]
    assert days != list(islice(SyntheticMemory(8).days(), 5))
    assert SyntheticMemory(7).questions(5, 10) == SyntheticMemory(7).questions(5, 10)
    assert [one["turns"] for one in importing.long_days(tmp_path / "long", (2, 5))] == [2, 5]
    # An added turn changes the file of its month, and no other.
    memory = tmp_path / "project" / ".memkit" / "memory"
    (tmp_path / "home").mkdir()
    assert growth.write_days(SyntheticMemory(), memory, 40)["days"] == len(list(memory.iterdir()))
    assert len(growth.timelines(tmp_path)["timeline_rewritten"]) == 1


def test_a_section_is_replaced_and_the_rest_left_alone(tmp_path: Path) -> None:
    from report import replace_section

    document = tmp_path / "docs" / "benchmarks.md"
    replace_section("scale", "first", document)
    document.write_text(f"# Benchmarks\n\nBy hand.\n\n{document.read_text()}\nBetween.\n")
    replace_section("locomo", "| a |\n| b |", document)
    replace_section("scale", "\nsecond \\1\n\nwith lines\n", document)
    text = document.read_text()
    assert text == (
        "# Benchmarks\n\nBy hand.\n\n<!-- begin scale -->\nsecond \\1\n\nwith lines\n<!-- end scale -->\n\nBetween.\n\n"
        "<!-- begin locomo -->\n| a |\n| b |\n<!-- end locomo -->\n"
    )
    document.write_text(f"{text}<!-- begin scale -->\nold\n")
    with pytest.raises(ValueError, match="markers of scale"):
        replace_section("scale", "new", document)


@only_at_night
def test_hooks_redaction_and_importing(run: Run, home_with_model: Path) -> None:
    assert "SessionStart" in json.dumps(run("hooks", "--runs", 2, "--json"))
    assert run("redaction", "--only", "corpus", "--bytes", 2000, "--json")
    assert "mb_per_second" in run("importing", "--megabytes", 0.1)


@pytest.mark.parametrize("name", ["fit", "test"])
def test_a_set_has_enough_claims_of_each_kind(name: str) -> None:
    import claim_sets

    groups = claim_sets.read(claim_sets.DIRECTORY / f"{name}.txt")
    assert len(groups) >= 50
    assert {kind for group in groups for kind, _ in group.lies} == set(claim_sets.KINDS)
    assert all(not {text for _, text in group.lies} & set(group.true) for group in groups)


@only_in_ci
def test_scripted_models_get_what_they_deserve(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import claim_sets
    import summaries

    read = claim_sets.read
    if not AT_NIGHT:
        monkeypatch.setattr(claim_sets, "read", lambda path: read(path)[:2])
    monkeypatch.setattr(sys, "argv", ["summaries.py", "--json"])
    assert summaries.main() == 0
    figures = json.loads(capsys.readouterr().out)
    assert list(figures["check"]) == ["fit", "test"]
    good, lying, lazy = (figures["models"][name] for name in ("good", "lying", "lazy"))
    assert good["found"] > lazy["found"]
    assert good["lies_written"] == lazy["lies_written"] == 0 < lying["lies_written"]
    assert lying["unverified"] > good["unverified"]


@pytest.mark.parametrize("with_vectors", [pytest.param(True, marks=only_at_night), False])
def test_the_weights_of_the_check_are_those_of_its_set(home_with_model: Path, with_vectors: bool) -> None:
    import claim_sets
    import summaries

    embedder = load_embedder(Home.from_environment(), EmbeddingSettings()) if with_vectors else None
    groups = claim_sets.read(claim_sets.DIRECTORY / "fit.txt")
    intercept, weights = summaries.fitted_weights(groups, embedder)
    shipped = wording.WITH_VECTORS if with_vectors else wording.BY_WORDS
    assert shipped == pytest.approx((intercept, *weights), abs=0.02)


@only_at_night
def test_commands_on_a_memory_of_years(run: Run, home_with_model: Path) -> None:
    import processes

    assert run("throughput", "--chunks", 8, "--json")
    figures = run("processes", "--days", 3, "--runs", 1, "--json")
    assert figures["commands"].keys() == processes.YEARS_BARS.keys()
    assert "| forget |" in processes.years_markdown(figures)


@only_at_night
def test_scale(run: Run, home_with_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs `growth`, `rivals`, `processes`, `service`, and `throughput` as well."""
    import processes
    import scale

    engines = [one for one in scale.ENGINES if one != "bm25s" or importlib.util.find_spec("bm25s")]
    monkeypatch.setattr(scale, "ENGINES", engines)
    for name in ("THROUGHPUT_CHUNKS", "TURNS", "REQUESTS"):
        monkeypatch.setattr(scale, name, 8)
    monkeypatch.setattr(processes, "RUNS", 1)
    figures = run("scale", "--chunks", 40, "--json")
    (size,) = figures["sizes"]
    assert len(size["engines"]) == len(engines)
    assert size["load"]["errors"] == []
    assert len(list(scale.scale_report.tables(figures))) > 3


@only_at_night
def test_service_and_serving(run: Run, home_with_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import service

    for name, value in {"IDLE_SECONDS": 0.1, "FILES": 3, "CLIENTS": 4, "REQUESTS": 8}.items():
        monkeypatch.setattr(service, name, value)
    figures = run("service", "--chunks", 40, "--runs", 2, "--json")
    assert figures["load"]["errors"] == [] if "load" in figures else figures
    figures = run("serving", "--chunks", 40, "--clients", 4, "--seconds", 1, "--json")
    assert figures["many"]["statuses"].keys() == {"200"}
    assert figures["many"]["errors"] == figures["limited"]["errors"] == {}


@only_at_night
@pytest.mark.e2e
def test_page(home_with_model: Path) -> None:
    # In a process of its own: Playwright may run already in this one, for the tests of the page.
    command = [sys.executable, str(BENCHMARKS / "page.py"), "--chunks", "40", "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    assert 0 < found["paint_ms"]["text"] <= found["paint_ms"]["rows"]
    assert found["keys"]["p50_ms"] > 0


@only_in_ci
@pytest.mark.parametrize("bulk_chunks", [90, pytest.param(91, marks=only_at_night)])
def test_server(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bulk_chunks: int) -> None:
    monkeypatch.setattr(importlib.import_module("server"), "BULK_CHUNKS", bulk_chunks)
    arguments = ["--chunks", 90, "--authors", 3, "--queries", 5, "--place", tmp_path, "--json"]
    figures = run("server", *arguments)
    (size,) = figures["sizes"]
    assert size["recall"] > 0.9
    assert figures["away"].keys() == {"stopped", "never answers"}


@pytest.mark.parametrize("kind", ["folder", "git"])
def test_sync(run: Run, kind: str) -> None:
    figures = run("sync", "--days", 3, "--kind", kind, "--json")
    assert figures["turns"] > 60 and figures["sessions"] > 5
    assert "first, taking" in figures
