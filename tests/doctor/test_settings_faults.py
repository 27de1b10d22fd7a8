"""Settings that cannot be read, and several versions of memkit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import memkit
from memkit.doctor import Finding, installation, open_subject
from memkit.doctor.checks import apply_fixes
from memkit.errors import ConfigError
from memkit.processes import find_program
from memkit.settings import EmbeddingSettings, Settings
from tests.doctor.conftest import DAY_FILE, DAY_TEXT, Patient, write_json
from tests.memory import FakeEmbedder


def test_a_broken_file(bare: Patient) -> None:
    bare.configure("[search\nk = 5\n")
    finding = bare.finding("broken-settings")
    assert finding.level == "error"
    assert f"{bare.home.config_file}: not valid TOML" in finding.what
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


def test_what_needs_no_settings_is_fixed_without_them(bare: Patient) -> None:
    bare.configure("[search]\nk = \n")
    place = Path(bare.home.sessions)
    place.chmod(0o755)
    finding = bare.finding("open-to-others")
    assert bare.fix(finding)
    assert place.stat().st_mode & 0o777 == 0o700


def test_no_check_reads_settings_that_cannot_be_read(bare: Patient) -> None:
    bare.configure("[search]\nk = \n")
    assert "check-failed" not in bare.codes()


def files_below(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_a_bad_value(bare: Patient) -> None:
    bare.configure("[search]\nk = 0\n")
    assert "search.k" in bare.finding("broken-settings").what


def test_an_unknown_key(bare: Patient) -> None:
    bare.configure("[search]\nbest_relevence = 0.1\n")
    finding = bare.finding("unknown-setting")
    assert f"{bare.home.config_file}: unknown setting search.best_relevence" in finding.what
    assert "rename it to search.best_relevance" in finding.fix


def test_an_unknown_variable(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIT_SEARCH_DEPTH", "3")
    assert "MEMKIT_SEARCH_DEPTH" in bare.finding("unknown-setting").what


def test_a_setting_that_a_repository_may_not_change(bare: Patient) -> None:
    path = Path(bare.memory.project.root, ".memkit.toml")
    path.write_text('[embedding]\nprovider = "openai"\n')
    finding = bare.finding("refused-setting")
    assert finding.level == "warning"
    assert "embedding.provider is refused" in finding.what


def install_plugin(place: Path, version: str) -> Path:
    write_json(place / ".claude-plugin" / "plugin.json", {"name": "memkit", "version": version})
    (place / "bin").mkdir()
    script = place / "bin" / "memkit"
    script.write_text("#!/bin/sh\nexit 1\n")  # not run
    script.chmod(0o755)
    return place


def test_a_plugin_of_another_version(bare: Patient, tmp_path: Path) -> None:
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


def test_a_command_of_another_version(
    bare: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
