"""The index during a change of the provider, and with chunks that cannot be embedded."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memkit.embedding.models import space
from memkit.index import update as update_module
from memkit.index.catalog import collection_name
from memkit.settings.load import Settings, how_to_set
from tests.ci import first
from tests.embedding.service import BAD_VECTORS, KEY, Service
from tests.memory import DAYS, Memory, make_memory

OPENAI = {"provider": "openai"}
OTHER = {"provider": "openai", "model": "text-embedding-3-large"}
OLLAMA = {"provider": "ollama"}
LOGIN = ".memkit/memory/2026-11-19.md:13"
"""The day with the turn about the login page, the only one that mentions PolicyController."""


def choose(memory: Memory, chosen: dict[str, Any]) -> str:
    """Change the settings; return the name of their collection."""
    memory.settings = msgspec.convert({"embedding": chosen}, Settings)
    return collection_name(memory.project, memory.home, space(memory.settings.embedding))


def collections(memory: Memory) -> list[str]:
    return sorted(path.name for path in Path(memory.home.index, "chroma").iterdir())


def snapshots(memory: Memory) -> list[str]:
    return sorted(path.name for path in Path(memory.home.index, "snapshots").iterdir())


def vectors(memory: Memory) -> dict[str, bytes]:
    return {r.id: r.vectors.tobytes() for r in memory.snapshot.rows() if r.vectors is not None}


def test_the_old_collection_stays(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_module, "BATCH_CHUNKS", 2)
    memory = make_memory(tmp_path, DAYS)
    old = choose(memory, {})
    memory.sync()
    before = memory.contents()

    new = choose(memory, OPENAI)
    service.refuse(503)
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (6, 0)
    assert report.degraded == "openai cannot embed at the moment (503); try again later"
    assert collections(memory) == snapshots(memory) == sorted([old, new])
    assert memory.search("PolicyController").results[0].dense is None

    service.refuse(429, sign="PolicyController")
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (2, 4)
    assert "(429)" in report.degraded
    assert collections(memory) == snapshots(memory) == sorted([old, new])
    choose(memory, {})
    assert memory.contents() == before

    choose(memory, OPENAI)
    service.relent()
    service.requests.clear()
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded, report.degraded) == (0, 2, "")
    assert len(service.texts) == 2
    assert collections(memory) == snapshots(memory) == [new]


def test_from_model_to_model(tmp_path: Path, service: Service) -> None:
    memory = make_memory(tmp_path / "one", DAYS)
    other = make_memory(tmp_path / "two", DAYS, home=memory.home)
    other.sync()
    kept = collection_name(other.project, other.home, space(other.settings.embedding))
    choose(memory, OPENAI)
    memory.sync(embedder=None)
    new = choose(memory, OTHER)
    service.vectors = lambda texts: [[1.0] * 12 for _ in texts]
    assert memory.sync(embedder=None).missing == 0
    assert collections(memory) == snapshots(memory) == sorted([new, kept])  # those of another project stay


def test_without_a_provider_nothing_is_sent_and_paid_vectors_stay(tmp_path: Path, service: Service) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    choose(memory, {"provider": "none"})
    memory.sync(embedder=None)
    assert service.requests == []
    choose(memory, OPENAI)
    memory.sync(embedder=None)
    service.requests.clear()
    for chosen in ({"provider": "none"}, OPENAI):
        choose(memory, chosen)
        report = memory.sync(embedder=None)
    assert report.missing == 0
    assert service.requests == []


def test_no_text_is_sent_twice(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection begins with placeholders, whose length differs from that of the vectors."""
    monkeypatch.setattr(update_module, "BATCH_CHUNKS", 4)
    memory = make_memory(tmp_path, DAYS)
    choose(memory, OPENAI)
    monkeypatch.delenv("OPENAI_API_KEY")
    report = memory.sync(embedder=None)
    assert (report.chunks, report.missing) == (6, 6)
    assert report.degraded == (f"the embedding provider openai needs a key; {how_to_set('openai')}")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (0, 6)
    assert len(service.texts) == len(set(service.texts)) == 6
    assert memory.sync(embedder=None).embedded == 0


@pytest.mark.parametrize("kind", first(2, list(BAD_VECTORS)))
def test_only_the_bad_chunk_waits(tmp_path: Path, service: Service, kind: str) -> None:
    memory = make_memory(tmp_path, DAYS)
    choose(memory, OPENAI)
    service.give("PolicyController", BAD_VECTORS[kind])
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (1, 5)
    assert report.degraded.startswith(f"{LOGIN}: the embedding model openai/")
    assert "\n" not in report.degraded
    (missing,) = (row.chunk for row in memory.snapshot.rows() if row.vectors is None)
    assert f"{missing.source}:{missing.start_line}" == LOGIN

    service.vectors = Service.vectors_of_words
    service.requests.clear()
    assert memory.sync(embedder=None).missing == 0
    assert len(service.texts) == 1


@pytest.mark.parametrize(
    ("status", "said"), [(400, "no"), (500, "failed to encode response: json: unsupported value: NaN")]
)
def test_many_texts_may_be_rejected(tmp_path: Path, service: Service, status: int, said: str) -> None:
    notes = {f"{n:02}.md": f"# Note {n}\n\n{'odd' if n % 2 else 'even'} {'word ' * 40}" for n in range(12)}
    memory = make_memory(tmp_path, notes)
    choose(memory, OLLAMA)
    service.refuse(status, said, "odd")
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (6, 6)
    assert report.degraded.count("rejects the text") == 3
    assert report.degraded.startswith(".memkit/memory/01.md:1: ")


def test_a_service_without_usable_vectors_is_not_asked_again(tmp_path: Path, service: Service) -> None:
    memory = make_memory(tmp_path, {f"{n:02}.md": f"# Note {n}\n\n{'word ' * 40}" for n in range(64)})
    choose(memory, OPENAI)
    service.vectors = lambda texts: [[0.0] * 8 for _ in texts]
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (64, 0)
    assert report.degraded.startswith(".memkit/memory/00.md:1: ")
    assert len(service.requests) < 12


def test_a_wrong_count_names_a_chunk_and_stops(tmp_path: Path, service: Service) -> None:
    memory = make_memory(tmp_path, DAYS)
    choose(memory, OPENAI)
    service.vectors = lambda texts: [[1.0] * 8]
    report = memory.sync(embedder=None)
    assert (report.missing, len(service.requests)) == (6, 1)
    assert report.degraded == (
        ".memkit/memory/2026-11-18.md:1: the embedding model openai/text-embedding-3-small gave 1 "
        "vectors for 6 texts"
    )


def test_vectors_of_another_length_than_in_the_index(tmp_path: Path, service: Service) -> None:
    """Another model behind the same name is an error, and the index stays."""
    memory = make_memory(tmp_path, DAYS)
    choose(memory, OPENAI)
    memory.sync(embedder=None)
    before = vectors(memory)
    service.vectors = lambda texts: [[1.0] * 12 for _ in texts]
    memory.write("new.md", "\n\n# New\n\n" + "something new " * 10)
    report = memory.sync(embedder=None)
    assert (report.missing, report.embedded) == (1, 0)
    assert report.degraded.startswith(".memkit/memory/new.md:3: ")
    assert "12 dimensions, but the others have 8" in report.degraded
    assert vectors(memory) == before
    assert memory.sync(embedder=None, rebuild=True).missing == 0
    assert {row.vectors.shape[1] for row in memory.snapshot.rows() if row.vectors is not None} == {12}


def test_a_killed_run_goes_on(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_module, "SEGMENT_CHUNKS", 2)
    memory = make_memory(tmp_path, DAYS)
    choose(memory, OPENAI)

    def killed(done: int, total: int) -> None:
        if done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.sync(embedder=None, progress=killed)
    assert memory.sync(embedder=None).missing == 0
    assert len(set(service.texts)) == 6 < len(service.texts) <= 9


def test_the_key_is_nowhere(tmp_path: Path, service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "memkit")
    memory = make_memory(tmp_path, DAYS)
    choose(memory, OPENAI)
    for status in (400, 401, 429, 500):
        service.refuse(status, f"Incorrect API key provided: {KEY}")
        report = memory.sync(embedder=None)
        assert f"({status})" in report.degraded
        assert KEY not in report.degraded
    assert KEY not in "".join(memory.said)
    own = [record.getMessage() for record in caplog.records if record.name.startswith("memkit")]
    assert own
    assert KEY not in "".join(own)
    assert KEY.encode() not in b"".join(
        path.read_bytes() for path in Path(memory.home.root).rglob("*") if path.is_file()
    )
