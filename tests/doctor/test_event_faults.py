"""Faults of hooks, events, transcripts, the archive, and processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.sessions import Sessions
from memkit.doctor import installation, open_subject
from memkit.doctor.capture import check_waiting_events, last_events
from memkit.files import write_durably
from memkit.home_files import remove_obstacles
from memkit.hook.events import log_failure
from memkit.index import index_lock
from memkit.ipc import spool
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.settings import load
from tests.builders import Lines, entries
from tests.doctor.conftest import Patient, write_json
from tests.service.running import RunningService

OTHER = "77aa9c10-7d4e-4b8a-9f15-0c6d2e8b7a44"


def put(patient: Patient, **fields: Any) -> str:
    """Spool an event of a session with a transcript."""
    lines = Lines(OTHER).prompt("Which port does the staging gateway use?", "p1").answer("7443.")
    record = {
        "event": "Stop", "session": OTHER, "time": time.time(), "project": patient.memory.project.root,
        "transcript": str(patient.transcript(lines)), "prompt_id": "p1", "message": "7443.",
    }  # fmt: skip
    return spool.put(patient.home, {**record, **fields})


def give_up(patient: Patient, name: str, error: str) -> None:
    item = spool.claim(patient.home, name, time.time())
    assert item is not None
    spool.give_up(patient.home, item, error)


def test_a_failed_event(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    give_up(bare, put(bare), "the disk was full")
    finding = bare.finding("event-failed")
    assert finding.level == "error"
    assert finding.what == "1 event failed for good: the disk was full"
    assert bare.fix(finding)[-1] == "1 event processed"
    assert "7443" in bare.search()
    assert bare.findings() == []
    put(bare)
    assert bare.findings() == []
    put(bare, time=time.time() - 3600)  # without a worker
    assert bare.fix(bare.finding("events-waiting")) == ["2 events processed"]
    monkeypatch.setenv("MEMKIT_HOME", bare.home.root)
    log_failure("Stop", OSError("no room"))  # a hook that failed
    Path(bare.home.hook_log).chmod(0o600)
    assert bare.finding("hook-errors").what.endswith("Stop: OSError: no room")
    entry = json.loads(Path(bare.home.hook_log).read_text())
    entry["time"] = "2024-01-01T00:00:00+0000"
    Path(bare.home.hook_log).write_text(json.dumps(entry) + "\n{cut off")
    assert bare.findings() == []
    name = put(bare)
    Path(bare.home.spool, "new", name).write_text("{")
    assert spool.claim(bare.home, name, time.time()) is None
    finding = bare.finding("event-failed")
    assert not finding.fixable
    assert "unreadable" in finding.what


def test_an_event_that_fails_again(bare: Patient) -> None:
    from memkit.doctor.checks import apply_fixes

    give_up(bare, put(bare), "it was odd")
    state = Sessions(bare.home).path(OTHER)  # which this memkit cannot change
    state.parent.mkdir(exist_ok=True)
    state.write_text('{"version": 99}')
    finding = bare.finding("event-failed")
    done = list(apply_fixes(open_subject(bare.home, bare.memory.project), [finding]))
    assert [step.failed for step in done] == [True]
    assert "will be tried again" in bare.finding("event-retried").what


def place_obstacle(path: Path, kind: str, elsewhere: Path) -> None:
    if path.is_file():
        path.unlink()
    if kind == "link":
        path.symlink_to(elsewhere)
    else:
        (path / "inner").mkdir(parents=True)


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_what_is_in_the_way_of_derived_files_is_removed(indexed: Patient, tmp_path: Path, kind: str) -> None:
    """A directory or a link that a sync tool left stops neither capture nor the index."""
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("mine")
    home = indexed.home
    (snapshot,) = Path(home.index, "snapshots").iterdir()
    put(indexed, time=time.time() - 61)
    with index_lock(home, 5):  # who only indexes takes no events
        (finding,) = check_waiting_events(open_subject(home, indexed.memory.project))
        for path in (Path(home.hook_settings), Path(home.capture_lock), Path(home.run, "capture.queue"),
                     snapshot / "copied", snapshot / "manifest"):  # fmt: skip
            place_obstacle(path, kind, elsewhere)
    assert indexed.fix(finding) == ["1 event processed"]
    assert "7443" in indexed.search()
    assert Path(home.hook_settings).read_bytes()
    assert elsewhere.read_text() == "mine"
    assert indexed.codes() == []


def test_a_link_out_of_the_home_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "hooks.json").mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir()
    (home / "run").symlink_to(outside)
    assert list(remove_obstacles(str(home))) == []
    assert (outside / "hooks.json").is_dir()
    (tmp_path / "hooks.json").mkdir()
    with pytest.raises(OSError) as caught:
        write_durably(str(tmp_path / "hooks.json"), b"{}")
    assert str(caught.value).endswith(f"'{tmp_path / 'hooks.json'}'")  # not its temporary name


def test_hooks_that_never_fired(bare: Patient) -> None:
    assert bare.memory.project.root in last_events(bare.home)
    for path in Path(bare.home.sessions).iterdir():
        path.unlink()
    (bare.client / "agent-1234.jsonl").write_text("{}\n")  # no session of its own
    finding = bare.finding("hooks-never-fired")
    assert finding.level == "error"
    assert "had 1 session there" in finding.what
    marker = Path(bare.memory.project.root, ".memkit", "off")
    marker.parent.mkdir()
    marker.touch()
    assert bare.findings() == []
    marker.unlink()
    for path in bare.client.iterdir():  # of a time before memkit was installed
        os.utime(path, (10**9, 10**9))
    assert "hooks-never-fired" not in bare.codes()


def test_hooks_that_stopped(bare: Patient) -> None:
    assert bare.findings() == []
    now = time.time()
    put(bare, session="019c8a4c@codex", transcript="/rollout.jsonl", time=now + 9000)  # Codex's prove nothing
    bare.transcript(Lines(OTHER).prompt("And now?").answer("Now."), changed=now + 3600)
    assert "hooks last ran in" in bare.finding("hooks-silent").what
    put(bare, event="UserPromptSubmit", time=now + 3600)
    assert bare.findings() == []
    for at in (1000.0, 3000.0, 2000.0):
        put(bare, project="/elsewhere", time=at)
    assert last_events(bare.home)["/elsewhere"] == 3000.0


def test_a_transcript_that_cannot_be_read(bare: Patient) -> None:
    (session,) = Sessions(bare.home)
    Path(session.transcript).unlink()
    assert bare.findings() == []  # Claude Code deletes them
    Path(session.transcript).mkdir()
    finding = bare.finding("transcript-unreadable")
    assert session.transcript in finding.what
    assert finding.what.endswith("is not a file")
    Path(session.transcript).rmdir()
    Path(session.transcript).touch(0)
    if os.geteuid() != 0:  # root reads everything
        assert "Permission denied" in bare.finding("transcript-unreadable").what


def test_a_transcript_that_is_not_archived(bare: Patient, tmp_path: Path) -> None:
    now = time.time()
    lines = Lines(OTHER).prompt("Which port?", "p1").answer("7443.")
    bare.transcript(lines, changed=now - 26 * 86400)
    finding = bare.finding("never-imported")
    assert finding.level == "note"
    assert f"memkit import {bare.client}" in finding.fix
    bare.remember_session(lines, last_event=now - 26 * 86400, changed=now - 26 * 86400)
    for days, is_found in ((90, False), (28, True), ("many", True)):  # how long Claude Code keeps them
        write_json(tmp_path / "claude" / "settings.json", {"cleanupPeriodDays": days})
        assert ("archive-gap" in bare.codes()) is is_found
    bare.configure("[archive]\nenabled = false\n")
    assert bare.findings() == []
    bare.configure("")
    finding = bare.finding("archive-gap")
    assert OTHER in finding.what
    assert bare.fix(finding) == ["1 session archived"]
    (turn,) = Archive(bare.home).turns(OTHER)
    assert "7443" in str(turn.messages)
    assert not Path(bare.memory.project.memory).exists()
    assert [one.code for one in bare.findings()] == ["turns-missing"]


def test_a_turn_that_git_threw_away(bare: Patient) -> None:
    bare.remember_session(Lines(OTHER).prompt("Which port?", "p1").answer("7443."), last_event=time.time())
    session = Sessions(bare.home).load(OTHER)
    settings = load.load(bare.home, bare.memory.project).settings
    Capture(bare.home, settings).import_file(Path(session.transcript), bare.memory.project)
    day = Path(bare.memory.project.memory, "2026-03-04.md")
    text = day.read_text()
    day.unlink()
    finding = bare.finding("turns-missing")
    assert "1 archived turn of 2026-03-04" in finding.what
    assert not finding.fixable  # the user may have deleted it

    def git(*arguments: str) -> None:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *names, *arguments], cwd=bare.memory.project.root, check=True)

    git("init", "-q")
    config = Path(bare.home.config_file).read_text() if Path(bare.home.config_file).exists() else ""
    bare.configure(f"{config}\n[memory]\nshared = true\n")
    assert "turns-missing" not in bare.codes()
    git("commit", "-q", "--allow-empty", "-m", "One")
    git("reset", "-q", "--hard")
    assert bare.fix(bare.finding("turns-missing")) == ["1 turn written again"]
    assert entries(day.read_text()) == entries(text)
    assert "turns-missing" not in bare.codes()
    day.unlink()
    (turn,) = Archive(bare.home).turns(OTHER)
    Tombstones(bare.home).begin(Forgotten(turns=frozenset({turn.id})))
    assert "turns-missing" not in bare.codes()


def test_marks_of_a_merge_conflict(bare: Patient) -> None:
    day = next(Path(bare.memory.project.memory).glob("*.md"), Path(bare.memory.project.memory, "2026-03-04.md"))
    pasted = "\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n```\n"
    day.parent.mkdir(parents=True, exist_ok=True)
    text = (day.read_text() if day.exists() else "# 2026-03-04\n") + pasted
    day.write_text(text)
    assert "merge-conflict" not in bare.codes()
    turns = (f"### 10:00 {name} <!-- turn:{name * 8} -->\n" for name in "ab")
    day.write_text("".join([text, "<<<<<<< HEAD\n", "=======\n".join(turns), ">>>>>>> theirs\n"]))
    assert f"{day.name} has marks of a merge conflict from line {text.count(chr(10)) + 1} on" in (
        bare.finding("merge-conflict").what
    )


# Faults of processes: a service that hangs or has another version, and locks that are held for long.


@pytest.fixture
def service(bare: Patient) -> Iterator[RunningService]:
    running = RunningService(bare.memory).start()
    yield running
    running.stop()


def test_a_hung_service(bare: Patient, service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare.findings() == []
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(installation, "START_SECONDS", 1.0)
        finding = bare.finding("service-hung")
    assert finding.level == "error"
    assert f"process {service.process.pid}," in finding.what
    monkeypatch.setattr("memkit.ipc.stop.DRAIN_SECONDS", 0.1)
    monkeypatch.setattr("memkit.ipc.stop.TERM_SECONDS", 0.5)
    assert bare.fix(finding)
    assert service.process.wait(30) == -signal.SIGKILL
    assert bare.findings() == []
    service.start()
    assert bare.findings() == []


def test_a_service_of_another_version(
    bare: Patient, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memkit.__version__", "0.0.1")
    newer = bare.finding("service-version")
    assert "this command is 0.0.1" in newer.what
    assert not newer.fixable  # the two would end each other's service in turn
    monkeypatch.setattr("memkit.__version__", "99.0")
    assert bare.finding("service-version").fixable


HOLDER = """
import sys, time
from memkit.ipc import spool
from memkit.index import index_lock
from memkit.paths import Home

home = Home(sys.argv[1])
with index_lock(home, 5.0):
    for name in spool.waiting(home):
        spool.claim(home, name, time.time())
    print("holds", flush=True)
    time.sleep(600)
"""


def test_a_dead_holder_of_the_lock(indexed: Patient) -> None:
    """A worker that was killed in the middle of its work."""
    put(indexed)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, indexed.home.root], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == b"holds\n"
        holder.kill()
    killed = indexed.finding("worker-killed")
    assert "handled 1 event" in killed.what
    assert indexed.fix(killed)
    assert not spool.unfinished(indexed.home)
    assert indexed.findings() == []
    assert "7443" in indexed.search()
