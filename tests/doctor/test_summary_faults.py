"""Faults of summaries."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memkit.capture.summary_queue import Attempt, QueuedSession, SummaryQueue
from memkit.llm.ledger import Call, Ledger
from tests.doctor.conftest import Patient


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
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    bare.configure('[summarize]\nprovider = "anthropic"\ndaily_tokens = 10000\n')
    wait(bare)
    assert bare.findings() == []
    return bare


def call(outcome: str, tokens: int = 100) -> Call:
    return Call("c1", time.time(), "summarize", "anthropic", "m", "/p", tokens, 0, 0.0, outcome)


def test_no_key(summarized: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert "ANTHROPIC_API_KEY" in summarized.finding("summarizer-incomplete").fix


def test_an_unreachable_provider(summarized: Patient) -> None:
    Ledger(summarized.home).record(call("unavailable"))
    wait(summarized, Attempt(1, time.time(), time.time() + 600, "anthropic is out of reach"))
    assert "anthropic is out of reach" in summarized.finding("summarizer-unreachable").what
    Ledger(summarized.home).record(call("ok"))
    assert summarized.findings() == []


def test_the_budget_of_today_is_spent(summarized: Patient) -> None:
    Ledger(summarized.home).record(call("ok", 9_500))
    finding = summarized.finding("budget-reached")
    assert "9,500 of 10,000 tokens" in finding.what
    assert finding.level == "note"
    Ledger(summarized.home).record(call("ok", 2_000))
    assert summarized.findings() == []


def test_given_up(summarized: Patient) -> None:
    wait(summarized, Attempt(5, time.time(), 0, "the model declined", given_up=True))
    assert "the model declined" in summarized.finding("summary-given-up").what


def test_no_findings_without_summaries(bare: Patient) -> None:
    wait(bare)
    Ledger(bare.home).record(call("unavailable", 10**9))
    assert bare.findings() == []
    assert Path(bare.home.ledger).exists()
