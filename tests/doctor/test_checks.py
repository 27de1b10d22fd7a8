"""The next session reports each problem once; checks and fixes are independent."""

from __future__ import annotations

import ast
import json
import os
import string
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memkit.capture.sessions import LiveSessions
from memkit.doctor import (
    Finding,
    Subject,
    finding_texts,
    installation,
    make_finding,
    open_subject,
)
from memkit.doctor.checks import CHECKS, Check, apply_fixes, examine, notify_next_session
from memkit.hook import notices
from memkit.hook.notices import MOST_AT_ONCE, Notice
from memkit.ipc import spool
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
        env={**os.environ, "MEMKIT_HOME": patient.home.root, "MEMKIT_PYTHON": "/usr/bin/true"},
        cwd=root,
        capture_output=True,
        check=True,
    )
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
