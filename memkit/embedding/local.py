"""all-MiniLM-L6-v2 on ONNX Runtime: the `local` embedder, without torch."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state
from tokenizers import Tokenizer

from memkit.embedding import check_vectors, normalize
from memkit.embedding.models import NO_PREFIXES, Prefixes, Token, cut_into_windows
from memkit.embedding.weights import MODEL, TOKENIZER
from memkit.environment.extras import how_to_add
from memkit.errors import EmbeddingError
from memkit.text import encodable, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

class SentenceTransformersEmbedder:
    """A model by its name on the model hub, or by its directory."""

    def __init__(self, model: str, prefixes: Prefixes = NO_PREFIXES, *, allow_download: bool = True) -> None:
        """Load the model. Raise `EmbeddingError` if the package or the model is missing."""
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbeddingError(
                f"the embedding model {model} needs another package; "
                f"run `{how_to_add('sentence-transformers')}`"
            ) from error
        try:
            self._model: Any = SentenceTransformer(model, local_files_only=not allow_download)
        except (OSError, ValueError) as error:
            raise EmbeddingError(
                f"the embedding model {model} cannot be loaded: {one_line(str(error))}"
            ) from error
        self.name = model
        self._prefixes = prefixes
        # Newer versions of the package deprecate the second name.
        dimensions = getattr(self._model, "get_embedding_dimension", None)
        self.dimensions = int((dimensions or self._model.get_sentence_embedding_dimension)())
        self._max_tokens: int | None = self._model.max_seq_length

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages; see `Embedder.embed`."""
        return self._encode([self._prefixes.passage + text for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query; see `Embedder.embed_query`."""
        vector: NDArray[np.float32] = self._encode([self._prefixes.query + text])[0]
        return vector

    def windows(self, text: str) -> list[str]:
        """Return `text` in pieces that fit the model's limit; see `Embedder.windows`."""
        if self._max_tokens is None:
            return [text]
        special = self._model.tokenizer.num_special_tokens_to_add()
        limit = self._max_tokens - special - len(self._tokenize(self._prefixes.passage))
        return cut_into_windows(text, max(1, limit), self._tokenize)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        found = self._model.encode(list(texts), show_progress_bar=False)
        check_vectors(self.name, found, len(texts), self.dimensions)
        return normalize(found)

    def _tokenize(self, text: str) -> list[Token]:
        encoding = self._model.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return [
            Token(start, end, word)
            for (start, end), word in zip(encoding["offset_mapping"], encoding.word_ids(), strict=True)
        ]


DIMENSIONS = 384

MAX_TOKENS = 256
"""The tokens that the model reads, with its two special tokens (`sentence_bert_config.json`)."""

GRAPH = Path(__file__).with_name("minilm.onnx")
"""The model without weights: it names their offsets in the safetensors file. `tools/graph` writes it."""

_SPECIAL_TOKENS = 2  # [CLS] before and [SEP] after every text
_SEPARATOR_ID = 102  # of [SEP], in the pinned tokenizer.json
_BATCH_TOKENS = 512  # more is slower: intermediate results leave the processor's cache

# ONNX Runtime's errors have no base class of their own.
_RUNTIME_ERRORS: tuple[type[Exception], ...] = tuple(
    value
    for value in vars(onnxruntime_pybind11_state).values()
    if isinstance(value, type) and issubclass(value, Exception)
)


class LocalEmbedder:
    """all-MiniLM-L6-v2, from a directory with its verified weights and tokenizer.

    The vector of a text is the same to the last bit in any batch and with any number of threads. All texts of
    a batch have the same number of tokens, so none is padded. That costs nothing: one text of usual length
    keeps the processor busy. Safe to use from several threads.
    """

    name = MODEL
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS
    separator_id = _SEPARATOR_ID
    prefixes: Prefixes = NO_PREFIXES

    def __init__(self, directory: Path, *, threads: int | None = None) -> None:
        """Load the model; compute with `threads`, by default on all cores. Raise `EmbeddingError`."""
        self._directory = directory
        self._tokenizer = Tokenizer.from_file(str(directory / TOKENIZER))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._session = self._open_session(GRAPH, threads, {})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages; see `Embedder.embed`."""
        return self._vectors(self.prefixes.passage, texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, float32 (384,)."""
        vector: NDArray[np.float32] = self._vectors(self.prefixes.query, [text])[0]
        return vector

    def windows(self, text: str) -> list[str]:
        """Return `text` in pieces that fit the model's limit; see `cut_into_windows`."""
        limit = self.max_tokens - _SPECIAL_TOKENS - len(self._tokenize(self.prefixes.passage))
        return cut_into_windows(text, limit, self._tokenize)

    def _vectors(self, prefix: str, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        encodings = self._tokenizer.encode_batch([encodable(prefix + text) for text in texts])
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for index, encoding in enumerate(encodings):
            by_length[min(len(encoding.ids), self.max_tokens)].append(index)
        for length, indexes in sorted(by_length.items()):
            size = max(1, _BATCH_TOKENS // length)
            for start in range(0, len(indexes), size):
                batch = indexes[start : start + size]
                ids = np.array([encodings[index].ids[:length] for index in batch], dtype=np.int64)
                ids[:, -1] = self.separator_id  # missing where a longer text was cut
                vectors[batch] = self._run(ids)
        return vectors

    def _open_session(self, graph: Path, threads: int | None, weights: Mapping[str, Any]) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or _available_cores()
        options.log_severity_level = 3  # errors only; users can do nothing about warnings
        # Threads that spin while they wait for work take the cores from everything else on the machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        folder = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(folder, str(self._directory))
        options.add_external_initializers(list(weights), list(weights.values()))
        try:
            return onnxruntime.InferenceSession(graph.read_bytes(), options, ["CPUExecutionProvider"])
        except _RUNTIME_ERRORS as error:
            raise EmbeddingError(f"{self.name} cannot be loaded: {one_line(str(error))}") from error

    def _input(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        return {"input_ids": ids}

    def _run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {**self._input(ids), "attention_mask": np.ones_like(ids)}
        try:
            vectors: NDArray[np.float32] = self._session.run(["sentence_embedding"], inputs)[0]
        except _RUNTIME_ERRORS as error:
            raise EmbeddingError(f"{self.name} failed: {one_line(str(error))}") from error
        if not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"{self.name} gave vectors that are not finite; move {self._directory} away and "
                "run `memkit doctor --fix` to fetch the model again"
            )
        return vectors

    def _tokenize(self, text: str) -> list[Token]:
        encoding = self._tokenizer.encode(encodable(text), add_special_tokens=False)
        return [
            Token(start, end, word)
            for (start, end), word in zip(encoding.offsets, encoding.word_ids, strict=True)
        ]


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
