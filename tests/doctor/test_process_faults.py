"""Faults of processes: a service that hangs or has another version, and locks that are held for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memkit.doctor import open_subject, processes
from memkit.ipc import spool
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
