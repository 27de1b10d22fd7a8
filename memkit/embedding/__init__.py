"""Turn text into vectors.

`load_embedder` returns the embedder that the settings name. The default, `local`, is all-MiniLM-L6-v2 on ONNX
Runtime and needs no torch. Text leaves the machine only with the services in `remote.PROVIDERS`, which only
the user can choose.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from memkit.text import one_line, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

# ONNX Runtime 1.31 sends usage data to its makers, under an id in the user's cache. It reads this variable
# when it is imported, which only this package does; `disable_telemetry_events` comes too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

EXCERPT_CHARACTERS = 160

_STATUS_NAMES = ("status_code", "http_status", "code")  # in errors of OpenAI and Ollama, Voyage, Google
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (not valid|expired)")  # Google's messages, with status 400


class Embedder(Protocol):
    """Turns text into vectors. The dot product of two vectors is their cosine similarity."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are not comparable."""

    @property
    def dimensions(self) -> int | None:
        """The length of a vector; None if it is known only from the first vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages, float32 (len(texts), dimensions), each of length 1.

        In the order of `texts`. The part of a text beyond the model's limit is ignored. Raise
        `EmbeddingError`, or its subclass `UnusableVectorError` if one text is at fault.
        """

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, float32 (dimensions,), of length 1. Raise `EmbeddingError`."""

    def windows(self, text: str) -> list[str]:
        """Return `text` cut into pieces that fit the model's limit; `[text]` if it fits.

        Together they have every character of `text` that is not blank.
        """


class UnusableVectorError(EmbeddingError):
    """A model refused a text, or returned no usable vector for it.

    `position` is the index of that text in the request, or of the first text if it is unknown which one is at
    fault. `is_general` means that every other text would have the same problem.
    """

    def __init__(self, model: str, position: int, reason: str, *, is_general: bool = False) -> None:
        super().__init__(f"the embedding model {model} {reason}")
        self.position = position
        self.is_general = is_general


def find_embedder(
    home: Home, chosen: EmbeddingSettings, announce: Callable[[str], None] | None = None
) -> tuple[Embedder | None, str]:
    """Return the embedder that the settings name. If it is not available, return None and the reason."""
    if chosen.provider == "none":
        return None, "embedding.provider is none"
    try:
        return load_embedder(home, chosen, announce), ""
    except EmbeddingError as error:
        logger.warning("%s", error)
        return None, str(error)


def start_loading(
    home: Home, chosen: EmbeddingSettings, announce: Callable[[str], None] | None = None
) -> Callable[[], tuple[Embedder | None, str]]:
    """Return a function that returns what `find_embedder` does, from the second call on the same.

    A local model whose files are here loads meanwhile, in a thread: mostly outside of the interpreter.
    """
    from memkit.embedding import weights

    find = functools.cache(lambda: find_embedder(home, chosen, announce))
    is_local = (chosen.provider, chosen.model) == ("local", weights.MODEL)
    if not is_local or not weights.is_verified(weights.model_directory(home)):
        return find
    from concurrent.futures import ThreadPoolExecutor

    thread = ThreadPoolExecutor(1)
    loading = thread.submit(find)
    thread.shutdown(wait=False)
    return loading.result


def load_embedder(
    home: Home, chosen: EmbeddingSettings, announce: Callable[[str], None] | None = None
) -> Embedder:
    """Return the embedder that the settings name.

    `announce` gets a line about a download. Raise `EmbeddingError`, also if a package or a key is missing,
    or its subclass `WeightsUnavailableError` if no source has the weights.
    """
    from memkit.embedding import models, remote, weights

    provider, model = chosen.provider, chosen.model
    if provider != "local":
        prefixes = models.prefixes(model, chosen.query_prefix, chosen.passage_prefix)
        if provider == "multilingual":
            from memkit.embedding.multilingual import MultilingualEmbedder
            return MultilingualEmbedder(prefixes)
        if provider in remote.PROVIDERS:
            return remote.RemoteEmbedder(home, chosen, prefixes)
        from memkit.embedding.local import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model, prefixes, allow_download=chosen.download)
    if model != weights.MODEL:
        raise EmbeddingError(
            f"the local embedding provider runs {weights.MODEL} only; for {model} set "
            "embedding.provider to multilingual or sentence-transformers"
        )
    directory = weights.ensure_weights(home, allow_download=chosen.download, announce=announce)
    from memkit.embedding.local import LocalEmbedder

    return LocalEmbedder(directory)


def check_vectors(
    model: str, vectors: Sequence[Any] | NDArray[Any], count: int, dimensions: int | None
) -> None:
    """Raise `UnusableVectorError` unless there are `count` usable vectors of one length.

    A vector is not usable if it is empty, has only zeros, or has NaN or infinity in it. `dimensions` is the
    required length; None requires the length of the first vector.
    """
    import numpy as np

    if len(vectors) != count:
        reason = f"gave {len(vectors)} vectors for {count} texts"
        raise UnusableVectorError(model, 0, reason, is_general=True)
    for position, vector in enumerate(vectors):
        if not len(vector):
            raise UnusableVectorError(model, position, "gave an empty vector")
        dimensions = dimensions or len(vector)
        if len(vector) != dimensions:
            reason = (
                f"gave a vector of {len(vector)} dimensions, but the others have {dimensions}; if the "
                "model changed, run `memkit index --rebuild` in a terminal of your own"
            )
            raise UnusableVectorError(model, position, reason, is_general=True)
        if not np.isfinite(vector).all():
            raise UnusableVectorError(model, position, "gave a vector that is not finite")
        if not np.any(vector):
            raise UnusableVectorError(model, position, "gave a vector of zeros")


def normalize(vectors: Sequence[Any] | NDArray[Any]) -> NDArray[np.float32]:
    """Return checked vectors as float32 (count, dimensions), each row scaled to length 1."""
    import numpy as np

    matrix = np.array(vectors, dtype=np.float64)  # squares of float32 could overflow or vanish
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix.astype(np.float32)


def import_chroma() -> None:
    """Import `chromadb`, which takes a second, without the settings of the working directory.

    Chroma reads settings from a `.env` in the working directory when it is imported. That file may come with
    a repository, or belong to another program and be invalid for Chroma. `chromadb.Settings` reads it again
    unless it is called with `_env_file=None`.

    Meanwhile Python does not look for cycles among the 93,000 objects that it makes: a tenth of the time.
    """
    if "chromadb" in sys.modules:
        return
    try:
        before = os.getcwd()
    except FileNotFoundError:  # the directory was removed, so it has no such file
        before = ""
    os.chdir(os.path.abspath(os.sep))
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        import chromadb  # noqa: F401
    finally:
        if is_collecting:
            gc.enable()
        if before:
            os.chdir(before)


def http_status(error: Exception) -> int | None:
    """Return the HTTP status in an error of a provider's package, or None if there was no answer."""
    for name in _STATUS_NAMES:  # the packages share no class of errors
        status = getattr(error, name, None)
        if isinstance(status, int) and status > 0:
            return status
    return None


def is_bad_key(status: int | None, message: str) -> bool:
    """Return whether an HTTP answer of this status and message rejects the key."""
    return status in (401, 403) or _BAD_KEY.search(message) is not None


def excerpt(message: str, *secrets: str) -> str:
    """Return the beginning of a provider's message as one line, redacted and without `secrets`."""
    from memkit.privacy.redact import redact  # its patterns take long to compile

    for secret in filter(None, secrets):
        message = message.replace(secret, "[redacted:key]")
    return one_line(printable(redact(message)), EXCERPT_CHARACTERS)
