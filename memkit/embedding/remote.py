"""Models that run elsewhere: at OpenAI, Azure OpenAI, Google, or Voyage, or in an Ollama server.

Chroma's embedding functions connect to them.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memkit.embedding import (
    UnusableVectorError,
    check_vectors,
    excerpt,
    http_status,
    import_chroma,
    is_bad_key,
    normalize,
)
from memkit.embedding.models import WINDOW_TOKENS, Prefixes, cut_into_windows, rough_tokens, tokens_read
from memkit.environment.extras import how_to_add
from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from memkit.settings.load import KEY_VARIABLES, find_key, how_to_set, with_keys
from memkit.text import encodable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Function = Callable[[list[str]], list[Any]]
"""Takes texts, returns one array of numbers per text, and raises any error of the provider's package."""

REQUEST_TEXTS = 64
"""The most texts in one request: Google takes 100, and OpenAI 300,000 tokens (75 windows)."""

_one_at_a_time = threading.Lock()

_NO_KEY = "none"
"""What OpenAI's package sends to a server that needs no key: it takes no empty one."""

_OLLAMA_SECONDS = 300
"""The time limit for Ollama, which loads the model first; Chroma's default is 60 seconds."""


@dataclass(frozen=True)
class EmbeddingService:
    """A service that embeds; `name` is the value of the setting `embedding.provider`."""

    name: str
    package: str
    module: str  # to import from the package
    keys: tuple[str, ...]  # environment variables; the first one that is set counts
    tokens: int  # how many an unknown model reads

    def check(self, home: Home, chosen: EmbeddingSettings) -> str:
        """Return the user's key, or "" if there is none and none is needed.

        Raise `EmbeddingError`, with advice, if the package or the key is missing.
        """
        try:
            importlib.import_module(self.module)
        except ImportError as error:
            raise EmbeddingError(
                f"the embedding provider {self.name} needs the package {self.package}; run "
                f"`{how_to_add(self.name)}`"
            ) from error
        key = find_key(with_keys(os.environ, home), self.keys, EmbeddingError)
        if needs_key(chosen) and not key:
            raise EmbeddingError(f"the embedding provider {self.name} needs a key; {how_to_set(self.name)}")
        return key

    def connect(self, chosen: EmbeddingSettings, key: str, for_queries: bool) -> Function:
        """Return the function that embeds queries or passages. Raise any error of the provider's package."""
        if not self.keys:
            return self._function(chosen, "", for_queries)
        variable = self.keys[0]
        with _one_at_a_time:  # Chroma's functions take a key from a variable only
            before = os.environ.get(variable)
            os.environ[variable] = key or _NO_KEY
            try:
                return self._function(chosen, variable, for_queries)
            finally:
                del os.environ[variable]
                if before is not None:
                    os.environ[variable] = before

    def _function(self, chosen: EmbeddingSettings, variable: str, for_queries: bool) -> Function:
        import_chroma()
        from chromadb.utils import embedding_functions as chroma

        model = chosen.model
        if self.name == "openai":
            is_azure = bool(chosen.azure_deployment)
            return chroma.OpenAIEmbeddingFunction(
                model_name=model, api_key_env_var=variable, api_base=chosen.base_url or None,
                api_type="azure" if is_azure else None, deployment_id=chosen.azure_deployment or None,
                api_version=chosen.azure_api_version if is_azure else None,
            )  # fmt: skip
        if self.name == "google":
            task = "RETRIEVAL_QUERY" if for_queries else "RETRIEVAL_DOCUMENT"
            return chroma.GoogleGeminiEmbeddingFunction(
                model_name=model, task_type=task, api_key_env_var=variable, vertexai=False
            )
        if self.name == "voyage":
            return chroma.VoyageAIEmbeddingFunction(
                model_name=model, api_key_env_var=variable, input_type="query" if for_queries else "document",
                truncation=False,  # report an error for a text that is too long
            )  # fmt: skip
        return chroma.OllamaEmbeddingFunction(
            url=_ollama_url(chosen), model_name=model, timeout=_OLLAMA_SECONDS
        )


# Tokens: https://platform.openai.com/docs/guides/embeddings, https://ai.google.dev/gemini-api/docs/embeddings,
# https://docs.voyageai.com/docs/embeddings; for Ollama, the limit of BERT.
PROVIDERS: Mapping[str, EmbeddingService] = {
    service.name: service
    for service in (
        EmbeddingService("openai", "openai", "openai", KEY_VARIABLES["openai"], 8191),
        EmbeddingService("google", "google-genai", "google.genai", KEY_VARIABLES["google"], 2048),
        EmbeddingService("voyage", "voyageai", "voyageai", KEY_VARIABLES["voyage"], 32000),
        EmbeddingService("ollama", "ollama", "ollama", (), 512),
    )
}


class RemoteEmbedder:
    """A model of one of the `PROVIDERS`. Text leaves this process, and mostly also this machine.

    The first vector decides the length; all others must have the same.
    """

    dimensions = None

    def __init__(self, home: Home, chosen: EmbeddingSettings, prefixes: Prefixes) -> None:
        """Raise `EmbeddingError` if the package or key is missing. Send nothing yet."""
        self._service = PROVIDERS[chosen.provider]
        self._key = self._service.check(home, chosen)
        self._connect = cache(partial(self._service.connect, chosen, self._key))
        self._chosen = chosen
        self._prefixes = prefixes
        self._length: int | None = None
        self.name = f"{chosen.provider}/{chosen.model}"
        self.max_tokens = min(WINDOW_TOKENS, tokens_read(chosen.model, self._service.tokens))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages; see `Embedder.embed`."""
        import numpy as np

        parts: list[NDArray[np.float32]] = []
        prefixed = [self._prefixed(text, self._prefixes.passage) for text in texts]
        for start in range(0, len(prefixed), REQUEST_TEXTS):
            try:
                parts.append(self._request(prefixed[start : start + REQUEST_TEXTS]))
            except UnusableVectorError as error:
                error.position += start
                raise
        return np.concatenate(parts) if parts else np.empty((0, self._length or 0), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query; see `Embedder.embed_query`."""
        prefixed = self._prefixed(text, self._prefixes.query)
        vector: NDArray[np.float32] = self._request([prefixed], for_queries=True)[0]
        return vector

    def windows(self, text: str) -> list[str]:
        """Return `text` in pieces that should fit the model's limit; its tokenizer is not available."""
        return self._cut(text, self._prefixes.passage)

    def _request(self, texts: list[str], *, for_queries: bool = False) -> NDArray[np.float32]:
        try:
            vectors = self._connect(for_queries)(texts)
        except Exception as error:  # noqa: BLE001 - each provider's package has its own errors
            # Without the cause, which may have the key in it.
            raise _embedding_error(self._service, self._chosen, self._key, error) from None
        check_vectors(self.name, vectors, len(texts), self._length)
        self._length = len(vectors[0])
        return normalize(vectors)

    def _prefixed(self, text: str, prefix: str) -> str:
        return prefix + self._cut(encodable(text), prefix)[0]

    def _cut(self, text: str, prefix: str) -> list[str]:
        limit = max(1, self.max_tokens - len(rough_tokens(prefix)))
        if len(text.encode("utf-8", "replace")) <= limit:  # it has no more tokens than bytes
            return [text]
        return cut_into_windows(text, limit, rough_tokens)


def needs_key(chosen: EmbeddingSettings) -> bool:
    """Return whether the provider needs a key. A server of the user's own, as LM Studio, may need none."""
    is_own_server = bool(chosen.base_url) and not chosen.azure_deployment
    return chosen.provider in PROVIDERS and bool(PROVIDERS[chosen.provider].keys) and not is_own_server


def _embedding_error(
    service: EmbeddingService, chosen: EmbeddingSettings, key: str, error: Exception
) -> EmbeddingError:
    # Chroma's function for Google wraps every error in a ValueError.
    if isinstance(error, ValueError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    status = http_status(error)
    message = excerpt(str(error), key, os.environ.get("OLLAMA_API_KEY", ""))
    name, model = service.name, chosen.model
    if is_bad_key(status, message):
        advice = how_to_set(name) if service.keys else "set OLLAMA_API_KEY to a valid one"
        return EmbeddingError(f"{name} rejects the key ({status}); {advice}")
    if status == 404 and chosen.azure_deployment:
        return EmbeddingError(
            f"Azure OpenAI has no deployment {chosen.azure_deployment} (404); set embedding.azure_deployment "
            "or embedding.base_url"
        )
    if status == 404:
        advice = f"run `ollama pull {model}` or " if name == "ollama" else ""
        or_url = " or embedding.base_url" if chosen.base_url else ""
        return EmbeddingError(f"{name} has no model {model} (404); {advice}set embedding.model{or_url}")
    if status == 429:
        return EmbeddingError(f"{name} reports that your account's limit is reached (429); try again later")
    # Ollama answers with status 500 and "NaN" when a model gives such a vector.
    if status in (400, 413, 422) or (status == 500 and "NaN" in message):
        return UnusableVectorError(f"{name}/{model}", 0, f"rejects the text ({status}): {message}")
    if status is not None and status >= 300:
        return EmbeddingError(f"{name} cannot embed at the moment ({status}); try again later")
    if status is not None or isinstance(error, (ValueError, TypeError, LookupError, AttributeError)):
        return UnusableVectorError(f"{name}/{model}", 0, f"gave an unreadable answer: {message}")
    if name == "ollama":
        server = _server(_ollama_url(chosen))
        return EmbeddingError(
            f"no Ollama server answers at {server}; start it with `ollama serve` or set "
            + ("embedding.base_url" if chosen.base_url else "OLLAMA_HOST")
        )
    if chosen.base_url:
        server = _server(chosen.base_url)
        return EmbeddingError(f"{name} at {server} cannot be reached ({message}); check embedding.base_url")
    return EmbeddingError(f"{name} cannot be reached ({message}); check the network and try again")


def _ollama_url(chosen: EmbeddingSettings) -> str:
    return chosen.base_url or os.environ.get("OLLAMA_HOST") or "http://127.0.0.1:11434"


def _server(url: str) -> str:
    return urlsplit(url if "://" in url else f"http://{url}").netloc.rpartition("@")[2]
