"""When hooks start a process for waiting work: for what is new at once, for what failed not again and again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from memkit.capture import worker as worker_module
from memkit.capture.worker import work
from memkit.files import make_private_directory
from memkit.ipc import client, launch, spool, unindexed
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings


class Clock:
    """The clock of the day, in a test's hand; what is monotonic goes on by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time()
        monkeypatch.setattr(time, "time", lambda: self.now)


class Hooks:
    """What hooks of a home start, which is counted; a started worker runs at once, in this process."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.started: list[tuple[str, ...]] = []
        monkeypatch.setattr(launch, "start", self._start)

    def _start(self, home: Home, *arguments: str) -> None:
        self.started.append(arguments)
        work(home, lambda project: Settings())

    def hand_over(self) -> None:
        launch.hand_over(self.home, with_service=True)

    def event(self, **told: object) -> str:
        # Long enough ago that a worker waits for no transcript.
        past = time.time() - 60
        record = {"event": "Stop", "session": "s", "time": past, "project": "/nowhere", **told}
        return spool.put(self.home, record)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    monkeypatch.setenv("MEMKIT_PYTHON", "/usr/bin/true")
    home = Home(str(tmp_path / "home"))
    make_private_directory(home.root)
    yield Hooks(home, monkeypatch)


@pytest.fixture
def unwritable_index(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each pass over a project fails; the list grows with every try."""
    tries: list[str] = []

    def fail(project: Project, *given: object, later: bool) -> None:
        tries.append(project.root)
        raise OSError("the index cannot be written")

    monkeypatch.setattr("memkit.index.sync.sync_project", fail)
    return tries


def test_an_index_that_cannot_be_written_starts_few_processes(
    hooks: Hooks, clock: Clock, unwritable_index: list[str]
) -> None:
    unindexed.mark(hooks.home, "/project")
    for _ in range(90):  # a hook each second
        hooks.hand_over()
        clock.now += 1
    assert len(hooks.started) == 2
    assert unwritable_index == ["/project"] * 2
    for _ in range(24 * 60):  # a hook each minute for a day
        hooks.hand_over()
        clock.now += 60
    assert len(hooks.started) < 40


def test_what_is_new_is_handed_over_at_once(hooks: Hooks, clock: Clock, unwritable_index: list[str]) -> None:
    unindexed.mark(hooks.home, "/project")
    hooks.hand_over()
    hooks.hand_over()
    assert len(hooks.started) == 1
    unindexed.mark(hooks.home, "/another")
    hooks.hand_over()
    assert len(hooks.started) == 2
    hooks.event()
    hooks.hand_over()
    assert len(hooks.started) == 3
    assert not spool.work(hooks.home)


def test_an_event_in_back_off_starts_nothing_until_its_time(
    hooks: Hooks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OSError("no")

    monkeypatch.setattr("memkit.capture.capture.Capture.handle", fail)
    hooks.event()
    for _ in range(20):
        hooks.hand_over()
        clock.now += 1
    assert len(hooks.started) == 1
    clock.now += spool.FIRST_RETRY_SECONDS
    hooks.hand_over()
    assert len(hooks.started) == 2


def _indexed(home: Home, root: str) -> None:
    unindexed.claim(home, root)
    unindexed.clear(home, root)


def test_success_forgets_what_was_left(
    hooks: Hooks, clock: Clock, unwritable_index: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unindexed.mark(hooks.home, "/project")
    hooks.hand_over()
    assert os.path.exists(hooks.home.left)
    monkeypatch.setattr(
        "memkit.index.sync.sync_project", lambda project, home, settings, later: _indexed(home, project.root)
    )
    clock.now += launch.FIRST_PAUSE_SECONDS + 1
    hooks.hand_over()
    assert not launch.waiting_names(hooks.home)
    assert not os.path.exists(hooks.home.left)


def test_a_damaged_record_delays_nothing(hooks: Hooks) -> None:
    make_private_directory(hooks.home.run)
    damages = "", "[]", "{", '{"names": 5}', '{"names": [5], "again": "x"}', '{"names": [], "again": 1, "tries": 1e999}'
    for number, content in enumerate(damages, start=1):
        Path(hooks.home.left).write_text(content)
        hooks.event()
        hooks.hand_over()
        assert len(hooks.started) == number, content


def test_a_clock_set_back_delays_nothing(hooks: Hooks, clock: Clock, unwritable_index: list[str]) -> None:
    """What failed in the future is tried again now, not in a year."""
    clock.now += 365 * 86400
    unindexed.mark(hooks.home, "/project")
    hooks.hand_over()
    clock.now -= 365 * 86400
    hooks.hand_over()
    assert len(hooks.started) == 2


def test_an_event_that_failed_in_the_future_is_tried_again_now(
    hooks: Hooks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memkit import environment

    name = hooks.event()
    clock.now += 365 * 86400
    item = spool.claim(hooks.home, name, clock.now)
    assert item is not None
    spool.retry_later(hooks.home, item, "the disk was full", clock.now)
    assert spool.claim(hooks.home, name, clock.now) is None  # not yet
    # A failure to build the environment is the same.
    monkeypatch.setattr(launch, "environment_is_ready", lambda home: False)
    directory = Path(make_private_directory(environment.environments(hooks.home.root)))
    directory.joinpath("failed.json").write_text(f'{{"time": {clock.now}, "message": "no network"}}')
    assert launch.environment_failed_lately(hooks.home)
    clock.now -= 365 * 86400
    assert spool.claim(hooks.home, name, clock.now) is not None
    assert not launch.environment_failed_lately(hooks.home)


def test_a_worker_is_patient_by_its_own_clock(
    hooks: Hooks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was set back after the event, whose transcript never comes: it ends all the same."""
    transcript = Path(hooks.home.root, "none.jsonl")
    hooks.event(
        time=clock.now + 86400, project=hooks.home.root, cwd=hooks.home.root, transcript=str(transcript)
    )
    looks = []
    monotonic = [0.0]

    def pause(seconds: float) -> None:
        looks.append(seconds)
        monotonic[0] += seconds
        assert len(looks) < 1000, "it waits without end"

    own_clock = SimpleNamespace(time=time.time, sleep=pause, monotonic=lambda: monotonic[0])
    monkeypatch.setattr(worker_module, "time", own_clock)
    monkeypatch.setattr(
        "memkit.index.sync.sync_project", lambda project, home, settings, later: _indexed(home, project.root)
    )
    report = work(hooks.home, lambda project: Settings())
    assert report.failures == []
    assert report.events == 1
    assert 30 < len(looks) < 60  # two seconds


def test_a_service_that_takes_nothing_in_is_checked(
    hooks: Hooks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is stopped: it is told, since its socket takes what comes, and does nothing."""
    told = []
    started = []
    monkeypatch.setattr(launch, "start", lambda home, *arguments: started.append(arguments))
    monkeypatch.setattr(client, "notify", lambda *given: told.append(given))
    hooks.event()
    hooks.hand_over()
    assert (len(told), started) == (1, [])
    clock.now += launch.OVERDUE_SECONDS + 1
    hooks.event()
    for _ in range(5):  # it may be busy, so not each hook has it checked
        hooks.hand_over()
    assert started == [("work",)]
    clock.now += launch.CHECK_PAUSE_SECONDS + 1
    hooks.hand_over()
    assert len(started) == 2


USER = {
    "PATH": "/usr/bin", "ANTHROPIC_API_KEY": "sk-1", "CLAUDE_CONFIG_DIR": "/home/me/claude", "CLAUDE_CODE_OAUTH_TOKEN": "a-token",
    "CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
}  # fmt: skip
OF_SESSION = {
    "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ID": "6a09d84f", "CLAUDE_ENV_FILE": "/tmp/env",
    "CLAUDE_PLUGIN_ROOT": "/plugin", "CLAUDE_PROJECT_DIR": "/project",
}  # fmt: skip


def test_a_worker_is_told_what_is_the_users_and_not_what_is_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.outside_session({**USER, **OF_SESSION}) == USER
    for name, value in {**USER, **OF_SESSION, "MEMKIT_HOME": "/another"}.items():
        monkeypatch.setenv(name, value)
    environment = launch.worker_environment(Home("/home/me/.memkit"))
    assert environment.items() >= {**USER, "MEMKIT_HOME": "/home/me/.memkit"}.items()
    assert not environment.keys() & OF_SESSION.keys()


def test_a_long_worker_log_is_renamed_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(str(tmp_path / "home"))
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: None)
    launch.start(home, "work")
    log = Path(home.worker_log)
    log.write_bytes(b"a" * launch.MAX_LOG_BYTES)
    launch.start(home, "work")
    assert log.stat().st_size == launch.MAX_LOG_BYTES
    log.write_bytes(b"b" * (launch.MAX_LOG_BYTES + 1))
    launch.start(home, "work")
    assert (log.stat().st_size, log.stat().st_mode & 0o077) == (0, 0)
    assert Path(f"{log}.1").stat().st_size == launch.MAX_LOG_BYTES + 1
