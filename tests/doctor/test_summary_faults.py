"""Faults of summaries."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memkit.capture.summary_queue import Attempt, QueuedSession, SummaryQueue
from memkit.doctor import Finding, open_subject
from memkit.doctor.checks import notify_next_session
from memkit.doctor.model import check_model_ends
from memkit.llm.ledger import Call, Ledger
from tests.doctor.conftest import Patient

SUMMARIZED = '[summarize]\nprovider = "anthropic"\ndaily_tokens = 10000\n'


def wait(bare: Patient, tried: Attempt | None = None) -> None:
    """Queue a session with a segment, and the result of its last try."""
    sessions = SummaryQueue(bare.home)
    sessions.add(bare.memory.project.root, "s1", ["2024-11-18"], time.time())
    if tried is not None:
        (waiting,) = sessions
        tries = {"t1": tried}
        sessions.update(
            QueuedSession(waiting.root, waiting.session, waiting.days, waiting.changed, tries), ()
        )


@pytest.fixture
def summarized(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """A healthy home with summaries."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    bare.configure(f"{SUMMARIZED}[keys]\nanthropic = 'test'\n")
    wait(bare)
    assert bare.findings() == []
    return bare


def call(outcome: str, tokens: int = 100) -> Call:
    return Call("c1", time.time(), "summarize", "anthropic", "m", "/p", tokens, 0, 0.0, outcome)


def test_an_unreachable_provider(summarized: Patient) -> None:
    Ledger(summarized.home).record(call("unavailable"))
    wait(summarized, Attempt(1, time.time(), time.time() + 600, "anthropic is out of reach"))
    assert "anthropic is out of reach" in summarized.finding("summarizer-unreachable").what
    Ledger(summarized.home).record(call("ok"))
    assert summarized.findings() == []
    wait(summarized, Attempt(5, time.time(), 0, "the model declined", given_up=True))
    assert "the model declined" in summarized.finding("summary-given-up").what
    summarized.configure(SUMMARIZED)
    assert "ANTHROPIC_API_KEY" in summarized.finding("summarizer-incomplete").fix


def test_the_budget_of_today_is_spent(summarized: Patient) -> None:
    Ledger(summarized.home).record(call("ok", 9_500))
    finding = summarized.finding("budget-reached")
    assert "9,500 of 10,000 tokens" in finding.what
    assert finding.level == "note"
    Ledger(summarized.home).record(call("ok", 2_000))
    assert summarized.findings() == []


DAY = 86_400.0


def test_a_damaged_ledger(summarized: Patient) -> None:
    """It is a problem today only."""
    path = Path(summarized.home.ledger)
    Ledger(summarized.home).record(call("ok"))
    with path.open("ab") as file:
        file.write(b"half a line\n")
    finding = summarized.finding("ledger-damaged")
    assert finding.level == "warning" and not finding.fixable
    assert f"1 line of the ledger {path} cannot be read, line 2 first" in finding.what
    assert summarized.codes() == ["ledger-damaged"]
    yesterday = time.time() - DAY
    os.utime(path, (yesterday, yesterday))
    assert summarized.codes() == []
    path.unlink()
    path.mkdir(mode=0o700)
    assert summarized.home.ledger in summarized.finding("ledger-unreadable").what
    assert "check-failed" not in summarized.codes()


def ending(patient: Patient, *day: int) -> list[Finding]:
    """The findings on models on a certain day."""
    now = time.mktime((day[0], day[1], day[2], 12, 0, 0, 0, 0, -1))
    return list(check_model_ends(replace(open_subject(patient.home, patient.memory.project), now=now)))


def test_a_model_that_ends(summarized: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty days before, and from then on."""
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    chosen = '[summarize]\nprovider = "openai"\nmodel = "gpt-5-mini"\n'
    summarized.configure(chosen)
    assert ending(summarized, 2026, 10, 11) == []
    for day in ((2026, 10, 12), (2026, 12, 11), (2027, 3, 1)):
        (finding,) = ending(summarized, *day)
        assert (finding.code, finding.level) == ("model-ends", "warning")
        assert finding.what == "openai stops serving the model gpt-5-mini on 2026-12-11"
        assert "set summarize.model" in finding.fix
    summarized.configure(f'{chosen}base_url = "http://127.0.0.1:9/v1"\n')
    assert ending(summarized, 2027, 3, 1) == []
    for provider in ("openai", "ollama"):  # the default models stay
        summarized.configure(f'[summarize]\nprovider = "{provider}"\n')
        assert ending(summarized, 2026, 11, 22) == []
    summarized.configure('[embedding]\nprovider = "google"\nmodel = "text-embedding-004"\n')
    (finding,) = ending(summarized, 2026, 11, 22)
    assert "set embedding.model" in finding.fix


@pytest.fixture
def unasked(bare: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """A healthy home with the summaries that are on by default."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    directory = Path(os.environ["CLAUDE_CONFIG_DIR"])
    directory.mkdir(exist_ok=True)
    (directory / "settings.json").write_text('{"apiKeyHelper": "key"}')
    wait(bare)
    assert bare.findings() == []
    return bare


@pytest.mark.parametrize(
    ("outcome", "given_up", "code"),
    [
        ("not configured", False, "summarizer-unreachable"),
        ("unavailable", False, "summarizer-unreachable"),
        ("not configured", True, "summary-given-up"),
    ],
)
def test_summaries_that_nobody_asked_for_never_nag(
    unasked: Patient, outcome: str, given_up: bool, code: str
) -> None:
    """The doctor tells that the login no longer works, and no session does."""
    Ledger(unasked.home).record(call(outcome))
    reason = "claude cannot be used (Not logged in); run `claude` and log in with /login"
    wait(unasked, Attempt(5, time.time(), time.time() + 600, reason, given_up=given_up))
    assert unasked.finding(code).level == "note"
    assert "log in with /login" in unasked.finding(code).what
    assert notify_next_session(unasked.home) == 0
    unasked.configure('[summarize]\nprovider = "claude-cli"\n')
    assert unasked.finding(code).level == "warning"


def test_no_login_is_no_finding(unasked: Patient) -> None:
    Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json").unlink()
    wait(unasked, Attempt(1, time.time(), time.time() + 600, "not logged in"))
    Ledger(unasked.home).record(call("not configured"))
    assert unasked.findings() == []
    assert notify_next_session(unasked.home) == 0
