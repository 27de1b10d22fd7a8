"""Hung services, and services whose home is gone: no command waits for them, no other process is harmed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from memkit.index import index_lock
from memkit.ipc import client, launch, spool, stop, unindexed
from memkit.ipc.client import ServiceUnavailable, request
from memkit.paths import Home
from memkit.processes import is_locked
from tests.builders import spool_turn
from tests.ci import T, first, only_in_ci, sized
from tests.cli.conftest import Outcome, Run, clean_environment, run
from tests.memory import DAYS, Memory, make_memory
from tests.service.running import REPOSITORY, RunningService, wait_until

__all__ = ["clean_environment", "run"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """A memory without vectors: no process has to load the model."""
    memory = make_memory(tmp_path, DAYS)
    Path(memory.home.root).mkdir()
    Path(memory.home.config_file).write_text('[embedding]\nprovider = "none"\n')
    return memory


Command = Callable[..., Outcome]


def some(cases: list[T]) -> list[T]:
    """Each case needs two services: try one for a commit, two in CI, and all at night."""
    return sized(cases[:1], cases[:2], cases)


@pytest.fixture
def command(run: Run, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process, impatient with a service that does not answer."""
    monkeypatch.setattr(client, "PING_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(client.is_alive, "__defaults__", (0.2,))

    def run_impatiently(service: RunningService, *arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.delenv("MEMKIT_SERVICE_ENABLED", raising=False)
        for name in ("MEMKIT_PYTHON", "PYTHONPATH", "CLAUDE_CONFIG_DIR"):
            monkeypatch.setenv(name, service.environment[name])
        return run(service.memory, *arguments, stdin=stdin)

    return run_impatiently


@pytest.fixture
def stopped(service: RunningService) -> Iterator[RunningService]:
    """A warm service, stopped by SIGSTOP in the middle of a pass."""
    stop_with_the_lock(service)
    yield service
    end_successor(service)


def stop_with_the_lock(service: RunningService) -> subprocess.Popen[bytes]:
    service.found("port")
    process = psutil.Process(service.process.pid)
    lock = service.memory.home.index_lock

    def ask() -> None:
        with contextlib.suppress(Exception):  # nobody answers if it is stopped
            service.ask("index")

    for number in itertools.count():  # until the signal meets a pass
        parts = (f"# Part {part}\n\n" + f"Words of try {number}. " * 30 for part in range(40))
        service.memory.write(f"{number}.md", "\n\n".join(parts))
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        wait_until(lambda asking=asking: is_locked(lock) or not asking.is_alive(), "a pass")
        process.suspend()
        wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it to be stopped")
        if is_locked(lock):
            break
        process.resume()
    return service.process


def end_successor(service: RunningService) -> None:
    """Kill the service that a command started in its place, even one that has no lock yet."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # ended, or of another user
            if process.environ().get("MEMKIT_HOME") == service.memory.home.root and process.pid != os.getpid():
                process.kill()
                process.wait(60)


class Ending:
    """A service that does not answer, and exits when it is asked to by a signal."""

    pid = 7

    def __init__(self) -> None:
        self.signals: list[str] = []

    def terminate(self) -> None:
        self.signals.append("terminate")

    def kill(self) -> None:
        self.signals.append("kill")


def test_a_service_that_exits_on_sigterm_is_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Ending()
    monkeypatch.setattr(stop, "_service_process", lambda home: process)
    monkeypatch.setattr(launch, "service_is_running", lambda home: not process.signals)
    stop.stop(Home(str(tmp_path)))
    assert process.signals == ["terminate"]


def test_a_search_kills_it_and_continues_alone(stopped: RunningService, command: Command) -> None:
    assert stopped.process is not None
    done = command(stopped, "search", "which port")
    assert "7443" in done.output
    said = f"memkit: the service, process {stopped.process.pid}, hung; killed it and continued without it\n"
    assert done.errors.count(said) == 1
    assert stopped.process.wait(timeout=60) == -signal.SIGKILL
    assert "hung" not in command(stopped, "search", "which port").errors


@pytest.mark.parametrize(
    "arguments",
    some([("remember", "A quagga is a zebra."), ("index",), ("work", "--wait"), ("jobs", "run", "retry")]),
)
def test_commands_do_not_wait_for_its_lock(
    stopped: RunningService, command: Command, arguments: tuple[str, ...]
) -> None:
    done = command(stopped, *arguments)
    assert done.status == 0, done.errors
    if arguments[0] == "remember":  # durable, and searched for below
        assert "quagga" in command(stopped, "search", "--all", "quagga").output
    assert stopped.process.wait(timeout=60) == -signal.SIGKILL


def test_whoever_waits_for_its_lock_kills_it(stopped: RunningService) -> None:
    """As `memkit summarize` and `memkit compact` do when they index what they wrote."""
    said: list[str] = []
    with index_lock(stopped.memory.home, 60.0, said.append):
        pass
    assert stopped.process.wait(timeout=60) == -signal.SIGKILL
    assert len(said) == 1 and "hung; killed it" in said[0]


@pytest.mark.parametrize(
    "words", some(["restore FILE --yes", "forget --since 2026-11-18 --yes", "audit --fix", "index --rebuild"])
)
def test_commands_that_take_the_lock_themselves_kill_it(
    service: RunningService, tmp_path: Path, command: Command, words: str
) -> None:
    file = str(tmp_path / "memkit.tar.zst")
    if words.startswith("restore"):
        assert command(service, "backup", file).status == 0
    process = stop_with_the_lock(service)
    done = command(service, *words.replace("FILE", file).split())
    assert done.status == 0, done.errors
    said = f"the service, process {process.pid}, hung; killed it"
    assert done.errors.count(said) == 1
    assert "waiting for another" not in done.errors
    assert process.wait(timeout=60) == -signal.SIGKILL
    end_successor(service)


def test_recall_reports_it(stopped: RunningService, command: Command) -> None:
    done = command(stopped, "recall", "--stdin", stdin=b"which port")
    assert "7443" in done.output
    assert "hung; killed it" in done.errors
    wait_until(stopped.status, "the service that was started in its place")


def test_a_note_does_not_wait_for_whoever_holds_the_index(memory: Memory, run: Run) -> None:
    with index_lock(memory.home, 5.0):
        done = run(memory, "remember", "A quagga is a zebra.")
        assert done.status == 0, done.errors
        assert "Remembered as" in done.output
        assert unindexed.roots(memory.home) == [memory.project.root]
    assert "quagga" in run(memory, "search", "--all", "quagga").output


@only_in_ci  # two services, and a process that waits for the hung one
def test_events_are_captured_without_it(stopped: RunningService) -> None:
    """Hooks notice by the event that nobody takes in, and start what ends the hung service."""
    home, root = stopped.memory.home, stopped.memory.project.root
    spool_turn(home, root, "The lion eats a zebra.")
    (name,) = spool.waiting(home)
    new = Path(home.spool, "new")
    os.rename(new / name, new / f"{10**18:020d}-1-aaaaaaaa-Stop.json")  # of long ago
    session = {"session_id": "5e55bbbb", "cwd": root, "source": "startup"}
    subprocess.run(
        [sys.executable, str(REPOSITORY / "hooks" / "session_start.py")],
        input=str(session).replace("'", '"').encode(), env=stopped.environment, check=True,
        capture_output=True,
    )  # fmt: skip
    wait_until(lambda: not launch.waiting_names(home), "the events to be taken in")
    assert any("The lion" in path.read_text() for path in Path(root, ".memkit/memory").glob("*.md"))


def test_only_a_service_of_this_home_is_killed(memory: Memory, tmp_path: Path) -> None:
    """The recorded id may be another's by now, even another service's."""
    home = memory.home
    Path(home.run).mkdir()
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    others = [
        subprocess.Popen(words),
        subprocess.Popen([*words, "memkit", "service", "run"], env={"MEMKIT_HOME": str(tmp_path)}),
    ]
    with open(home.service_lock, "w") as lock:
        fcntl = pytest.importorskip("fcntl")
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            for other in others:
                other.send_signal(signal.SIGSTOP)
                Path(home.service_process).write_text(str(other.pid))
                assert not stop.kill_if_hung(home)
                with pytest.raises(Exception, match="its process is unknown"):
                    stop.stop(home)
                assert other.poll() is None
        finally:
            for other in others:
                other.kill()
                other.wait()


def test_a_busy_service_is_not_killed(shared: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not stop.kill_if_hung(shared.memory.home)
    # Neither is one that gives no sign but works.
    monkeypatch.setattr(stop, "is_alive", lambda home, seconds: False)
    worked = iter(range(10))
    monkeypatch.setattr(stop, "_cpu_seconds", lambda process: next(worked))
    assert not stop.kill_if_hung(shared.memory.home)
    assert shared.status()


@pytest.mark.parametrize("change", first(1, ["replaced", "removed"]))
def test_it_exits_when_its_home_is_gone(memory: Memory, change: str) -> None:
    """And leaves alone what stands in its place: the socket of the next service."""
    home = memory.home
    kept = Path(home.root).with_name("kept")
    service = RunningService(memory, MEMKIT_SERVICE_IDLE_MINUTES="0.05").start()
    session = subprocess.Popen(["sleep", "600"])  # keeps it from being idle
    successor = RunningService(memory)
    try:
        assert service.process is not None
        service.ask("work", wait=True)
        root = memory.project.root
        record = {"event": "SessionStart", "session": "s", "project": root, "cwd": root, "time": 1e9}
        spool.put(home, {**record, "client": session.pid})
        service.ask("work", wait=True)
        shutil.move(home.root, kept)
        if change == "replaced":
            Path(home.root).mkdir(mode=0o700)
            successor.start()
        assert service.process.wait(timeout=60) == 0
        if change == "replaced":
            assert successor.status()["pid"] == successor.process.pid
    finally:
        session.kill()
        session.wait()
        service.stop()
        successor.stop()


@pytest.mark.parametrize("how", first(1, ["SIGTERM", "drain"]))
def test_a_stopped_service_starts_no_other(service: RunningService, how: str, tmp_path: Path) -> None:
    """Though an event waits for its time."""
    home, root = service.memory.home, service.memory.project.root
    record = {"event": "Stop", "session": "s", "project": root, "cwd": root, "time": 1e9}
    other = Home(str(tmp_path / "other"))  # the service would claim the event first
    name = spool.put(other, record)
    item = spool.claim(other, name, 2e9)
    assert item is not None
    spool.retry_later(other, item, "the disk was full", time.time())
    waiting = Path(home.spool, "new")
    waiting.mkdir(parents=True, exist_ok=True)
    Path(other.spool, "new", name).rename(waiting / name)
    assert service.process is not None
    log = Path(home.log, "memkit.log")
    if how == "drain":
        request(home, "drain", {}, 5.0)
    else:
        service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(timeout=60) == 0
    assert spool.waiting(home) == [name]
    # Whatever it started would have been started before its end.
    assert not [p for p in psutil.process_iter(["environ"]) if _is_of(p, home.root)]
    assert log.read_text().count("listens") == 1
    with pytest.raises(ServiceUnavailable):
        request(home, "status", {}, 1.0)


@only_in_ci
def test_a_service_without_idle_time_is_not_started_again_and_again(memory: Memory, tmp_path: Path) -> None:
    """Hooks, services, and workers as whole processes; the index cannot be written."""
    home, root = memory.home, memory.project.root
    Path(home.root, "config.toml").write_text("[service]\nidle_minutes = 0\n")
    Path(home.index).write_text("no directory")
    starts = tmp_path / "starts"
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho "$@" >> {starts}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    environment = {**RunningService(memory).environment, "MEMKIT_PYTHON": str(program)}
    unindexed.mark(home, root)
    event = json.dumps({"session_id": "5e55bbbb", "cwd": root, "source": "startup"})
    hooks = sized(4, 4, 8)
    for _ in range(hooks):
        words = [sys.executable, str(REPOSITORY / "hooks" / "pre_compact.py")]
        subprocess.run(words, input=event.encode(), env=environment, check=True, capture_output=True)
        # Until all that it started, and what that started, has ended.
        wait_until(
            lambda: not [p for p in psutil.process_iter(["environ"]) if _is_of(p, home.root)],
            "the started processes to end",
        )
    lines = starts.read_text().splitlines()
    begun = [line for line in lines if "service" in line or "work" in line]
    assert begun
    # Each hook has a new event, so it may start one process; none of these has a successor.
    assert len(begun) <= hooks, lines
    assert unindexed.roots(home) == [root]
    assert not launch.hand_over(home, with_service=True)  # nothing is new, and the back-off holds
    assert starts.read_text().splitlines() == lines


def _is_of(process: psutil.Process, root: str) -> bool:
    found = process.info["environ"] or {}
    if not found:
        # A process has no variables for an instant after it was started: it may be one of this home.
        try:
            is_new = time.time() - process.create_time() < 1
            return is_new and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
    return found.get("MEMKIT_HOME") == root and process.pid != os.getpid()
