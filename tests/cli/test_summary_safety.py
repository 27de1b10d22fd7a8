"""Commands of the summaries where something else happens meanwhile, or text would steer the terminal."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from memkit import llm
from memkit.browse.citation import find_citation
from memkit.capture.summary_queue import SummaryQueue
from memkit.llm.calls import calls_lock
from memkit.llm.ledger import Call, Ledger
from memkit.privacy.redact import redact
from memkit.summarize.summarizer import SummaryReport
from tests.cli.conftest import Run
from tests.memory import Memory, make_memory
from tests.summarize.stage import LONG_TURN, START, SummaryStage, bullet, summary

ESCAPE = "\x1b]0;owned\x07"  # not what click takes off by itself


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SummaryStage:
    """A session that waits, a model that answers, and settings that name it."""
    stage = SummaryStage(tmp_path)
    stage.add_turn(0, "Which port?", "Port 7443, since 443 is taken.")
    stage.provider.answer = summary(bullet("The gateway listens on 7443.", [1], "finding"))
    Path(stage.home.root, "config.toml").write_text('[summarize]\nprovider = "anthropic"\n')
    monkeypatch.setattr(llm, "find_provider", lambda *_, **__: stage.provider)
    return stage


@pytest.fixture
def memory(stage: SummaryStage, tmp_path: Path, model_home: object) -> Memory:
    return make_memory(tmp_path, home=stage.home, models=model_home.models)  # type: ignore[attr-defined]


def test_status_says_so_when_the_next_call_does_not_fit_the_budget(
    run: Run, memory: Memory, stage: SummaryStage
) -> None:
    for number in range(1, 8):
        stage.add_turn(number, *LONG_TURN)
    assert "today's budget is used up" not in run(memory, "status").output
    spent = Call("c", time.time(), "summarize", "anthropic", "m", "/p", 193_000, 0, 0.0, "ok")
    Ledger(stage.home).record(spent)
    assert "today's budget is used up" in run(memory, "status").output


def test_a_grip_shows_its_proof(run: Run, memory: Memory, stage: SummaryStage) -> None:
    stage.run(60)
    grip = stage.bullets[0].split("grip:")[1].split()[0]
    shown = run(memory, "cite", grip[:5])
    assert (shown.status, shown.errors) == (0, "")
    first, second, _, excerpt, source, *events = shown.output.splitlines()
    assert first == f"{grip}  Found: The gateway listens on 7443."
    assert second == f"2026-11-20, session {stage.journal.day('2026-11-20').sessions()[0]}"
    assert excerpt == "“Port 7443, since 443 is taken.”"
    assert source == "from the archive, turns 00000000"
    assert events == ["  user      Which port?", "> assistant Port 7443, since 443 is taken."]
    found = find_citation(stage.project, stage.home, grip, 0, redact)
    assert (found.place, len(found.events)) == (0, 1)
    # Without an archive the digest tells.
    for path in Path(stage.home.archive).iterdir():
        path.unlink()
    found = find_citation(stage.project, stage.home, grip, 3, redact)
    assert (found.source, found.events, found.place) == ("journal", (), -1)
    assert "Port 7443" in found.excerpt
    assert "has the citation 'zz'; `memkit expand` prints citations" in run(memory, "cite", "zz").complaint


def test_nothing_steers_the_terminal(run: Run, memory: Memory, stage: SummaryStage) -> None:
    """A repository brings memory with it, and a server the names of its models."""
    stage.run(60)
    day = Path(stage.project.memory) / "2026-11-20.md"
    day.write_text(
        day.read_text()
        + f"\n- Found: {ESCAPE}it. <!-- grip:abc{ESCAPE}1 turns:0000{ESCAPE},00000000 -->"
        + f"\n- Found: {ESCAPE}it. <!-- grip:abc{ESCAPE}2 turns:00000000 -->\n"
    )
    call = Call("c", START.timestamp(), "summarize", f"x{ESCAPE}", f"y{ESCAPE}", f"/p{ESCAPE}")
    Ledger(stage.home).record(call)
    (waiting,) = SummaryQueue(stage.home)
    assert waiting.root == stage.project.root
    for command in (
        ("cite", f"abc{ESCAPE}1"),
        ("cite", "abc"),
        ("cost", "--by", "model"),
        ("cost", "--by", "project"),
        ("status",),
    ):
        shown = run(memory, *command)
        assert shown.output or shown.errors
        assert "\x1b" not in shown.output + shown.errors, command


def test_a_running_round_is_not_paid_for_twice(
    run: Run, memory: Memory, stage: SummaryStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, may_go = threading.Event(), threading.Event()
    stage.now = START.replace(hour=12)

    def round_of_the_service() -> None:
        with calls_lock(stage.home):
            held.set()
            may_go.wait(60)
            stage.summarizer.run(SummaryReport(), lambda: False)

    thread = threading.Thread(target=round_of_the_service)
    thread.start()
    assert held.wait(60)
    # The command has made its plan when it asks whether to start.
    monkeypatch.setattr("memkit.cli.summarize.confirm", lambda question, yes: may_go.set())
    try:
        assert run(memory, "summarize").status == 0
    finally:
        may_go.set()
        thread.join(60)
    assert len(stage.provider.tasks) == 1
    assert len(stage.bullets) == 1
