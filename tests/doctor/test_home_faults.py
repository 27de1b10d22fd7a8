"""Faults of the files in the home, of the clock, of settings, and several versions of memkit."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import memkit
from memkit.doctor import Finding, home, installation, open_subject
from memkit.doctor.checks import apply_fixes
from memkit.errors import ConfigError
from memkit.ipc import spool
from memkit.paths import Home
from memkit.processes import find_program
from memkit.projects.project import registry_path
from memkit.settings import EmbeddingSettings, Settings
from tests.doctor.conftest import DAY_FILE, DAY_TEXT, Mount, Patient, write_json
from tests.memory import FakeEmbedder


def in_mounted_home(patient: Patient, place: Path) -> None:
    """Move the patient's home to another file system."""
    place.chmod(0o700)
    shutil.copytree(patient.home.root, place, symlinks=True, dirs_exist_ok=True)
    patient.memory.home = Home(str(place))


def test_a_full_disk(bare: Patient, mount: Mount) -> None:
    in_mounted_home(bare, mount("size=1m"))
    with (pytest.raises(OSError, match="No space"), Path(bare.home.root, "config.toml").open("wb") as file):
        file.write(b"#" * 2_000_000)
    finding = bare.finding("disk-full")
    assert finding.level == "error"
    assert bare.home.root in finding.what
    assert "0 MB left" in finding.what


def test_low_disk_space(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, codes in ((10**6, ["disk-full"]), (10**8, ["disk-low"]), (10**9, [])):
        monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(10**10, 0, free))  # type: ignore[attr-defined] # noqa: B023
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


def test_files_that_others_can_read(indexed: Patient) -> None:
    (database,) = Path(indexed.home.index, "chroma").glob("*/chroma.sqlite3")
    for path, mode in ((database, 0o600), (Path(indexed.home.sessions), 0o700)):
        path.chmod(mode | 0o044)
        finding = indexed.finding("open-to-others")
        assert str(path) in finding.what
        assert indexed.fix(finding) == ["closed 1 file to other users"]
        assert path.stat().st_mode & 0o777 == mode
    assert indexed.findings() == []


def test_a_clock_in_the_past(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    name = spool.put(bare.home, {"event": "UserPromptSubmit", "session": "s", "time": now + 10**6})
    found = list(home.check_clock(open_subject(bare.home, bare.memory.project)))
    assert "a waiting event" in found[0].what
    Path(bare.home.spool, "new", name).unlink()
    monkeypatch.setattr("time.time", lambda: now - 400 * 86400)
    finding = bare.finding("clock-behind")
    assert finding.level == "error"
    assert time.strftime("%Y-", time.localtime(now - 400 * 86400)) in finding.what


def test_a_registry_or_tombstones_that_cannot_be_read(bare: Patient) -> None:
    path = Path(registry_path(bare.home))
    path.parent.mkdir(parents=True, exist_ok=True)
    lost = "restore it from a backup, or move it away, which loses links and names of projects, but no memory"
    for text, said, fix in (
        ('{"version": 2}', "written by a newer memkit", "update memkit"), ("{", "is damaged", lost),
    ):  # fmt: skip
        path.write_text(text)
        finding = bare.finding("registry-unreadable")
        assert said in finding.what
        assert (finding.level, finding.fix, path.read_text()) == ("warning", fix, text)
        Path(bare.home.forgotten).write_text(text)
        finding = bare.finding("forgotten-unreadable")
        assert finding.level == "error"
        assert finding.fix.startswith(fix[:24])
    path.unlink()
    assert "registry-unreadable" not in bare.codes()


# Settings that cannot be read, and several versions of memkit.


def test_a_broken_file(bare: Patient) -> None:
    bare.configure("[search\nk = 5\n")
    finding = bare.finding("broken-settings")
    assert finding.level == "error"
    assert f"{bare.home.config_file}: not valid TOML" in finding.what
    place = Path(bare.home.sessions)
    place.chmod(0o755)
    assert bare.fix(bare.finding("open-to-others"))  # needs no settings
    assert place.stat().st_mode & 0o777 == 0o700
    assert "check-failed" not in bare.codes()
    bare.configure("[search]\nk = 0\n")
    assert "search.k" in bare.finding("broken-settings").what
    bare.configure("[search]\nk = 5\n")
    assert bare.findings() == []


def test_paid_vectors_survive_a_typing_error(bare: Patient) -> None:
    """With the default settings, the doctor would embed with another model and delete vectors."""
    bare.memory.write(DAY_FILE, DAY_TEXT)
    paid = EmbeddingSettings(provider="ollama", model="paid")
    bare.memory.settings = Settings(embedding=paid)
    bare.memory.embedder = FakeEmbedder(8)
    assert bare.memory.sync().embedded == 2
    before = files_below(Path(bare.home.index))
    bare.configure('[embedding]\nprovider = "ollama"\nmodel = "paid"\n[search]\nk = \n')
    findings = bare.findings()
    assert [one.code for one in findings] == ["broken-settings", "checks-left-out"]
    # As found while the settings could still be read.
    codes = ("weights-missing", "index-differs", "not-indexed", "archive-gap")
    earlier = [Finding(code, "error", "x", "x") for code in codes]
    subject = open_subject(bare.home, bare.memory.project)
    done = list(apply_fixes(subject, [*findings, *earlier]))
    assert len(done) == 4
    for step in done:
        assert step.failed
        assert "not valid TOML" in step.message
    assert files_below(Path(bare.home.index)) == before
    with pytest.raises(ConfigError):
        _ = subject.settings


def files_below(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_unknown_and_refused_settings(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    bare.configure("[search]\nbest_relevence = 0.1\n")
    finding = bare.finding("unknown-setting")
    assert f"{bare.home.config_file}: unknown setting search.best_relevence" in finding.what
    assert "rename it to search.best_relevance" in finding.fix
    bare.configure("")
    Path(bare.memory.project.root, ".memkit.toml").write_text('[embedding]\nprovider = "openai"\n')
    finding = bare.finding("refused-setting")
    assert (finding.level, "embedding.provider is refused" in finding.what) == ("warning", True)
    monkeypatch.setenv("MEMKIT_SEARCH_DEPTH", "3")
    assert "MEMKIT_SEARCH_DEPTH" in bare.finding("unknown-setting").what


def install_plugin(place: Path, version: str) -> Path:
    write_json(place / ".claude-plugin" / "plugin.json", {"name": "memkit", "version": version})
    (place / "bin").mkdir()
    script = place / "bin" / "memkit"
    script.write_text("#!/bin/sh\nexit 1\n")  # not run
    script.chmod(0o755)
    return place


def test_a_plugin_or_a_command_of_another_version(
    bare: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "claude" / "plugins" / "installed_plugins.json"
    for version, is_found in ((memkit.__version__, False), ("0.0.1", True)):
        place = install_plugin(tmp_path / "cache" / version, version)
        other = {"installPath": str(tmp_path / "none"), "version": "7"}
        entry = {"scope": "user", "installPath": str(place), "version": version}
        write_json(registry, {"version": 2, "plugins": {"memkit@memkit": [entry], "x@y": [other]}})
        assert ("versions-differ" in bare.codes()) is is_found
    finding = bare.finding("versions-differ")
    assert f"0.0.1 in {place}" in finding.what
    assert memkit.__version__ in finding.what
    registry.unlink()
    place = install_plugin(tmp_path / "clone", "0.0.2")
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert f"0.0.2 in {place}" in bare.finding("versions-differ").what


def test_a_package_that_is_missing(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = installation.environment.declared_requirements
    monkeypatch.setattr(
        installation.environment,
        "declared_requirements",
        lambda *given: [*declared(*given), "memkit-needs-this>=1"],
    )
    finding = bare.finding("packages-missing")
    assert finding.what.endswith("lacks memkit-needs-this")


@pytest.mark.parametrize(
    ("script", "code"),
    [("echo 3 8", "python-old"), ("exit 1", "python-broken"), (None, "python-missing")],
)
def test_a_python_that_cannot_run_hooks(
    bare: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, code: str
) -> None:
    (tmp_path / "bin").mkdir()
    if script is not None:
        python = tmp_path / "bin" / "python3"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    monkeypatch.setattr(installation, "find_program", find_program)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert bare.finding(code).level == "error"
