"""A healthy memory home, to plant one fault in."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from memkit import embedding
from memkit.capture.sessions import Session, Sessions
from memkit.doctor import Finding, installation, open_subject
from memkit.doctor.checks import apply_fixes, examine
from memkit.embedding import Embedder, load_embedder, weights
from memkit.ipc.stop import stop
from memkit.paths import Home
from memkit.search.ranking import open_searcher
from memkit.search.results import SearchRequest
from memkit.settings import EmbeddingSettings, load
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
        """Apply the fixes of these findings, and return their messages."""
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

    def remember_session(self, lines: Lines, last_event: float, changed: float | None = None) -> Session:
        """Save a session whose hooks ran."""
        path = self.transcript(lines, changed)
        session = Session(lines.session, str(path), self.memory.project.root, last_event=last_event)
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


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all tests use one after the other, because an index depends on its project's path."""
    return tmp_path_factory.mktemp("doctor").resolve()


@functools.cache
def _shared_embedder(home: Home) -> Embedder:
    return load_embedder(home, EmbeddingSettings(download=False))


@pytest.fixture(autouse=True)
def cheap_examinations(monkeypatch: pytest.MonkeyPatch, place: Path, model_home: Home) -> None:
    """Make the costly parts of an examination cheap. Each test examines several times."""

    def is_shared(home: Home) -> bool:
        return os.path.realpath(home.models) == os.path.realpath(model_home.models)

    really_changed, really_load = weights.changed_files, embedding.load_embedder

    def changed_files(home: Home) -> list[str]:
        return [] if is_shared(home) else really_changed(home)

    def load_once(home: Home, chosen: EmbeddingSettings, *announce: Any) -> Embedder:
        if is_shared(home) and chosen.provider == "local":
            return _shared_embedder(model_home)
        return really_load(home, chosen, *announce)

    python = place / "python3"  # starting the real one costs thirty times as much
    python.write_text("#!/bin/sh\necho 3 12\n")
    python.chmod(0o755)
    monkeypatch.setattr(installation, "find_program", lambda name: str(python))
    monkeypatch.setattr(weights, "changed_files", changed_files)
    monkeypatch.setattr(embedding, "load_embedder", load_once)


def not_there(*given: object) -> Path:
    """A source without weights."""
    raise weights.SourceError("not there")


@pytest.fixture
def weights_of_this_machine(monkeypatch: pytest.MonkeyPatch, model_home: Home) -> Path:
    """The verified weights, offered as the installed package offers them; there is no other source."""
    directory = weights.model_directory(model_home)

    monkeypatch.setattr(weights, "installed_package", lambda: directory)
    monkeypatch.setattr(weights, "hub", not_there)
    monkeypatch.setattr(weights, "package_index", not_there)
    return directory


@pytest.fixture
def bare(tmp_path: Path, place: Path, model_home: Home, weights_of_this_machine: Path) -> Iterator[Patient]:
    """A healthy home with a session, whose project has no memory yet."""
    root = place / "patient"
    shutil.rmtree(root, ignore_errors=True)
    memory = make_memory(root, embedder=FakeEmbedder(384), models=model_home.models)
    Path(memory.home.root).chmod(0o700)
    folder = re.sub(r"[^A-Za-z0-9]", "-", memory.project.root)
    patient = Patient(memory, tmp_path / "claude" / "projects" / folder)
    lines = Lines().prompt("Which port?").answer("7443.")
    patient.remember_session(lines, last_event=time.time() + 60)
    yield patient
    stop(memory.home)  # the next test has the same place
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # ended, or of another user
            if process.environ().get("MEMKIT_HOME") == memory.home.root and process.pid != os.getpid():
                process.kill()
                process.wait(60)


@pytest.fixture
def indexed(bare: Patient, place: Path, real_embedder: Embedder) -> Patient:
    """The same, with an indexed memory; its index is built once."""
    bare.memory.write(DAY_FILE, DAY_TEXT)
    bare.memory.embedder = CountingEmbedder(real_embedder)
    built, own = place / "index", Path(bare.home.index)
    if built.is_dir():
        shutil.copytree(built, own)
        own.chmod(0o700)
    else:
        bare.memory.sync()
        assert bare.findings() == []
        assert "7443" in bare.search()
        shutil.copytree(own, built)
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
