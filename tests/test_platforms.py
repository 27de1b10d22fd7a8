"""What memkit does on Windows, through stand-ins for what Linux lacks or has."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from memkit import files, paths, processes
from memkit.archive.archive import Archive
from memkit.doctor import Subject, installation
from memkit.environment import install
from memkit.ipc import launch
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.service import server
from memkit.settings import Settings

NO_WINDOW, NEW_GROUP, DETACHED = 0x08000000, 0x00000200, 0x00000008


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")


class Child:
    """A process that runs until it is killed."""

    pid = 4711

    def __init__(self, status: int | None = None) -> None:
        self.status, self.was_killed = status, False

    def poll(self) -> int | None:
        return self.status

    def kill(self) -> None:
        self.was_killed = True

    def wait(self) -> int:
        return self.status or 1


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, object]]]:
    """The commands that were run, with their options; none is."""
    found: list[tuple[list[str], dict[str, object]]] = []

    def note(command: list[str], **options: object) -> SimpleNamespace:
        found.append((command, options))
        return SimpleNamespace(stdout=b"C:\\Python312\\python.exe\r\n", returncode=0)

    monkeypatch.setattr(subprocess, "run", note)
    monkeypatch.setattr(subprocess, "Popen", note)
    return found


def test_a_worker_has_neither_window_nor_console_of_the_session(ran, tmp_path, monkeypatch):
    launch.start(Home(str(tmp_path)), "work")
    assert ran[0][1]["start_new_session"] is True and "creationflags" not in ran[0][1]
    monkeypatch.setattr(sys, "platform", "win32")
    launch.start(Home(str(tmp_path)), "work")
    command, options = ran[1]
    assert command[-1] == "work"
    assert options["creationflags"] == NO_WINDOW | NEW_GROUP
    assert "start_new_session" not in options
    # Detached, each program it runs would open a window.
    assert not int(str(options["creationflags"])) & DETACHED


def test_a_group_is_killed_with_its_children_without_killpg(windows, ran, monkeypatch):
    monkeypatch.delattr(os, "killpg")
    processes.kill_group(Child(status=0))  # type: ignore[arg-type]
    assert not ran  # the number of a process that has ended is not used
    child = Child()
    processes.kill_group(child)  # type: ignore[arg-type]
    taskkill = "C:\\Windows\\System32\\taskkill.exe"
    assert ran[0][0] == [taskkill, "/F", "/T", "/PID", "4711"]
    assert child.was_killed

    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", missing)
    child = Child()
    processes.kill_group(child)  # type: ignore[arg-type]
    assert child.was_killed


class Msvcrt:
    """Locks of one byte of one file, as Windows' C runtime has them."""

    LK_NBLCK = 2

    def __init__(self, number: int = 0) -> None:
        self.number, self.at = number, -1

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        self.at = os.lseek(descriptor, 0, os.SEEK_CUR)
        if self.number:
            raise OSError(self.number, "as told")


@pytest.mark.parametrize(("number", "is_held"), [(0, False), (errno.EACCES, True), (errno.EIO, True)])
def test_a_lock_is_seen_without_flock(windows, monkeypatch, tmp_path, number, is_held):
    msvcrt = Msvcrt(number)
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    lock = tmp_path / "service.lock"
    lock.write_text("4711")
    assert processes.is_locked(str(lock)) is is_held
    assert msvcrt.at == 0  # the byte that filelock locks
    assert not processes.is_locked(str(tmp_path / "absent"))


def test_a_lock_that_cannot_be_taken_for_another_reason_is_an_error(windows, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt(errno.EIO))
    with open(tmp_path / "lock", "wb") as file, pytest.raises(OSError, match="as told"):
        processes.try_lock(file.fileno())


def test_the_service_ends_on_signals_where_loops_have_no_handlers():
    caught = []

    class Loop:
        def add_signal_handler(self, number: int, call: object) -> None:
            raise NotImplementedError

        def call_soon_threadsafe(self, call: object) -> None:
            caught.append(call)

    def end() -> None: ...

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server._call_on_signals(Loop(), end)  # type: ignore[arg-type]
        for number in before:
            signal.raise_signal(number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert caught == [end, end]


def refusing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Refuse to replace files so often; the list grows with every try."""
    tries: list[int] = []
    replace = os.replace

    def refuse(made: str, path: str) -> None:
        tries.append(1)
        if len(tries) <= times:
            raise PermissionError(errno.EACCES, "used by another process", path)
        replace(made, path)

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    return tries


def test_a_file_that_is_being_read_is_replaced_when_that_has_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "READERS_BLOCK", True)
    tries = refusing(monkeypatch, 3)
    files.write_durably(str(tmp_path / "file"), b"new")
    assert len(tries) == 4
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize(("may_block", "seconds"), [(False, 2.0), (True, -1.0)])
def test_a_file_that_cannot_be_replaced_is_reported(monkeypatch, tmp_path, may_block, seconds):
    monkeypatch.setattr(files, "READERS_BLOCK", may_block)
    monkeypatch.setattr(files, "BUSY_SECONDS", seconds)
    tries = refusing(monkeypatch, 10)
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(PermissionError):
        files.write_durably(str(tmp_path / "file"), b"new")
    assert len(tries) == 1
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_no_foreign_name_is_invalid_on_windows(tmp_path):
    archive = Archive(Home(str(tmp_path)))
    for session in ("CON", "nul", "com1", "a:b", "a.", "a b", "../a", "a\\b", "?"):
        name = archive.path(session).name
        assert paths.is_plain_name(name.partition(".")[0].lstrip("_"))
        assert session.lower() not in name.lower()
    for session in ("console", "com", "0f8fad5b-d9cb-469f-a165-70867728950e"):
        assert archive.path(session).name.startswith(session)


def test_the_launcher_of_windows_finds_a_python(windows, ran, monkeypatch):
    known = {"python": "C:\\python.exe", "py": "C:\\Windows\\py.exe"}
    monkeypatch.setattr(install, "find_program", lambda name: known.get(name))
    assert list(install._candidates()) == [sys.executable, "C:\\python.exe", "C:\\Python312\\python.exe"]
    [(command, options)] = ran
    assert command[:2] == ["C:\\Windows\\py.exe", "-3"]
    assert options["creationflags"] == NO_WINDOW


def test_the_doctor_says_where_windows_has_a_python3(windows, monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "find_program", lambda name: None)
    subject = Subject(Home(str(tmp_path)), Project(str(tmp_path)), 0.0, Settings())
    [finding] = installation.check_hook_python(subject)
    assert finding.code == "python-missing" and "Microsoft Store" in finding.fix
    monkeypatch.setenv("TEMP", str(tmp_path))  # temporary files are nobody's project
    home = Home(str(tmp_path / "home"))
    assert Project.remembering(str(tmp_path), home).root.startswith(home.projects)
