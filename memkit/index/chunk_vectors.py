"""The vectors of chunks, and which chunk is to blame if there are none."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

from memkit.embedding import check_vectors
from memkit.embedding.errors import UnusableVectorError
from memkit.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.embedding import Embedder
    from memkit.index.chunk import Chunk

    Vectors: TypeAlias = NDArray[np.float32]

logger = logging.getLogger(__name__)

MOST_FAILURES = 3
"""After so many chunks in a row that cannot be embedded it is the model, and no more is sent."""

SHOWN_PROBLEMS = 3


class ChunkEmbedder:
    """Embeds chunks in batches; those that cannot be embedded are named in `problem`."""

    def __init__(self, embedder: Embedder, dimensions: int | None) -> None:
        """`dimensions` is how long the vectors must be; None takes the length of the first."""
        self.dimensions = dimensions
        self._embedder = embedder
        self._problems: list[str] = []
        self._failures = 0

    @property
    def problem(self) -> str:
        """Why there are chunks without vectors, in one line; empty if there is none."""
        return "; ".join(self._problems[:SHOWN_PROBLEMS])

    def batches(
        self, chunks: Sequence[Chunk], size: int
    ) -> Iterator[tuple[int, list[Vectors | None]]]:
        """The vectors of `chunks`, `size` chunks at a time, with the position of the first of them.

        A chunk has vectors (windows, dimensions), each of length 1, or None if it cannot be embedded.
        Ends early if the rest cannot be embedded either.
        """
        for start in range(0, len(chunks), size):
            try:
                vectors = self._embed(chunks[start : start + size])
            except EmbeddingError as error:
                self._note(str(error))
                return
            yield start, vectors

    def _embed(self, chunks: Sequence[Chunk]) -> list[Vectors | None]:
        """The vectors of each chunk. If one has none, halves are tried until it is alone."""
        windows = [self._embedder.windows(chunk.text) for chunk in chunks]
        try:
            vectors = self._embedder.embed([window for own in windows for window in own])
            check_vectors(self._embedder.name, vectors, sum(map(len, windows)), self.dimensions)
        except UnusableVectorError as error:
            blamed = _owner(chunks, windows, error.position)
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


def _owner(chunks: Sequence[Chunk], windows: Sequence[list[str]], position: int) -> Chunk:
    """The chunk that the window at `position` is of."""
    owners = [chunk for chunk, own in zip(chunks, windows, strict=True) for _ in own]
    return owners[position]
