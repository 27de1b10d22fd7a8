"""Vectors as a model gave them, checked and made comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memkit.errors import EmbeddingError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class UnusableVectorError(EmbeddingError):
    """A model refused a text, or gave no usable vector for it.

    Attributes:
        position: of the text among those that were given. Of several texts that went out together, and
            of which it is not known which one is to blame, the first.
        reason: what is wrong, in a few words, without saying with which text.
        is_general: whether it would be the same with any other text.
    """

    def __init__(self, model: str, position: int, reason: str, *, is_general: bool = False) -> None:
        super().__init__(f"the embedding model {model} {reason}")
        self.model = model
        self.position = position
        self.reason = reason
        self.is_general = is_general

    def at(self, position: int) -> UnusableVectorError:
        """The same error for the text at another position."""
        return UnusableVectorError(
            self.model, position, self.reason, is_general=self.is_general
        )


def check(model: str, vectors: Sequence[Any] | NDArray[Any], count: int, dimensions: int | None) -> None:
    """Raise `UnusableVectorError` unless there are `count` usable vectors of one length.

    An empty vector is not usable, nor one of zeros, or with NaN or infinity in it. `dimensions` is the
    length they must have; None takes that of the first.
    """
    if len(vectors) != count:
        reason = f"gave {len(vectors)} vectors for {count} texts"
        raise UnusableVectorError(model, 0, reason, is_general=True)
    for position, vector in enumerate(vectors):
        if not len(vector):
            raise UnusableVectorError(model, position, "gave an empty vector")
        dimensions = dimensions or len(vector)
        if len(vector) != dimensions:
            reason = (
                f"gave a vector of {len(vector)} dimensions where the others have {dimensions}; if "
                "the model was exchanged, `memkit index --rebuild` makes the index anew"
            )
            raise UnusableVectorError(model, position, reason, is_general=True)
        if not np.isfinite(vector).all():
            raise UnusableVectorError(model, position, "gave a vector that is not finite")
        if not np.any(vector):
            raise UnusableVectorError(model, position, "gave a vector of zeros")


def normalised(vectors: Sequence[Any]) -> NDArray[np.float32]:
    """Vectors that `check` let pass as float32 (count, dimensions), each row of length 1."""
    matrix = np.array(vectors, dtype=np.float64)  # squares of float32 neither overflow nor vanish
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix.astype(np.float32)
