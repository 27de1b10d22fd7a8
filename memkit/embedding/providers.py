"""The services that embed: what each one needs, and the connection to it by Chroma's functions.

Keys come from the providers' own environment variables and from nowhere else.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from memkit.environment import install_command
from memkit.errors import EmbeddingError

Function = Callable[[list[str]], list[Any]]
"""Texts in, one array of numbers a text out; raises whatever the provider's client raises."""

OLLAMA_URL = "http://127.0.0.1:11434"
"""Where an Ollama server listens by default."""

_OLLAMA_SECONDS = 300
"""How long Ollama may take to answer: it loads the model first, and may have no graphics card.

Chroma would give up after 60 seconds; Ollama's own client never.
"""


@dataclass(frozen=True)
class EmbeddingService:
    """A service that embeds.

    Attributes:
        name: as in the setting `embedding.provider`.
        package: what to install.
        module: what to import from it.
        keys: the environment variables that may hold its key, the first one found counts.
        tokens: how many tokens a model of it reads, if nothing is known about the model.
        texts_at_once: how many texts go out in one request.
        connect: makes the function for a model; the second argument says whether it is for queries.
    """

    name: str
    package: str
    module: str
    keys: tuple[str, ...]
    tokens: int
    texts_at_once: int
    connect: Callable[[str, bool], Function]

    def check(self) -> None:
        """Raise `EmbeddingError`, saying what to do, if the package or a key is missing."""
        try:
            importlib.import_module(self.module)
        except ImportError as error:
            raise EmbeddingError(
                f"the embedding provider {self.name} needs the package {self.package}; run "
                f"`{install_command(self.package)}`"
            ) from error
        if not self.keys:
            return
        variable = found_variable(self.keys)
        if not variable:
            raise EmbeddingError(
                f"the embedding provider {self.name} needs a key; set the environment variable "
                f"{' or '.join(self.keys)}"
            )
        key = os.environ[variable]
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise EmbeddingError(
                f"{variable} holds more than a key (a blank, a line end, …); set it to the key alone"
            )

    @property
    def key_variable(self) -> str:
        """The variable its key is in, for messages."""
        return found_variable(self.keys) or "OLLAMA_API_KEY"


def found_variable(names: tuple[str, ...]) -> str:
    """The first of these environment variables that is set to something; empty if none is."""
    return next((name for name in names if os.environ.get(name)), "")


def ollama_place() -> str:
    """Where the Ollama server is, as may be shown: without the name and password a URL can hold."""
    url = os.environ.get("OLLAMA_HOST") or OLLAMA_URL
    return urlsplit(url if "://" in url else f"http://{url}").netloc.rpartition("@")[2]


def without_secrets(text: str) -> str:
    """`text` without any key that the environment holds."""
    for provider in PROVIDERS.values():
        for variable in (*provider.keys, "OLLAMA_API_KEY"):
            if key := os.environ.get(variable):
                text = text.replace(key, f"[{variable}]")
    return text


def _connect_openai(model: str, for_queries: bool) -> Function:
    from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction

    return OpenAIEmbeddingFunction(model_name=model, api_key_env_var="OPENAI_API_KEY")


def _connect_google(model: str, for_queries: bool) -> Function:
    from chromadb.utils.embedding_functions import GoogleGeminiEmbeddingFunction

    return GoogleGeminiEmbeddingFunction(
        model_name=model,
        task_type="RETRIEVAL_QUERY" if for_queries else "RETRIEVAL_DOCUMENT",
        api_key_env_var=found_variable(_GOOGLE_KEYS),
        vertexai=False,
    )


def _connect_voyage(model: str, for_queries: bool) -> Function:
    from chromadb.utils.embedding_functions import VoyageAIEmbeddingFunction

    return VoyageAIEmbeddingFunction(
        model_name=model,
        api_key_env_var="VOYAGE_API_KEY",
        input_type="query" if for_queries else "document",
        truncation=False,  # a text that is too long is an error, not a shorter text
    )


def _connect_ollama(model: str, for_queries: bool) -> Function:
    from chromadb.utils.embedding_functions import OllamaEmbeddingFunction

    url = os.environ.get("OLLAMA_HOST") or OLLAMA_URL
    return OllamaEmbeddingFunction(url=url, model_name=model, timeout=_OLLAMA_SECONDS)


_GOOGLE_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

# Tokens read: https://platform.openai.com/docs/guides/embeddings, https://ai.google.dev/gemini-api/docs/embeddings,
# https://docs.voyageai.com/docs/embeddings; of an unknown model on Ollama, what a BERT reads. Texts in a
# request: Google takes 100, the others more. Ollama computes them while we wait, so fewer.
PROVIDERS: Mapping[str, EmbeddingService] = {
    provider.name: provider
    for provider in (
        EmbeddingService("openai", "openai", "openai", ("OPENAI_API_KEY",), 8191, 100, _connect_openai),
        EmbeddingService("google", "google-genai", "google.genai", _GOOGLE_KEYS, 2048, 100, _connect_google),
        EmbeddingService("voyage", "voyageai", "voyageai", ("VOYAGE_API_KEY",), 32000, 100, _connect_voyage),
        EmbeddingService("ollama", "ollama", "ollama", (), 512, 32, _connect_ollama),
    )
}
"""All of them by name."""
