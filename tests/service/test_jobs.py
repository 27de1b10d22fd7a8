"""Recurring jobs: when they are due, what they do, and what is recorded."""

from __future__ import annotations

import copy
import json
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.capture import Capture
from memkit.capture.sessions import Session, Sessions
from memkit.environment import extras
from memkit.errors import NotFoundError
from memkit.index import index_lock
from memkit.index.manifest import root_of
from memkit.index.store import Store
from memkit.ipc import spool
from memkit.projects.project import Project
from memkit.projects.registry import changing
from memkit.service.job_thread import JobThread
from memkit.service.jobs import (
    JOBS,
    Job,
    JobBook,
    JobContext,
    JobState,
    due_jobs,
    job_named,
    run_job,
)
from memkit.settings import ArchiveSettings, MemorySettings
from memkit.text import plural
from memkit.topics.background import MOST_SECONDS, changed_entries
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path, read_derived
from tests.builders import Lines, entries
from tests.memory import DAYS, Memory, day, make_memory
from tests.messages_api import Failure, MessagesApi, tool
from tests.topics.names_stage import NAMED, NameStage, add_notes, labels_for
from tests.topics.subjects import SUBJECTS, make_subjects, talk


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS, embedding={"provider": "none"})


def around(memory: Memory) -> JobContext:
    return JobContext(memory.home, lambda project: memory.settings, lambda project: memory.sync())


def test_when_jobs_are_due(memory: Memory) -> None:
    book, now = JobBook(memory.home), time.time()

    def due(when: float) -> list[str]:
        return [job.name for job in due_jobs(memory.home, memory.settings, when)]

    every = [job.name for job in JOBS]
    assert due(now) == every
    for name in every:
        book.update(name, last=now)
    assert due(now) == []
    assert due(now + 3 * 3600) == ["reconcile", "health", "sync"]
    assert due(now + 2 * 86400) == every
    assert due(now - 60) == every  # the clock was set back
    chosen = msgspec.structs.replace(memory.settings.jobs, reconcile="off")
    memory.settings = msgspec.structs.replace(memory.settings, jobs=chosen)
    assert due(now + 2 * 86400) == every[1:]
    with pytest.raises(NotFoundError, match="reconcile"):
        job_named("nothing")
    assert [job.name for job in JOBS] == list(memory.settings.jobs.__struct_fields__)


def run_once(memory: Memory, act: Callable[[JobContext], str]) -> JobState:
    return run_job(Job("index", 60.0, act), around(memory))


def test_a_killed_run_is_due_again(memory: Memory) -> None:
    def die(context: JobContext) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_once(memory, die)
    assert JobBook(memory.home).state("index") == JobState()


def test_a_failure_is_recorded(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """Else the job would be due again at once, and nobody would know why."""

    def fail(context: JobContext) -> str:
        raise errors.pop()

    results = "no room", "unexpected error (ValueError: year 0 is out of range)"
    errors = [ValueError("year 0 is out of range"), OSError("no\nroom")]
    for result in results:
        caplog.clear()
        state = run_once(memory, fail)
        assert (state.failed, state.result, state.last > 0) == (True, result, True)
        assert JobBook(memory.home).state("index") == state
        assert "job index failed" in caplog.text
    assert not run_once(memory, lambda context: "done").failed


def test_two_processes_lose_no_change(memory: Memory) -> None:
    book = JobBook(memory.home)

    def change(name: str) -> None:
        for _ in range(20):
            book.update(name, result=f"{book.state(name).result}x")

    threads = [threading.Thread(target=change, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [book.state(name).result for name in "abc"] == ["x" * 20] * 3


def test_a_damaged_job_book_is_read_as_empty(memory: Memory) -> None:
    path = Path(memory.home.run, "jobs.json")
    path.parent.mkdir(parents=True)
    for text in (
        "", "[]", '{"reconcile": 5}', "\xff", '{"index": {"last": "x"}}', '{"index": {"last": 1e300}}',
        '{"index": {"last": NaN}}', '{"index": {"last": -1}}', '{"index": {"result": 5}}',
    ):  # fmt: skip
        path.write_bytes(text.encode("latin-1"))
        assert due_jobs(memory.home, memory.settings, time.time()) == list(JOBS), text
        JobBook(memory.home).update("tidy", last=time.time())
        assert set(json.loads(path.read_bytes())) == {"version", "tidy"}


def test_each_job_does_its_work(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")  # for the process of the topics
    memory.sync()
    memory.write("new.md", "# New\n\nquagga\n")
    old = spool.put(memory.home, {"event": "Stop", "time": 5.0, "session": "s"})
    new = spool.put(memory.home, {"event": "Stop", "time": time.time(), "session": "s"})
    for name in (old, new):
        item = spool.claim(memory.home, name, time.time())
        assert item is not None
        spool.give_up(memory.home, item, "broken")
    results = {job.name: run_job(job, around(memory)) for job in JOBS}
    assert results.pop("health").result.endswith("for the next session")
    assert {name: state.result for name, state in results.items()} == {
        "reconcile": "0 sessions caught up", "retry": "1 failed event queued again",
        "index": "1 project up to date", "tidy": "0 old state files, 0 archived sessions and 0 days removed",
        "rollup": "0 model calls", "sync": "no place is set; see `memkit sync --help`", "topics": "the topics of 1 project computed",
    }  # fmt: skip
    assert not any(state.failed for state in results.values())
    assert spool.waiting(memory.home) == [new]
    assert [item.name for item in spool.failed(memory.home)] == [old]
    assert "quagga" in memory.search("quagga").results[0].chunk.content
    assert due_jobs(memory.home, memory.settings, time.time()) == []


def test_topics_are_computed_apart_when_enough_has_changed(tmp_path: Path) -> None:
    """In another process: this one imports no scikit-learn, and the index lock stays free."""
    memory = make_subjects(tmp_path)
    job = job_named("topics")
    thread = JobThread()
    with index_lock(memory.home, 5.0):
        first = thread.start(job, around(memory))
        assert thread.start(job, around(memory)) is first or first.done()
        # Its process has the lowest priority: on a busy machine it takes minutes.
        assert first.result(MOST_SECONDS).result == "the topics of 1 project computed"
    assert not thread.is_busy
    path = derived_path(memory.project, memory.home, memory.settings)
    stored = read_derived(path)
    assert stored is not None and len(stored.topics) == 3
    assert run_job(job, around(memory)).result == "the topics of 0 projects computed"
    memory.write("2026-07-01.md", day("2026-07-01", ("One more?", "Yes.")))
    memory.sync()
    assert changed_entries(memory.project, memory.home, memory.settings) == (1, 25)
    assert run_job(job, around(memory)).result == "the topics of 0 projects computed"
    assert read_derived(path) == stored  # still readable, though the index is newer
    for number in range(2, 6):
        memory.write(f"2026-07-{number:02d}.md", day(f"2026-07-{number:02d}", ("One more?", f"Yes, {number}.")))
    memory.sync()
    assert run_job(job, around(memory)).result == "the topics of 1 project computed"
    thread.stop()


def test_topics_are_named_by_a_model_also_those_of_the_users_own_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real provider of the settings, which talks to a scripted API."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    with MessagesApi(lambda request: [tool("record_labels", labels=labels_for(request.text))]) as api:
        stage = NameStage(tmp_path, base_url=api.url)
        memory, own = stage.memory, copy.copy(stage.memory)
        own.project = Project.of_user(memory.home)
        add_notes(own, own.project, [talk(subject, n)[0] for n in range(6) for subject in SUBJECTS])
        own.sync()
        job = job_named("topics")
        result = "the topics of 1 project computed; 6 named by a model"
        assert run_job(job, around(memory)).result == result
        assert stage.labels == NAMED
        stage.memory = own
        assert stage.labels == NAMED
        assert [call.project for call in stage.calls] == sorted([memory.project.root, own.project.root])
        assert run_job(job, around(memory)).result == "the topics of 0 projects computed"
        api.script = lambda request: Failure(529, "overloaded_error", "Overloaded")
        stage.memory = memory
        stage.add_days(12, first=8)
        state = run_job(job, around(memory))
        assert not state.failed
        assert "; not named by a model: " in state.result and "\n" not in state.result
    assert len(stage.calls) == 3


def test_failures_of_topics_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = make_subjects(tmp_path)
    refresh(memory.project, memory.home, memory.settings)
    (kept,) = Path(memory.home.projects).glob("*.topics.json")
    kept.write_text("{")
    derived_path(memory.project, memory.home, memory.settings).unlink()
    state = run_job(job_named("topics"), around(memory))
    assert state.failed
    assert "is damaged" in state.result and "\n" not in state.result
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "sklearn" else object())
    state = run_job(job_named("topics"), around(memory))
    assert not state.failed
    assert "scikit-learn" in state.result


def test_archives_are_kept_as_long_as_configured(memory: Memory) -> None:
    archive = Archive(memory.home)
    for session, days in (("old", 31), ("new", 29)):
        when = datetime.now(timezone.utc) - timedelta(days=days)
        archive.append(session, [ArchivedTurn("a", (), time=when, finished=when)])
    for keep_days, left in ((0, 2), (3650, 2), (30, 1)):
        kept = msgspec.structs.replace(memory.settings, archive=ArchiveSettings(keep_days=keep_days))
        state = run_job(job_named("tidy"), JobContext(memory.home, lambda _, kept=kept: kept, lambda _: None))
        archives = plural(2 - left, "archived session")
        assert state.result.startswith(f"0 old state files, {archives} and 0 days removed")
        assert archive.size().sessions == left


def test_expired_days_are_removed_from_every_file(memory: Memory) -> None:
    today = datetime.now().date()
    for age, word in ((400, "zqquaggazq"), (29, "zqzebrazq")):
        day = (today - timedelta(days=age)).isoformat()
        memory.write(f"{day}.md", f"# {day}\n\n## 09:00 On the {word}\n\nThe {word} is striped.\n")
    memory.write("notes.md", "# Notes\n\nThe zqhorsezq is not.\n")
    for age, word in ((400, "zqquaggazq"), (0, "zqhorsezq")):
        week = f"{today - timedelta(days=age):%G-W%V}"
        memory.write(f"{week}.md", f"# {week}\n\n- Fact: The {word} ran. <!-- fact:12345678 -->\n")
    memory.sync()
    tidy = job_named("tidy")
    assert " 0 days removed" in run_job(tidy, around(memory)).result
    kept = MemorySettings(keep_days=30)
    memory.settings = msgspec.structs.replace(memory.settings, memory=kept)
    assert " 1 day removed" in run_job(tidy, around(memory)).result
    files = [path for path in Path(memory.home.root).rglob("*") if path.is_file()]
    files += [path for path in Path(memory.project.root).rglob("*") if path.is_file()]
    held = {
        word: [path for path in files if word.encode() in path.read_bytes()]
        for word in ("zqquaggazq", "zqzebrazq", "zqhorsezq")
    }
    assert held["zqquaggazq"] == []
    assert held["zqzebrazq"]
    assert held["zqhorsezq"]
    assert len(memory.snapshot) == len(memory.search("x").results)
    assert " 0 days removed" in run_job(tidy, around(memory)).result


def test_the_index_of_a_project_that_became_another_one_goes(memory: Memory, tmp_path: Path) -> None:
    old = make_memory(tmp_path / "old", DAYS, home=memory.home, embedding={"provider": "none"})
    tidy, snapshots = job_named("tidy"), Path(memory.home.index, "snapshots")
    memory.sync()
    old.sync()
    (tmp_path / "away").mkdir()
    Path(old.project.root).rename(tmp_path / "away" / "project")
    assert not run_job(tidy, around(memory)).failed
    assert len(list(snapshots.iterdir())) == 2  # nobody knows where it is now
    with changing(memory.home) as registry:
        registry.move(old.project.root, memory.project.root)
    assert not run_job(tidy, around(memory)).failed
    (left,) = snapshots.iterdir()
    assert root_of(left) == memory.project.root
    with Store(memory.home, "", left.name) as store:
        assert [one.name for one in store._client.list_collections()] == [left.name]
    assert memory.search("gateway").results


def test_a_crashed_session_is_caught_up(memory: Memory, tmp_path: Path) -> None:
    transcript = tmp_path / "5e55cccc.jsonl"
    lines = [
        {"type": "user", "message": {"role": "user", "content": "What eats a zebra?"}},
        {"type": "assistant", "message": {"role": "assistant", "content": "The lion."}},
    ]
    shared = {"sessionId": "5e55cccc", "cwd": memory.project.root, "parentUuid": None}
    text = "".join(
        json.dumps({**shared, "uuid": f"u{n}", "timestamp": f"2026-11-20T10:00:0{n}Z", **line})
        + "\n"
        for n, line in enumerate(lines)
    )
    transcript.write_text(text)
    session = Session("5e55cccc", str(transcript), memory.project.root)
    Sessions(memory.home).save(session)
    assert run_job(job_named("reconcile"), around(memory)).result == "1 session caught up"
    assert "The lion." in memory.path("2026-11-20.md").read_text()
    assert run_job(job_named("reconcile"), around(memory)).result == "0 sessions caught up"


def test_unfinished_files_of_killed_writers_are_removed(memory: Memory) -> None:
    home = memory.home
    old = [Path(home.run, ".abcd_123.tmp"), Path(home.sessions, ".abcd_123.tmp")]
    kept = [Path(home.sessions, ".abcd_124.tmp"), Path(home.sessions, ".mine.tmp")]
    for path in (*old, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if path != kept[0]:
            os.utime(path, (1, 1))
    assert not run_job(job_named("tidy"), around(memory)).failed
    assert [path for path in (*old, *kept) if path.exists()] == kept


def test_old_session_states_are_removed(memory: Memory, tmp_path: Path) -> None:
    """But none that keeps a turn single: neither a live transcript's nor one that nothing else knows."""
    home, root = memory.home, memory.project.root
    sessions = Sessions(home)
    old = time.time() - 40 * 86400
    lines = {name: Lines(name).prompt(f"What is {name}?", f"p-{name}").answer(f"It is {name}.")
             for name in ("gone", "there", "young", "unarchived")}  # fmt: skip
    capture = Capture(home, memory.settings)
    for name, told in lines.items():
        path = told.write(tmp_path)
        record = {"event": "Stop", "session": name, "transcript": str(path), "project": root}
        record |= {"cwd": root, "prompt_id": f"p-{name}", "message": f"It is {name}."}
        capture.handle({**record, "time": old}, Project(root), old)
        os.utime(sessions.path(name), (old, old))
        if name != "there":
            path.unlink()
    os.utime(sessions.path("young"))
    Archive(home).path("unarchived").unlink()
    before = {path: path.read_text() for path in Path(memory.project.memory).glob("*.md")}
    assert sum(entries(text).count("It is gone.") for text in before.values()) == 1
    kept = msgspec.structs.replace(memory.settings.archive, keep_days=9999)
    memory.settings = msgspec.structs.replace(memory.settings, archive=kept)
    assert not run_job(job_named("tidy"), around(memory)).failed
    assert {one.id for one in sessions} == set(lines)  # their archives will go
    kept = msgspec.structs.replace(kept, keep_days=0)
    memory.settings = msgspec.structs.replace(memory.settings, archive=kept)
    assert run_job(job_named("tidy"), around(memory)).result.startswith("1 old state file,")
    assert {one.id for one in sessions} == {"there", "young", "unarchived"}
    # The session comes back, and is read from its start: each turn is there once, as it was.
    path = lines["gone"].write(tmp_path)
    record = {"event": "SessionEnd", "session": "gone", "transcript": str(path), "project": root}
    Capture(home, memory.settings).handle({**record, "cwd": root, "time": old}, Project(root), time.time())
    after = {path: path.read_text() for path in Path(memory.project.memory).glob("*.md")}
    assert after == before
