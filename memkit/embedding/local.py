"""all-MiniLM-L6-v2 on ONNX Runtime: the `local` embedder, without torch."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state
from tokenizers import Tokenizer

from memkit.embedding.onnx_graph import (
    ATTENTION_MASK,
    GRAPH_VERSION,
    INPUT_IDS,
    OUTPUT,
    build_graph,
)
from memkit.embedding.sources import TOKENIZER, WEIGHTS
from memkit.embedding.weights import MODEL
from memkit.embedding.windows import Token, cut_into_windows
from memkit.errors import EmbeddingError
from memkit.files import write_durably

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memkit.embedding import Progress

logger = logging.getLogger(__name__)

DIMENSIONS = 384

MAX_TOKENS = 256
"""What the model reads of a text, its two special tokens included (`sentence_bert_config.json`)."""

_SPECIAL_TOKENS = 2  # [CLS] before and [SEP] behind every text
_SEPARATOR_ID = 102  # of [SEP], in the pinned tokenizer.json
_BATCH_TOKENS = 512  # more is slower: intermediate results leave the processor's cache
_TEXTS_AT_ONCE = 1024  # bounds the memory of tokenised texts
_GRAPH_FILE = f"model-{GRAPH_VERSION}.onnx"

# ONNX Runtime's errors have no base class of their own.
_RUNTIME_ERRORS: tuple[type[Exception], ...] = tuple(
    value
    for value in vars(onnxruntime_pybind11_state).values()
    if isinstance(value, type) and issubclass(value, Exception)
)


class LocalEmbedder:
    """all-MiniLM-L6-v2, from a directory with its verified weights and tokenizer.

    The vector of a text is the same to the last bit in whatever batch and with however many
    threads it is computed: texts of one batch have the same number of tokens, so none is padded.
    That costs nothing, as the processor is busy with one text of usual length already. Safe to
    use from several threads.
    """

    name = MODEL
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS

    def __init__(self, directory: Path, *, threads: int | None = None) -> None:
        """Load the model; its graph is made first if there is none that works.

        `threads` is for one computation, by default all cores this process may use. Raises
        `EmbeddingError` if the model cannot be loaded.
        """
        self._directory = directory
        self._tokenizer = Tokenizer.from_file(str(directory / TOKENIZER))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._session = _open_session(directory, threads or _available_cores())

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """The vectors of `texts`, float32 (len(texts), 384), each of length 1, in their order.

        Of a text of more than 256 tokens only the beginning is read; see `windows`. `progress` is
        called with the number of texts done so far. Raises `EmbeddingError`.
        """
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = slice(start, start + _TEXTS_AT_ONCE)
            self._embed_part(texts[part], vectors[part], start, progress)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, float32 (384,); the model was trained without prefixes."""
        vector: NDArray[np.float32] = self.embed([text])[0]
        return vector

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` has, the two special ones not counted."""
        return len(self._encode(text).ids)

    def windows(self, text: str) -> list[str]:
        """`text` in pieces that the model reads whole; see `cut_into_windows`."""
        return cut_into_windows(text, MAX_TOKENS - _SPECIAL_TOKENS, self._tokenize)

    def _embed_part(
        self,
        texts: Sequence[str],
        vectors: NDArray[np.float32],
        done: int,
        progress: Progress | None,
    ) -> None:
        """Write the vectors of `texts` into `vectors`; `done` texts came before them."""
        encodings = self._tokenizer.encode_batch([_readable(text) for text in texts])
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for index, encoding in enumerate(encodings):
            by_length[min(len(encoding.ids), MAX_TOKENS)].append(index)
        for length, indexes in sorted(by_length.items()):
            size = max(1, _BATCH_TOKENS // length)
            for start in range(0, len(indexes), size):
                batch = indexes[start : start + size]
                ids = np.array([encodings[index].ids[:length] for index in batch], dtype=np.int64)
                ids[:, -1] = _SEPARATOR_ID  # lost where a longer text was cut
                vectors[batch] = self._run(ids)
                done += len(batch)
                if progress is not None:
                    progress(done)

    def _run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {INPUT_IDS: ids, ATTENTION_MASK: np.ones_like(ids)}
        try:
            vectors: NDArray[np.float32] = self._session.run([OUTPUT], inputs)[0]
        except _RUNTIME_ERRORS as error:
            raise EmbeddingError(f"{MODEL} failed: {_one_line(error)}") from error
        if not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"{MODEL} gave vectors that are not finite; delete {self._directory}, "
                "so that the model is fetched and built again"
            )
        return vectors

    def _encode(self, text: str) -> Any:
        return self._tokenizer.encode(_readable(text), add_special_tokens=False)

    def _tokenize(self, text: str) -> list[Token]:
        encoding = self._encode(text)
        return [
            Token(start, end, word)
            for (start, end), word in zip(encoding.offsets, encoding.word_ids, strict=True)
        ]


def _open_session(directory: Path, threads: int) -> Any:
    """A session on the cached graph; one that is missing or does not load is built anew."""
    graph = directory / _GRAPH_FILE
    if graph.exists():
        try:
            return _load_session(graph, threads)
        except _RUNTIME_ERRORS as error:
            logger.warning("building %s anew, it does not load: %s", graph, _one_line(error))
    try:
        write_durably(str(graph), build_graph(directory / WEIGHTS))
    except OSError as error:
        raise EmbeddingError(
            f"cannot keep the model's graph in {directory}: {error.strerror or error}"
        ) from error
    try:
        return _load_session(graph, threads)
    except _RUNTIME_ERRORS as error:
        raise EmbeddingError(f"{MODEL} cannot be loaded: {_one_line(error)}") from error


def _load_session(graph: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors; warnings about the machine are nobody's concern
    # Threads that wait for work by spinning take the cores from everything else on the machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        str(graph), sess_options=options, providers=["CPUExecutionProvider"]
    )


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _readable(text: str) -> str:
    """`text` with every lone surrogate, which no tokenizer accepts, as a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
