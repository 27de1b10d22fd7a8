"""Embed chunks in batches, and go on without those that cannot be embedded."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from memkit.embedding import UnusableVectorError, check_vectors
from memkit.errors import EmbeddingError
from memkit.index.chunk import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

MOST_FAILURES = 3
"""After this many failed chunks in a row, blame the model and send no more."""

SHOWN_PROBLEMS = 3


class ChunkEmbedder:
    """Embeds chunks in batches; `problem` names those that cannot be embedded.

    `is_stopped` is set when the rest cannot be embedded either.
    """

    def __init__(self, embedder: Embedder, dimensions: int | None) -> None:
        """`dimensions` is the required length of the vectors; None accepts any, set by the first vector."""
        self.dimensions = dimensions
        self._embedder = embedder
        self.is_stopped = False
        self._problems: list[str] = []
        self._failures = 0

    @property
    def problem(self) -> str:
        """The reason for chunks without vectors, in one line; empty if there are none."""
        return "; ".join(self._problems[:SHOWN_PROBLEMS])

    def batches(
        self, chunks: Sequence[Chunk], size: int
    ) -> Iterator[tuple[int, list[NDArray[np.float32] | None]]]:
        """Yield the vectors of `size` chunks at a time, with the position of the first one.

        A chunk has vectors (windows, dimensions), each of length 1, or None if it cannot be embedded. Stop
        early if the rest cannot be embedded either.
        """
        for start in range(0, len(chunks), size):
            try:
                vectors = self._embed(chunks[start : start + size])
            except EmbeddingError as error:
                self._note(str(error))
                self.is_stopped = True
                return
            yield start, vectors

    def _embed(self, chunks: Sequence[Chunk]) -> list[NDArray[np.float32] | None]:
        """Return the vectors of each chunk; halve the batch until a chunk that fails is alone."""
        windows = [self._embedder.windows(chunk.text) for chunk in chunks]
        try:
            vectors = self._embedder.embed([window for own in windows for window in own])
            check_vectors(self._embedder.name, vectors, sum(map(len, windows)), self.dimensions)
        except UnusableVectorError as error:
            owners = [chunk for chunk, own in zip(chunks, windows, strict=True) for _ in own]
            blamed = owners[error.position]
            problem = f"{blamed.source}:{blamed.start_line}: {error}"
            if len(chunks) == 1:
                self._failures += 1
            if error.is_general or self._failures == MOST_FAILURES:
                raise EmbeddingError(problem) from None
            if len(chunks) == 1:
                self._note(problem)
                return [None]
            middle = len(chunks) // 2
            return self._embed(chunks[:middle]) + self._embed(chunks[middle:])
        self._failures = 0
        self.dimensions = vectors.shape[1]
        ends = list(accumulate(map(len, windows), initial=0))
        return [vectors[start:end] for start, end in pairwise(ends)]

    def _note(self, problem: str) -> None:
        logger.warning("%s", problem)
        self._problems.append(problem)
