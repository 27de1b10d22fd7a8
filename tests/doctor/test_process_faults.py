"""Faults of processes: a service that hangs or died, orphaned locks, and kernel limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memkit import environment
from memkit.doctor import index, open_subject, processes
from memkit.ipc import address, spool
from tests.doctor.conftest import Patient
from tests.doctor.test_event_faults import put
from tests.service.running import RunningService, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and signals of POSIX")


@pytest.fixture
def service(bare: Patient) -> Iterator[RunningService]:
    running = RunningService(bare.memory).start()
    yield running
    running.stop()


def test_a_hung_service(
    bare: Patient, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bare.findings() == []
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "START_SECONDS", 1.0)
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


def test_a_stale_socket(bare: Patient, service: RunningService) -> None:
    assert service.process is not None
    service.process.kill()
    service.process.wait()
    found = {one.what.split()[-2] for one in bare.findings() if one.code == "service-left-behind"}
    assert found == {address.socket_path(bare.home), bare.home.service_process}
    finding = next(one for one in bare.findings() if one.code == "service-left-behind")
    assert bare.fix(finding) == ["removed 2 files of a killed service"]
    assert bare.findings() == []


HOLDER = """
import sys, time
from memkit import environment
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


@contextmanager
def holding_index(bare: Patient) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that holds the index lock; kill it at the end."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, bare.home.root], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"holds\n"
        yield holder
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_dead_holder_of_the_lock(indexed: Patient) -> None:
    """A worker that was killed in the middle of its work."""
    put(indexed)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, indexed.home.root], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"holds\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    killed = indexed.finding("worker-killed")
    assert "handled 1 event" in killed.what
    assert indexed.fix(killed)
    assert not spool.unfinished(indexed.home)
    assert indexed.findings() == []
    assert "7443" in indexed.search()


@pytest.mark.skipif(not processes.LOCKS.exists(), reason="no table of locks here")
def test_a_stopped_holder_of_the_lock(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WAIT_SECONDS", 0.05)
    with holding_index(bare) as holder:
        assert "lock-stopped" not in bare.codes()
        holder.send_signal(signal.SIGSTOP)
        finding = bare.finding("lock-stopped")
        assert bare.home.index_lock in finding.what
        assert f"kill -CONT {holder.pid}" in finding.fix


PARENT = """
import fcntl, subprocess, sys, time

lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep, pass_fds=[lock.fileno()], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not processes.LOCKS.exists(), reason="no table of locks here")
def test_a_lock_that_outlives_its_holder(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of the environment, which the commands that fill it inherit."""
    path = environment.lock_file(bare.home.root)
    Path(path).parent.mkdir(mode=0o700)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, path], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        assert bare.findings() == []
        parent.kill()
        parent.wait()
        finding = bare.finding("lock-orphaned")
        assert f"process {parent.pid} locked {path} and has ended" in finding.what
        assert f"`kill {child}`" in finding.fix
        with monkeypatch.context() as patch:  # the system may hide the processes of others
            patch.setattr(processes, "_processes_with_open", lambda path: [])
            finding = bare.finding("lock-orphaned")
        assert "a child process still holds the lock" in finding.what
        assert finding.fix == "end memkit's processes"
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()
    wait_until(lambda: not bare.findings(), "the lock to be free")


LIMITED = """
import json, sys, time
from pathlib import Path
from memkit.doctor import open_subject
from memkit.doctor.processes import check_watches
from memkit.paths import Home
from memkit.projects.project import Project

subject = open_subject(Home(sys.argv[1]), Project(sys.argv[1]))
found = [[one.what for one in check_watches(subject)]]
for name in ("max_inotify_watches", "max_inotify_instances"):
    path = Path("/proc/sys/user", name)
    before = path.read_text()
    path.write_text("0")
    found.append([one.what for one in check_watches(subject)])
    path.write_text(before)
print(json.dumps(found))
"""


def test_the_limits_of_inotify(bare: Patient) -> None:
    """In a user namespace, whose limits are its own."""
    inside = ["unshare", "--user", "--map-root-user"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespaces here")
    done = subprocess.run(
        [*inside, sys.executable, "-c", LIMITED, bare.home.root],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    healthy, watched, instances = json.loads(done.stdout)
    assert healthy == []
    assert "fs.inotify.max_user_watches" in watched[0]
    assert "fs.inotify.max_user_instances" in instances[0]


def test_a_starting_service(bare: Patient) -> None:
    """It has the lock, and listens soon."""
    running = RunningService(bare.memory)
    running.process = running.spawn()
    try:
        wait_until(Path(bare.home.service_process).exists, "the service to begin")
        subject = open_subject(bare.home, bare.memory.project)
        assert not [one for one in processes.check_service(subject) if one.code == "service-hung"]
    finally:
        running.stop()


def test_a_lock_that_is_held_for_very_long(bare: Patient) -> None:
    """Only a memkit process counts: another process may have the number of a killed holder."""
    with holding_index(bare) as holder:
        subject = open_subject(bare.home, bare.memory.project)
        assert list(processes.check_long_lock(subject)) == []
        subject = replace(subject, now=subject.now + processes.LONG_SECONDS + 60)
        (finding,) = processes.check_long_lock(subject)
        assert finding.code == "lock-held-long"
        assert f"process {holder.pid} " in finding.what
        note = Path(bare.home.run, "index.holder")
        with subprocess.Popen(["sleep", "600"]) as stranger:  # not Python: a clone is mostly named memkit
            note.write_text(f"{stranger.pid} {time.time()}\n")
            assert list(processes.check_long_lock(subject)) == []
            stranger.kill()
        note.write_text(f"{holder.pid} 1000\n")
        assert list(processes.check_long_lock(subject)) == []
