"""Text into vectors.

`load_embedder` gives the embedder that the settings name. The default, `local`, is
all-MiniLM-L6-v2 on ONNX Runtime and needs no torch. Text leaves the machine only with the providers
of `providers.PROVIDERS`, which nobody but the user can choose.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import AUTO, EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

# ONNX Runtime 1.31 tells its makers what it does, under an id in the user's cache.
# It reads this when it is imported, which only this package does; `disable_telemetry_events` comes too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

Progress = Callable[[int], None]
"""Called with the number of texts embedded so far."""


class Embedder(Protocol):
    """What turns text into vectors whose dot product is their cosine similarity."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are not comparable."""

    @property
    def dimensions(self) -> int | None:
        """The number of components of a vector; None if only its vectors tell."""

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """The vectors of passages, float32 (len(texts), dimensions), each of length 1.

        In the order of `texts`. What a text holds beyond the model's limit is not read. Raises
        `EmbeddingError`; its kind `vectors.UnusableVectorError` if one text is to blame.
        """

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, float32 (dimensions,), of length 1, to be compared with passages'.

        Raises `EmbeddingError`.
        """

    def windows(self, text: str) -> list[str]:
        """`text` cut into pieces that the model reads whole; `[text]` if it does so at once.

        Together they hold every character of `text` that is not blank.
        """


def find_embedder(
    home: Home, chosen: EmbeddingSettings, announce: Callable[[str], None] | None = None
) -> tuple[Embedder | None, str]:
    """The embedder that the settings name; if it is not to be had, None and why, in one line."""
    if chosen.provider == "none":
        return None, "embedding.provider is none"
    try:
        embedder = load_embedder(
            home,
            provider=chosen.provider,
            model=chosen.model,
            query_prefix=chosen.query_prefix,
            passage_prefix=chosen.passage_prefix,
            allow_download=chosen.download,
            announce=announce,
        )
    except EmbeddingError as error:
        logger.warning("%s", error)
        return None, str(error)
    return embedder, ""


def load_embedder(
    home: Home,
    *,
    provider: str = "local",
    model: str = "all-MiniLM-L6-v2",
    query_prefix: str = AUTO,
    passage_prefix: str = AUTO,
    allow_download: bool = True,
    announce: Callable[[str], None] | None = None,
    retry: bool = False,
) -> Embedder:
    """The embedder of `provider`, one of those of the setting `embedding.provider`, for `model`.

    The prefixes are as in the settings; `local` has none. `allow_download`, `announce` and `retry` are
    about weights that are not on this machine yet, see `weights.ensure_weights`. Raises
    `EmbeddingError`, also if a package or a key is missing; its kind `WeightsUnavailableError` if no
    source has the weights.
    """
    from memkit.embedding import models, providers, weights

    if provider == "sentence-transformers":
        from memkit.embedding.sentence_transformers import SentenceTransformersEmbedder

        prefixes = models.prefixes(model, query_prefix, passage_prefix)
        return SentenceTransformersEmbedder(model, prefixes, allow_download=allow_download)
    if provider in providers.PROVIDERS:
        from memkit.embedding.remote import RemoteEmbedder

        return RemoteEmbedder(
            provider, model, models.prefixes(model, query_prefix, passage_prefix)
        )
    if provider != "local":
        known = ", ".join(("local", "sentence-transformers", *providers.PROVIDERS))
        raise EmbeddingError(
            f"there is no embedding provider {provider!r}; set embedding.provider to one of {known}"
        )
    if model != weights.MODEL:
        raise EmbeddingError(
            f"the local embedding provider runs {weights.MODEL} only; for {model} set "
            "embedding.provider to sentence-transformers"
        )
    directory = weights.ensure_weights(
        home, allow_download=allow_download, announce=announce, retry=retry
    )
    from memkit.embedding.local import LocalEmbedder

    return LocalEmbedder(directory)
