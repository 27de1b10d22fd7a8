"""Models that run elsewhere: at OpenAI, Google or Voyage, or in an Ollama server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from memkit.embedding.chroma import import_chroma
from memkit.embedding.errors import as_embedding_error
from memkit.embedding.models import WINDOW_TOKENS, Prefixes, tokens_read
from memkit.embedding.providers import PROVIDERS, Function
from memkit.embedding.vectors import UnusableVectorError, check, normalised
from memkit.embedding.windows import cut_into_windows, rough_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memkit.embedding import Progress

REQUEST_BYTES = 300_000
"""The most text in one request: OpenAI takes 300,000 tokens, and no text has more tokens than bytes."""


class RemoteEmbedder:
    """A model of one of the `PROVIDERS`. Text leaves this process, mostly also this machine.

    How long its vectors are is known when the first one is here; all must be as long as that.
    """

    dimensions = None

    def __init__(self, provider: str, model: str, prefixes: Prefixes) -> None:
        """Connect; nothing is sent yet. Raises `EmbeddingError` if a package or key is missing."""
        self._provider = PROVIDERS[provider]
        self._provider.check()
        self._model = model
        self._prefixes = prefixes
        self._length: int | None = None
        self.name = f"{provider}/{model}"
        self.max_tokens = min(WINDOW_TOKENS, tokens_read(model, self._provider.tokens))

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """The vectors of passages; see `Embedder.embed`.

        Raises `UnusableVectorError` for a text that has none, else `EmbeddingError`.
        """
        parts: list[NDArray[np.float32]] = []
        done = 0
        for batch in self._batches([self._prefixed(text, self._prefixes.passage) for text in texts]):
            try:
                parts.append(self._request(self._passages, batch))
            except UnusableVectorError as error:
                raise error.at(done + error.position) from None
            done += len(batch)
            if progress is not None:
                progress(done)
        return np.concatenate(parts) if parts else np.empty((0, self._length or 0), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query; see `Embedder.embed_query`."""
        vector: NDArray[np.float32] = self._request(
            self._queries, [self._prefixed(text, self._prefixes.query)]
        )[0]
        return vector

    def windows(self, text: str) -> list[str]:
        """`text` in pieces that the model reads whole, as far as can be told without its tokenizer."""
        return self._cut(text, self._prefixes.passage)

    @cached_property
    def _passages(self) -> Function:
        return self._connect(for_queries=False)

    @cached_property
    def _queries(self) -> Function:
        return self._connect(for_queries=True)

    def _connect(self, for_queries: bool) -> Function:
        try:
            import_chroma()
            return self._provider.connect(self._model, for_queries)
        except Exception as error:  # noqa: BLE001 - every provider's package has its own
            raise as_embedding_error(self._provider, self._model, error) from None

    def _request(self, function: Function, texts: list[str]) -> NDArray[np.float32]:
        try:
            answers: list[Any] = function(texts)
        except Exception as error:  # noqa: BLE001 - as above; it and its causes may hold the key
            raise as_embedding_error(self._provider, self._model, error) from None
        check(self.name, answers, len(texts), self._length)
        self._length = len(answers[0])
        return normalised(answers)

    def _prefixed(self, text: str, prefix: str) -> str:
        # A lone surrogate, as an argument of a command may hold, cannot be sent.
        readable = text.encode("utf-8", "replace").decode("utf-8")
        return prefix + self._cut(readable, prefix)[0]

    def _cut(self, text: str, prefix: str) -> list[str]:
        room = max(1, self.max_tokens - len(rough_tokens(prefix)))
        if len(text.encode("utf-8", "replace")) <= room:  # no tokenizer makes more of it
            return [text]
        return cut_into_windows(text, room, rough_tokens)

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            length = len(text.encode())
            if batch and (
                len(batch) == self._provider.texts_at_once or size + length > REQUEST_BYTES
            ):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += length
        if batch:
            yield batch
