"""Any other local model, run by the `sentence-transformers` package and torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memkit.errors import EmbeddingError
from memkit.index.embedding.windows import Token, cut_into_windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.index.embedding import Progress

_BATCH_TEXTS = 32  # the package's own default


class SentenceTransformersEmbedder:
    """A model by its name on the model hub, or by its directory."""

    def __init__(self, model: str, *, allow_download: bool = True) -> None:
        """Load the model. Raises `EmbeddingError` if the package or the model is missing."""
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbeddingError(
                f"the embedding model {model} needs another package; "
                "run `pip install 'memkit[sentence-transformers]'`"
            ) from error
        try:
            self._model: Any = SentenceTransformer(model, local_files_only=not allow_download)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise EmbeddingError(
                f"the embedding model {model} cannot be loaded: {reason}"
            ) from error
        self.name = model
        # Newer versions of the package warn of the old name.
        dimensions = getattr(self._model, "get_embedding_dimension", None)
        self.dimensions = int((dimensions or self._model.get_sentence_embedding_dimension)())
        self.max_tokens: int | None = self._model.max_seq_length

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """The vectors of `texts`; see `Embedder.embed`."""
        import numpy as np

        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        # Sorted, so that a batch is padded little; the package sorts within one call only.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), _BATCH_TEXTS):
            batch = order[start : start + _BATCH_TEXTS]
            vectors[batch] = self._model.encode(
                [texts[index] for index in batch],
                batch_size=_BATCH_TEXTS,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
            if progress is not None:
                progress(start + len(batch))
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"the embedding model {self.name} gave vectors not finite")
        return vectors

    def windows(self, text: str) -> list[str]:
        """`text` in pieces that the model reads whole; see `Embedder.windows`."""
        if self.max_tokens is None:
            return [text]
        special = self._model.tokenizer.num_special_tokens_to_add()
        return cut_into_windows(text, self.max_tokens - special, self._tokenize)

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
