"""A healthy memory home, to plant one fault in."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memkit.capture.sessions import Session, Sessions
from memkit.doctor.checks import apply_fixes, examine
from memkit.doctor.finding import Finding, open_subject
from memkit.embedding import Embedder, weights
from memkit.paths import Home
from memkit.recall.results import SearchRequest
from memkit.recall.search import open_searcher
from memkit.settings import load
from tests.builders import Lines
from tests.memory import (
    CountingEmbedder,
    FakeEmbedder,
    Memory,
    day,
    make_memory,
    real_embedder,
)

__all__ = ["real_embedder"]

DAY_FILE = "2024-11-18.md"
DAY_TEXT = day(
    "2024-11-18",
    ("Which port does the staging gateway use?", "It listens on 7443, 443 is taken."),
    ("Why is the nightly build slow?", "The cache of the compiler was thrown away each time."),
)


@dataclass
class Patient:
    """A home with one project, and what the doctor finds and fixes there."""

    memory: Memory
    client: Path
    """Claude Code's directory for the transcripts of the project."""

    @property
    def home(self) -> Home:
        return self.memory.home

    def findings(self) -> list[Finding]:
        return examine(open_subject(self.home, self.memory.project))

    def finding(self, code: str) -> Finding:
        """Return the one finding with that code, after checking its texts."""
        found = [finding for finding in self.findings() if finding.code == code]
        assert len(found) == 1, self.findings()
        assert all((found[0].what, found[0].meaning, found[0].fix))
        assert "\n" not in found[0].what + found[0].meaning + found[0].fix
        return found[0]

    def codes(self) -> list[str]:
        return [finding.code for finding in self.findings()]

    def fix(self, *findings: Finding) -> list[str]:
        """Mend these; what was done."""
        done = list(apply_fixes(open_subject(self.home, self.memory.project), findings))
        assert not [step for step in done if step.failed], done
        return [step.message for step in done]

    def search(self) -> str:
        """Return the first result of a real search with the real model."""
        project = self.memory.project
        settings = load.load(self.home, project).settings
        searcher = open_searcher(project, self.home, settings)
        answer = searcher.answer(SearchRequest("Which port does the staging gateway use?", 1))
        assert not searcher.notes, searcher.notes
        return answer.results[0].chunk.content

    def configure(self, text: str) -> None:
        Path(self.home.config_file).write_text(text)
        Path(self.home.config_file).chmod(0o600)

    def remember_session(self, lines: Lines, told: float, changed: float | None = None) -> Session:
        """Save a session whose hooks ran."""
        path = self.transcript(lines, changed)
        session = Session(lines.session, str(path), self.memory.project.root, last_event=told)
        session.size = path.stat().st_size
        Sessions(self.home).save(session)
        return session

    def transcript(self, lines: Lines, changed: float | None = None) -> Path:
        self.client.mkdir(parents=True, exist_ok=True)
        path = lines.write(self.client)
        if changed is not None:
            os.utime(path, (changed, changed))
        return path


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("MEMKIT_", "CLAUDE")) and not name.startswith("MEMKIT_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("MEMKIT_SERVICE_ENABLED", "false")
    mask = os.umask(0o077)  # as the command line sets it
    yield
    os.umask(mask)
    logging.getLogger("memkit").handlers.clear()
    logging.getLogger("memkit").propagate = True


@pytest.fixture
def weights_of_this_machine(monkeypatch: pytest.MonkeyPatch, model_home: Home) -> Path:
    """The verified weights, offered as the installed package offers them; there is no other source."""
    directory = weights.model_directory(model_home)

    def not_there(*given: object) -> Path:
        raise weights.SourceError("not there")

    monkeypatch.setattr(weights, "installed_package", lambda: directory)
    monkeypatch.setattr(weights, "hub_cache", not_there)
    monkeypatch.setattr(weights, "hub", not_there)
    monkeypatch.setattr(weights, "package_index", not_there)
    return directory


@pytest.fixture
def bare(tmp_path: Path, model_home: Home, weights_of_this_machine: Path) -> Patient:
    """A healthy home with a session, whose project has no memory yet."""
    memory = make_memory(tmp_path, embedder=FakeEmbedder(384), models=model_home.models)
    Path(memory.home.root).chmod(0o700)
    folder = re.sub(r"[^A-Za-z0-9]", "-", memory.project.root)
    patient = Patient(memory, tmp_path / "claude" / "projects" / folder)
    lines = Lines().prompt("Which port?").answer("7443.")
    patient.remember_session(lines, told=time.time() + 60)
    assert patient.findings() == []
    return patient


_seen_healthy: list[Patient] = []


@pytest.fixture
def indexed(bare: Patient, real_embedder: Embedder) -> Patient:
    """The same, with an indexed memory."""
    bare.memory.write(DAY_FILE, DAY_TEXT)
    bare.memory.embedder = CountingEmbedder(real_embedder)
    bare.memory.sync()
    if not _seen_healthy:  # all are alike, and reading a whole index takes a second
        assert bare.findings() == []
        assert "7443" in bare.search()
        _seen_healthy.append(bare)
    return bare


Mount = Callable[[str], Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a file system in memory; skips the test where this user may not."""
    mounted: list[Path] = []

    def mount_at(options: str) -> Path:
        place = tmp_path / f"mount{len(mounted)}"
        place.mkdir()
        try:
            command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("no file system can be mounted here")
        mounted.append(place)
        return place

    yield mount_at
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
