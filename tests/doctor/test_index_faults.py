"""Faults of the index: each is found and fixed, and a search works again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from memkit.doctor import Finding
from memkit.index import manifest
from memkit.index.manifest import Manifest, stat_of
from memkit.settings import EmbeddingSettings, Settings
from tests.doctor.conftest import DAY_FILE, DAY_TEXT, Patient
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


def test_a_snapshot_of_another_version(indexed: Patient) -> None:
    path = manifest_file(indexed)
    found = Manifest.read(path.parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "FORMAT", 99)
        path.write_bytes(found.to_bytes())
    finding = indexed.finding("snapshot-damaged")
    assert "another version" in finding.what
    expect_fixed(indexed, finding)


def test_a_half_written_snapshot(indexed: Patient) -> None:
    path = segment(indexed)
    path.write_bytes(path.read_bytes()[:-100])
    finding = indexed.finding("snapshot-damaged")
    assert str(path.parent) in finding.what
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


def test_a_snapshot_that_never_became_current(indexed: Patient) -> None:
    manifest_file(indexed).unlink()
    finding = indexed.finding("snapshot-damaged")
    assert "incomplete" in finding.what
    expect_fixed(indexed, finding)


def test_edits_that_are_not_indexed(indexed: Patient) -> None:
    indexed.memory.write("2024-11-19.md", DAY_TEXT.replace("2024-11-18", "2024-11-19"))
    finding = indexed.finding("not-indexed")
    assert indexed.memory.project.root in finding.what
    expect_fixed(indexed, finding)
    assert {source[-13:] for source in indexed.memory.snapshot.sources} == {
        DAY_FILE,
        "2024-11-19.md",
    }


def test_a_memory_that_was_never_indexed(bare: Patient) -> None:
    bare.memory.write(DAY_FILE, DAY_TEXT)
    finding = bare.finding("not-indexed")
    assert "1 memory file " in finding.what
    expect_fixed(bare, finding)


def test_chunks_without_vectors(bare: Patient) -> None:
    bare.memory.write(DAY_FILE, DAY_TEXT)
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
