"""Text into vectors.

`load_embedder` gives the embedder that the settings name. The default, `local`, is
all-MiniLM-L6-v2 on ONNX Runtime and needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from memkit.errors import EmbeddingError
from memkit.paths import Home

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Progress = Callable[[int], None]
"""Called with the number of texts embedded so far."""


class Embedder(Protocol):
    """What turns text into vectors whose dot product is their cosine similarity."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are not comparable."""

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """The vectors of `texts`, float32 (len(texts), dimensions), each of length 1.

        In the order of `texts`. What a text holds beyond the model's limit is not read. Raises
        `EmbeddingError`, also if a vector is not finite.
        """

    def windows(self, text: str) -> list[str]:
        """`text` cut into pieces that the model reads whole; `[text]` if it does so at once.

        Together they hold every character of `text` that is not blank.
        """


def load_embedder(
    home: Home,
    *,
    provider: str = "local",
    model: str = "all-MiniLM-L6-v2",
    allow_download: bool = True,
    announce: Callable[[str], None] | None = None,
    retry: bool = False,
) -> Embedder:
    """The embedder of `provider` ("local" or "sentence-transformers") for `model`.

    `allow_download`, `announce` and `retry` are about weights that are not on this machine yet,
    see `weights.ensure_weights`. Raises `EmbeddingError`; its kind `WeightsUnavailableError`
    if no source has the weights.
    """
    from memkit.index.embedding import weights

    if provider == "sentence-transformers":
        from memkit.index.embedding.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model, allow_download=allow_download)
    if provider != "local":
        raise EmbeddingError(
            f"there is no embedding provider {provider!r}; set embedding.provider to local or "
            "sentence-transformers"
        )
    if model != weights.MODEL:
        raise EmbeddingError(
            f"the local embedding provider runs {weights.MODEL} only; for {model} set "
            "embedding.provider to sentence-transformers"
        )
    directory = weights.ensure_weights(
        home, allow_download=allow_download, announce=announce, retry=retry
    )
    from memkit.index.embedding.local import LocalEmbedder

    return LocalEmbedder(directory)
