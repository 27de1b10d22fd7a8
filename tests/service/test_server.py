"""The service as a process: one per home, up to date with the files, and gone when idle."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from memkit import Memory as FrontDoor
from memkit.doctor import open_subject
from memkit.doctor.installation import check_listening
from memkit.errors import MemkitError, NotFoundError
from memkit.ipc import launch, spool, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from tests.builders import spool_turn
from tests.ci import first, only_in_ci, sized
from tests.memory import Memory
from tests.service.running import RunningService, wait_until


def test_it_answers_as_the_command_line_does_alone(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = shared.memkit("search", "--json", "--all", "which port")
    assert shared.status()["projects"] == {shared.memory.project.root: 6}
    name = json.loads(expected.stdout)["results"][0]["id"]
    through = shared.json("expand", name)
    monkeypatch.setitem(shared.environment, "MEMKIT_SERVICE_ENABLED", "false")
    alone = shared.memkit("search", "--json", "--all", "which port")
    one, other = json.loads(expected.stdout), json.loads(alone.stdout)
    assert one.pop("took_ms") != other.pop("took_ms")
    assert one == other
    assert len(one["results"]) == 5
    assert shared.json("expand", name) == through
    assert "7443" in through["sections"][0]["content"]


def test_it_answers_questions_about_time(shared: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    def settled(query: str) -> dict[str, Any]:
        # A job may have just changed a file; then a search says that its index is being updated.
        return wait_until(lambda: (found := shared.json("search", query)) and not found["degraded"] and found, "rest")

    for query in ("what did we do on 2026-11-19", "which port on 2026-11-18", "which port on 2026-11-20", "what is left open"):
        through = settled(query)
        with monkeypatch.context() as patch:
            patch.setitem(shared.environment, "MEMKIT_SERVICE_ENABLED", "false")
            alone = settled(query)
        assert through.pop("took_ms") != alone.pop("took_ms")
        assert through == alone
    asked = {"query": "what did we do yesterday", "today": "2026-11-20"}
    answer = shared.ask("search", request=asked, search={})
    assert answer["period"] == {"since": "2026-11-19", "until": "2026-11-19", "text": "yesterday"}
    assert [one["session"] for one in answer["overview"]["sessions"]] == ["5e550002"]


def test_a_second_service_exits_and_events_are_captured(shared: RunningService) -> None:
    second = shared.spawn()
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 0
    assert b"the service is already running" in errors
    assert shared.status()["pid"] == shared.process.pid
    home, root = shared.memory.home, shared.memory.project.root
    spool_turn(home, root, "The lion, most of the time.")
    assert launch.hand_over(home, with_service=True) is False  # told, not started
    wait_until(lambda: not launch.waiting_names(home), "the events to be taken in")
    assert "The lion" in shared.found("zebra")[0]


def test_a_killed_service_is_replaced(service: RunningService) -> None:
    service.process.kill()
    service.process.wait()
    assert Path(service.memory.home.service_socket).exists()  # stale
    with pytest.raises(ServiceUnavailable) as absent:
        service.ask("status")
    assert absent.value.reason == "absent"
    # A search answers all the same, and starts the next one.
    done = service.memkit("search", "which port")
    assert "7443" in done.stdout
    status = wait_until(service.status, "the next service")
    assert status["pid"] != service.process.pid
    service.ask("drain")
    wait_until(lambda: not launch.service_is_running(service.memory.home), "it to end")


def test_it_exits_on_a_signal(service: RunningService) -> None:
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(timeout=30) == 0
    assert not Path(service.memory.home.service_socket).exists()
    assert not launch.service_is_running(service.memory.home)


def test_an_edit_is_found(shared: RunningService) -> None:
    path = shared.memory.path("notes.md")
    for number, replace in enumerate(first(1, [True, False])):
        word = f"quagga{number}"
        text = f"# Notes\n\nAbout the {word}.\n"
        if replace:  # as editors save
            temporary = path.with_name(".notes.md.swp")
            temporary.write_text(text)
            os.replace(temporary, path)
        else:
            path.write_text(text)
        wait_until(lambda word=word: word in shared.found(word)[0], f"{word} to be found")
    path.unlink()
    wait_until(lambda: not any("quagga" in text for text in shared.found("quagga")), "it to go")


@only_in_ci
def test_it_lives_as_long_as_a_session(memory: Memory) -> None:
    from memkit.ipc import spool

    client = subprocess.Popen(["sleep", "600"])
    service = RunningService(memory, MEMKIT_SERVICE_IDLE_MINUTES="0.01")
    root = memory.project.root
    start = {"session": "5e55bbbb", "project": root, "cwd": root, "time": 1e9, "client": client.pid}
    Path(memory.home.root).mkdir(exist_ok=True)
    spool.put(memory.home, {**start, "event": "SessionStart"})
    try:
        service.process = service.spawn()
        live = Path(memory.home.live)
        wait_until(lambda: any(live.glob("*.json")), "the session to be known")
        # Each look at it counts as a request, so only its end is waited for, below.
        status = wait_until(service.status, "it to answer")
        assert [one["session"] for one in status["sessions"]] == ["5e55bbbb"]
        with pytest.raises(subprocess.TimeoutExpired):
            service.process.wait(timeout=2)  # several times the idle time
        client.kill()
        client.wait()
        assert service.process.wait(timeout=60) == 0
        assert not any(live.glob("*.json"))
    finally:
        client.kill()
        client.wait()
        service.stop()


def test_a_hung_service_is_killed(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(stop, "TERM_SECONDS", 0.5)
    service.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(ServiceUnavailable) as late:
            request(service.memory.home, "status", {}, 0.2)
        assert late.value.reason == "late"
        with contextlib.suppress(MemkitError):  # until the test has waited, the process is a zombie
            stop.stop(service.memory.home)
        assert service.process.wait(timeout=30) == -signal.SIGKILL
    finally:
        service.process.kill()


def test_a_client_with_other_settings_searches_by_itself(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranking goes along with the request. With another index or model, the client searches by itself."""
    with pytest.raises(RequestRefused) as refused:
        shared.ask("search", index="another", request={"query": "x"}, search={})
    assert refused.value.kind == "elsewhere"
    assert shared.json("--set", "search.best_relevance=1", "search", "which port")["results"] == []
    assert shared.json("search", "which port")["results"]
    monkeypatch.setitem(shared.environment, "MEMKIT_EMBEDDING_PROVIDER", "none")
    assert "7443" in shared.memkit("search", "which port").stdout


def test_nonsense_is_refused(shared: RunningService) -> None:
    for operation, arguments in (
        ("nothing", {}), ("search", {}), ("search", {"request": 5, "search": {}}), ("expand", {}),
    ):  # fmt: skip
        with pytest.raises(RequestRefused):
            shared.ask(operation, **arguments)
    # Errors keep their type.
    memory = FrontDoor(shared.memory.project, home=shared.memory.home)
    for find in (memory.show, memory.expand):
        with pytest.raises(NotFoundError, match="ffffffff"):
            find("ffffffff")
    assert shared.status()


def test_no_descriptors_or_threads_leak(shared: RunningService) -> None:
    assert shared.process is not None
    shared.found("port")
    shared.json("index")  # opens the writer's index, as a due job may do between two searches
    process = psutil.Process(shared.process.pid)
    before = process.num_fds(), process.num_threads()
    for number in range(sized(30, 30, 100)):
        shared.found(f"port {number}")
    # A job that is due may hold some for a moment; a leak stays.
    wait_until(lambda: process.num_fds() <= before[0] + 5, "descriptors to close")
    wait_until(lambda: process.num_threads() <= before[1] + 3, "threads to end")
    assert not any("torch" in map_.path for map_ in process.memory_maps())


def test_service_commands(memory: Memory) -> None:
    service = RunningService(memory)
    try:
        not_running = "The service is not running.\n"
        assert service.memkit("service").stdout == not_running
        assert service.memkit("service", "stop").stdout == "No service was running.\n"
        assert service.json("service", "stop") == {
            "running": False, "answers": False, "reason": "the service is not running",
        }  # fmt: skip
        first = service.json("service", "start")
        assert first["answers"]
        assert service.json("service", "start")["pid"] == first["pid"]
        second = service.json("service", "restart")
        assert second["pid"] != first["pid"]
        assert "live session" in service.memkit("service", "status").stdout
        assert "listens" in service.memkit("service", "logs").stdout
        assert service.json("index")["chunks"] == 6
        assert service.json("work", "--wait")["busy"] is False
        assert service.json("status")["service"] == {"enabled": True, "running": True}
    finally:
        done = service.memkit("service", "stop")
    assert done.stdout == "The service has stopped.\n"


def test_an_older_version_uses_the_newer_ones_service(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions do not stop each other's service in turn: many turns, one process."""
    assert service.process is not None
    for turn in range(sized(4, 6, 16)):
        with monkeypatch.context() as older:
            if turn % 2:
                older.setattr("memkit.ipc.client.__version__", "0.0.9")
            service.ask("work")
            assert service.found("port")
    assert service.status()["pid"] == service.process.pid
    # A newer one ends it, for its own.
    monkeypatch.setattr("memkit.ipc.client.__version__", "99.0")
    with pytest.raises(ServiceUnavailable) as refused:
        service.ask("work")
    assert refused.value.reason == "version"
    assert service.process.wait(timeout=60) == 0


def test_it_marks_what_has_changed_in_git(service: RunningService) -> None:
    """The service asks git, from the place of whoever asks: it has imported what that takes."""
    root = Path(service.memory.project.root)
    day = Path(service.memory.project.memory, "2026-11-21.md")
    day.write_text("# 2026-11-21\n\n## 09:00 Which color do the sails have? <!-- session:5e550009 turn:5eed0009 branch:side -->\n**Answered** The sails of the ships are red.\n")
    repository = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*repository, "init", "-qb", "trunk"], check=True)
    subprocess.run([*repository, "commit", "-qm", "start", "--allow-empty"], check=True)

    def marks() -> dict[str, str]:
        answer = service.json("search", "--all", "which color do the sails have")
        return {one["id"]: one["git"]["line"] for one in answer["results"] if "git" in one}

    assert wait_until(marks, "the new day") == {"5eed0009": "branch side is gone"}
    assert service.json("expand", "5eed0009")["sections"][0]["git"]["gone_branch"] == "side"


def test_a_crash_is_in_the_log(service: RunningService) -> None:
    wait_until(lambda: service.status().get("queue") == 0, "it to rest")  # else the stack may be half changed
    service.process.send_signal(signal.SIGSEGV)
    service.process.wait(60)
    log = Path(service.memory.home.log_file).read_text()
    assert "Fatal Python error: Segmentation fault" in log
    assert "memkit/service/" in log


# A service that cannot listen: its work is still done, and the doctor says why


SCRIPT = """
import errno, sys
from memkit import cli
from memkit.ipc import address

def refuse(home):
    raise OSError(errno.EOPNOTSUPP, "Operation not supported", home.service_socket)

if {fails}:
    address.listen = refuse
sys.argv = ["memkit", "service", "run"]
cli.main()
"""


@pytest.fixture
def silent(memory: Memory) -> Iterator[RunningService]:
    yield RunningService(memory)


def run_service(silent: RunningService, fails: bool) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(fails=fails)],
        env={**silent.environment, "MEMKIT_SERVICE_IDLE_MINUTES": "0"}, cwd=silent.memory.project.root,
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stderr


def test_waiting_events_are_captured(silent: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    home, root = silent.memory.home, silent.memory.project.root
    turn = {"session": "5e55aaaa", "prompt_id": "p1", "project": root, "cwd": root, "time": 1e9}
    spool_turn(home, root, "The lion eats a zebra.")
    said = run_service(silent, fails=True)
    assert "Operation not supported" in said and "working without a service" in said
    assert "Traceback" not in said
    assert not launch.waiting_names(home)
    assert any("The lion" in path.read_text() for path in Path(root, ".memkit/memory").glob("*.md"))
    # The doctor names the cause, and hooks start workers instead for a while.
    (finding,) = check_listening(open_subject(home, silent.memory.project))
    assert "Operation not supported" in finding.what
    assert home.service_socket in finding.what
    started = []
    monkeypatch.setattr(launch, "start", lambda home, *arguments: started.append(arguments))
    monkeypatch.setenv("MEMKIT_PYTHON", "/usr/bin/true")
    spool.put(home, {**turn, "event": "SessionEnd"})
    launch.hand_over(home, with_service=True)
    launch.start_service(home)
    assert started == [("work",)]
    # When it can listen again, all of that ends.
    run_service(silent, fails=False)
    assert not os.path.exists(home.service_problem)
    assert not list(check_listening(open_subject(home, silent.memory.project)))
