"""Checks and fixes are independent, the next session reports each problem once; faults of summaries."""

from __future__ import annotations

import ast
import json
import os
import string
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memkit.capture.sessions import LiveSessions
from memkit.capture.summary_queue import Attempt, QueuedSession, SummaryQueue
from memkit.doctor import (
    Finding,
    Subject,
    finding_texts,
    installation,
    make_finding,
    open_subject,
)
from memkit.doctor.checks import CHECKS, Check, apply_fixes, examine, notify_next_session
from memkit.doctor.model import check_model_ends
from memkit.hook import notices
from memkit.hook.notices import MOST_AT_ONCE, Notice
from memkit.ipc import spool
from memkit.llm.ledger import Call, Ledger
from memkit.paths import Home
from memkit.processes import find_program
from tests.doctor.conftest import Patient

REPOSITORY = Path(__file__).resolve().parents[2]


def session_start(patient: Patient, project: str | None = None) -> dict[str, object]:
    """Return the output of the real hook. The worker that it starts does nothing, so that none interferes."""
    root = project or patient.memory.project.root
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "hooks" / "session_start.py")],
        input=json.dumps({"cwd": root}).encode(),
        env={**os.environ, "MEMKIT_HOME": patient.home.root, "MEMKIT_PYTHON": "/usr/bin/true"}, cwd=root,
        capture_output=True, check=True,
    )  # fmt: skip
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def test_a_healthy_home_has_no_notices(bare: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_program", find_program)  # with the real `python3`
    assert bare.findings() == []
    assert notify_next_session(bare.home) == 0
    assert "systemMessage" not in session_start(bare)
    nowhere = Home(str(tmp_path / "nowhere"))
    (finding,) = examine(open_subject(nowhere, bare.memory.project))
    assert (finding.code, finding.level) == ("no-home", "note")
    assert not Path(nowhere.root).exists()


def test_a_finding_is_reported_once_until_it_comes_back(bare: Patient) -> None:
    bare.configure("[search]\nbest_relevence = 0.1\n")
    assert notify_next_session(bare.home) == 1
    said = session_start(bare)["systemMessage"]
    assert isinstance(said, str)
    assert "unknown setting search.best_relevence" in said
    assert "rename it to search.best_relevance" in said
    assert said.count("\n") == 0
    assert "systemMessage" not in session_start(bare)
    assert notify_next_session(bare.home) == 0
    assert "systemMessage" not in session_start(bare)
    bare.configure("")
    assert notify_next_session(bare.home) == 0
    assert list(Path(bare.home.run, "notices").iterdir()) == []
    bare.configure("[search]\nbest_relevence = 0.1\n")
    assert notify_next_session(bare.home) == 1
    assert "systemMessage" in session_start(bare)


def test_a_clock_that_is_behind_is_named_once(bare: Patient) -> None:
    """Each look finds another event and another time, and one finds none."""
    waiting = Path(bare.home.spool, "new")
    named = []
    for day, events in enumerate((["a"], [], ["b", "c"]), 2):
        for session in events:
            spool.put(bare.home, {"event": "Stop", "session": session, "time": time.time() + day * 86_400})
        notify_next_session(bare.home)
        named.append(session_start(bare).get("systemMessage"))
        for path in waiting.iterdir():
            path.unlink()
    assert [one is not None for one in named] == [True, False, False], named


def test_a_session_reports_findings_of_its_project(bare: Patient, tmp_path: Path) -> None:
    for path in Path(bare.home.sessions).iterdir():
        path.unlink()
    LiveSessions(bare.home).begin("s", bare.memory.project.root, os.getpid())
    assert notify_next_session(bare.home) == 1
    (tmp_path / "other").mkdir()
    assert "systemMessage" not in session_start(bare, str(tmp_path / "other"))
    assert "memkit's hooks have never run" in str(session_start(bare)["systemMessage"])


def test_notices_are_limited_and_plain_text(bare: Patient) -> None:
    many = [Notice(f"code{n}", f"line {n} \x1b[31m\n") for n in range(MOST_AT_ONCE + 1)]
    assert notices.publish(bare.home, many) == MOST_AT_ONCE + 1
    first = notices.take(bare.home, "/somewhere")
    rest = notices.take(bare.home, "/elsewhere")
    assert (len(first), len(rest)) == (MOST_AT_ONCE, 1)
    assert sorted(first + rest) == [f"line {n} \ufffd[31m\ufffd" for n in range(MOST_AT_ONCE + 1)]
    assert notices.publish(bare.home, many) == 0
    notices.publish(bare.home, [Notice("long", "x" * 10_000)])
    assert len(notices.take(bare.home, "")[0]) < 500
    notices.publish(bare.home, [Notice("code", "line")])
    (path,) = [one for one in Path(bare.home.run, "notices").iterdir() if '"line"' in one.read_text()]
    for text in ("", "[]", '{"root": ""}', "\xff"):  # a damaged one is skipped
        path.write_bytes(text.encode("latin-1"))
        assert notices.take(bare.home, "") == []
        path.with_suffix(".said").unlink(missing_ok=True)
    assert notices.publish(bare.home, [Notice("code", "line")]) == 1
    assert notices.take(bare.home, "") == ["line"]


def test_a_check_that_fails_hides_no_other(bare: Patient) -> None:
    def check_nothing(subject: Subject) -> list[Finding]:
        raise ZeroDivisionError("of\nno use")

    subject = open_subject(bare.home, bare.memory.project)
    found = examine(subject, [Check(check_nothing), *CHECKS])
    assert [one.what for one in found] == ["the check of nothing failed: of no use"]


def test_the_order_of_fixes(bare: Patient) -> None:
    """Each fix runs once, in its order, and only for fixable findings."""
    subject = open_subject(bare.home, bare.memory.project)
    waiting = Finding("events-waiting", "warning", "what", "meaning")
    failed = Finding("event-failed", "error", "what", "meaning")
    other = Finding("open-to-others", "error", "what", "meaning", "by hand")
    assert [step.message for step in apply_fixes(subject, [waiting, other, failed, failed])] == [
        "0 events processed",
    ]
    assert list(apply_fixes(subject, [Finding("disk-full", "error", "what", "meaning")])) == []


def test_a_path_in_a_command_is_quoted() -> None:
    path = "/shop/.memkit/memory/$(touch evil) it's.md"
    found = make_finding("memory-refused", path=path, reason="it is a link")
    command = found.fix.split("`")[1]
    done = subprocess.run(["sh", "-c", command.replace("ls -l", "echo")], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}\n"
    assert found.what.startswith(f"memkit does not use {path}")


def test_each_finding_has_the_values_that_its_texts_name() -> None:
    """Including checks whose faults cannot be planted here."""
    made = {
        "provider-incomplete": {"what", "fix"},
        "provider-unreachable": {"what", "fix"},
        "disk-full": {"place", "free"},
        "disk-low": {"place", "free"},
    }  # these codes are no constants in the code
    for module in (REPOSITORY / "memkit" / "doctor").glob("*.py"):
        for call in ast.walk(ast.parse(module.read_text())):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "make_finding":
                continue
            if isinstance(call.args[0], ast.Constant):
                values = {str(word.arg) for word in call.keywords}
                assert made.setdefault(str(call.args[0].value), values) == values
    texts = finding_texts()
    assert made.keys() == texts.keys()
    for code, values in made.items():
        shown = "".join((texts[code].what, texts[code].meaning, texts[code].fix))
        assert {name for _, name, _, _ in string.Formatter().parse(shown) if name} == values, code


# Faults of summaries.


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
