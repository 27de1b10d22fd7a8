"""Faults of the files in the home, and of the clock."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from memkit.doctor import home, open_subject
from memkit.ipc import spool
from memkit.paths import Home
from memkit.projects.project import registry_path
from tests.doctor.conftest import Mount, Patient


def in_mounted_home(patient: Patient, place: Path) -> None:
    """Move the patient's home to another file system."""
    place.chmod(0o700)
    shutil.copytree(patient.home.root, place, symlinks=True, dirs_exist_ok=True)
    patient.memory.home = Home(str(place))


def test_a_full_disk(bare: Patient, mount: Mount) -> None:
    in_mounted_home(bare, mount("size=1m"))
    with (
        pytest.raises(OSError, match="No space"),
        Path(bare.home.root, "config.toml").open("wb") as file,
    ):
        file.write(b"#" * 2_000_000)
    finding = bare.finding("disk-full")
    assert finding.level == "error"
    assert bare.home.root in finding.what
    assert "0 MB left" in finding.what


@pytest.mark.parametrize(
    ("free", "codes"), [(10**6, ["disk-full"]), (10**8, ["disk-low"]), (10**9, [])]
)
def test_low_disk_space(
    bare: Patient, monkeypatch: pytest.MonkeyPatch, free: int, codes: list[str]
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(10**10, 0, free))  # type: ignore[attr-defined]
    assert sorted(set(bare.codes())) == codes


def test_a_read_only_home(bare: Patient, mount: Mount) -> None:
    place = mount("size=600m")
    in_mounted_home(bare, place)
    assert bare.findings() == []
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True, capture_output=True)
    finding = bare.finding("read-only")
    assert finding.level == "error"
    assert str(place) in finding.what
    assert "mount" in finding.fix


def test_a_home_that_others_can_read(bare: Patient) -> None:
    Path(bare.home.sessions).chmod(0o755)
    finding = bare.finding("open-to-others")
    assert bare.home.sessions in finding.what
    assert bare.fix(finding) == ["closed 1 file to other users"]
    assert Path(bare.home.sessions).stat().st_mode & 0o777 == 0o700
    assert bare.findings() == []


def test_an_index_that_others_can_read(indexed: Patient) -> None:
    (database,) = Path(indexed.home.index, "chroma").glob("*/chroma.sqlite3")
    database.chmod(0o644)
    finding = indexed.finding("open-to-others")
    assert str(database) in finding.what
    assert indexed.fix(finding) == ["closed 1 file to other users"]
    assert database.stat().st_mode & 0o777 == 0o600
    assert indexed.findings() == []


def test_a_clock_in_the_past(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now - 400 * 86400)
    finding = bare.finding("clock-behind")
    assert finding.level == "error"
    assert time.strftime("%Y-", time.localtime(now - 400 * 86400)) in finding.what


def test_an_event_from_the_future(bare: Patient) -> None:
    spool.put(bare.home, {"event": "UserPromptSubmit", "session": "s", "time": time.time() + 10**6})
    found = list(home.check_clock(open_subject(bare.home, bare.memory.project)))
    assert "a waiting event" in found[0].what


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ('{"version": 2}', "written by a newer memkit", "update memkit"),
        ("{", "is damaged", "restore it from a backup, or move it away, which loses links and names of projects, but no memory"),
    ],
)
def test_a_registry_of_projects_that_cannot_be_read(bare: Patient, text: str, said: str, fix: str) -> None:
    path = Path(registry_path(bare.home))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    finding = bare.finding("registry-unreadable")
    assert said in finding.what
    assert (finding.level, finding.fix) == ("warning", fix)
    assert path.read_text() == text
    path.unlink()
    assert "registry-unreadable" not in bare.codes()


@pytest.mark.parametrize(("text", "fix"), [('{"version": 2}', "update memkit"), ("[]", "restore it from a backup")])
def test_what_was_forgotten_cannot_be_read(bare: Patient, text: str, fix: str) -> None:
    Path(bare.home.forgotten).write_text(text)
    finding = bare.finding("forgotten-unreadable")
    assert finding.level == "error"
    assert finding.fix.startswith(fix)
