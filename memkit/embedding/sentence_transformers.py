"""Any other local model, on the `sentence-transformers` package and torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memkit.embedding import check_vectors, normalize
from memkit.embedding.models import NO_PREFIXES, Prefixes, Token, cut_into_windows
from memkit.environment.extras import how_to_add
from memkit.errors import EmbeddingError
from memkit.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

class SentenceTransformersEmbedder:
    """A model by its name on the model hub, or by its directory."""

    def __init__(
        self, model: str, prefixes: Prefixes = NO_PREFIXES, *, allow_download: bool = True
    ) -> None:
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
        import numpy as np

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
            for (start, end), word in zip(
                encoding["offset_mapping"], encoding.word_ids(), strict=True
            )
        ]
