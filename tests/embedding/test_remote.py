"""Models that run elsewhere: the providers' real packages against a stand-in for the service."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memkit.embedding import UnusableVectorError, load_embedder
from memkit.embedding.models import rough_tokens, space
from memkit.embedding.remote import PROVIDERS, RemoteEmbedder
from memkit.errors import EmbeddingError
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from memkit.settings.load import how_to_set
from tests.embedding.service import (
    AZURE,
    BAD_VECTORS,
    GOOGLE,
    KEY,
    OLLAMA,
    OPENAI,
    VOYAGE,
    Service,
    words,
)

VARIABLES = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY")


def load(home: Home, provider: str, model: str = "", **chosen: Any) -> RemoteEmbedder:
    if provider == "google":
        pytest.importorskip("google.genai")
    embedder = load_embedder(home, EmbeddingSettings(provider=provider, model=model, **chosen))  # type: ignore[arg-type]
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


@pytest.fixture(autouse=True)
def voyage_at_the_stand_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Voyage's package reads its address from no variable, and Chroma passes none."""
    if hasattr(request.node, "callspec") and request.node.callspec.params.get("provider") == "voyage":
        base = pytest.importorskip("voyageai._base")
        url = request.getfixturevalue("service").url
        monkeypatch.setattr(base, "get_default_base_url", lambda key: f"{url}/voyage/v1")


PROVIDERS_HERE = pytest.mark.parametrize("provider", ["openai", "ollama", "google", "voyage"])


@PROVIDERS_HERE
def test_vectors_are_normalized_and_in_order(home: Home, service: Service, provider: str) -> None:
    texts = [f"text {n}" for n in range(250)]
    embedder = load(home, provider, query_prefix="", passage_prefix="")
    assert service.requests == []  # loading sends nothing
    vectors = embedder.embed(texts)
    assert (vectors.shape, vectors.dtype) == ((250, 8), np.float32)
    expected = np.array([words(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(vectors, expected, atol=1e-6)
    assert service.texts == texts
    assert max(len(request.texts) for request in service.requests) <= 100
    assert embedder.embed([]).shape == (0, 8)


@pytest.mark.parametrize(
    ("provider", "path", "header", "key", "purposes"),
    [
        ("google", GOOGLE, "x-goog-api-key", KEY, ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]),
        ("voyage", VOYAGE, "authorization", f"Bearer {KEY}", ["document", "query"]),
    ],
)
def test_queries_differ_from_passages(
    home: Home, service: Service, provider: str, path: str, header: str, key: str, purposes: list[str]
) -> None:
    embedder = load(home, provider)
    embedder.embed(["it is 7443"])
    embedder.embed_query("which port")
    assert [one.path for one in service.requests] == [path, path]
    assert [one.purpose for one in service.requests] == purposes
    assert [one.headers[header] for one in service.requests] == [key, key]
    assert service.texts == ["it is 7443", "which port"]


def test_a_bad_key_of_google_has_the_status_400(home: Home, service: Service) -> None:
    service.refuse(400, "API key not valid. Please pass a valid API key.")
    with pytest.raises(EmbeddingError) as caught:
        load(home, "google").embed(["a"])
    assert str(caught.value) == f"google rejects the key (400); {how_to_set('google')}"


def test_a_request_is_not_too_large(home: Home, service: Service) -> None:
    load(home, "openai").embed(["word " * 800] * 160)
    sizes = [sum(map(len, request.texts)) for request in service.requests]
    assert len(sizes) == 3
    assert max(sizes) <= 300_000


def test_the_key_goes_to_the_service_only(home: Home, service: Service) -> None:
    load(home, "openai").embed(["a"])
    load(home, "ollama").embed(["a"])
    first, second = service.requests
    assert (first.path, first.headers["authorization"]) == (OPENAI, f"Bearer {KEY}")
    assert second.path == OLLAMA
    assert KEY not in str(second.headers)


@pytest.mark.parametrize(
    ("provider", "model", "given", "query", "passage"),
    [
        ("ollama", "nomic-embed-text", {}, "search_query: ", "search_document: "),
        ("ollama", "nomic-embed-text", {"query_prefix": "Q ", "passage_prefix": ""}, "Q ", ""),
        ("openai", "text-embedding-3-small", {}, "", ""),
        ("openai", "text-embedding-3-small", {"passage_prefix": "P "}, "", "P "),
        ("openai", "intfloat/multilingual-e5-large", {}, "query: ", "passage: "),
    ],
)
def test_prefixes_reach_the_service(
    home: Home, service: Service, provider: str, model: str, given: dict[str, str], query: str,
    passage: str,
) -> None:  # fmt: skip
    embedder = load(home, provider, model, **given)
    vector = embedder.embed_query("which port")
    embedder.embed(["it is 7443", "and 443"])
    assert vector.shape == (8,)
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert service.texts == [f"{query}which port", f"{passage}it is 7443", f"{passage}and 443"]
    assert {request.model for request in service.requests} == {model}


class TestAddresses:
    """`embedding.base_url`, and a deployment at Azure OpenAI."""

    @pytest.fixture(autouse=True)
    def no_variables(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """The setting wins over variables, which lead to nowhere."""
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setenv("OLLAMA_HOST", "http://user:secret@127.0.0.1:9")
        monkeypatch.setattr("time.sleep", lambda seconds: None)  # between the package's own tries

    def test_another_server(self, home: Home, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        embedder = load(home, "openai", "bge-m3", base_url=f"{service.url}/v1")
        assert embedder.embed(["a"]).shape == (1, 8)
        assert embedder.embed_query("a").shape == (8,)
        assert {(one.path, one.model) for one in service.requests} == {(OPENAI, "bge-m3")}
        assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"
        monkeypatch.delenv("OPENAI_API_KEY")  # such a server may need no key
        load(home, "openai", base_url=f"{service.url}/v1").embed(["a"])
        assert service.requests[-1].headers["authorization"] == "Bearer none"
        assert "OPENAI_API_KEY" not in os.environ
        with pytest.raises(EmbeddingError, match="the embedding provider openai needs a key"):
            load(home, "openai", base_url=service.url, azure_deployment="mine")
        load(home, "ollama", base_url=service.url).embed(["a"])
        assert service.requests[-1].path == OLLAMA

    def test_azure(self, home: Home, service: Service) -> None:
        embedder = load(home, "openai", base_url=service.url, azure_deployment="mine")
        assert embedder.embed(["a"]).shape == (1, 8)
        assert embedder.embed_query("a").shape == (8,)
        assert {one.path for one in service.requests} == {AZURE}
        assert service.requests[0].headers["api-key"] == KEY
        assert service.texts == ["a", "a"]
        other = load(home, "openai", base_url=service.url, azure_deployment="mine", azure_api_version="2026-01-01")
        with pytest.raises(EmbeddingError):
            other.embed(["a"])
        assert service.requests[-1].path == AZURE.replace("2024-10-21", "2026-01-01")
        address = "https://mine.openai.azure.com"
        chosen = [EmbeddingSettings(provider="openai", base_url=address, azure_deployment=one) for one in ("", "1", "2")]
        assert len({space(one) for one in chosen}) == 3  # vectors of two deployments are not compared

    def test_nobody_answers(self, home: Home) -> None:
        for provider, said in {
            "openai": "openai cannot be reached",
            "ollama": "no Ollama server answers at 127.0.0.1:9; start it with `ollama serve` or set OLLAMA_HOST",
        }.items():
            with pytest.raises(EmbeddingError, match=said) as caught:
                load(home, provider).embed(["a"])
            assert KEY not in "".join(traceback.format_exception(caught.value))
            assert "secret" not in str(caught.value)
        with pytest.raises(EmbeddingError, match=r"openai at 127\.0\.0\.1:9 cannot be reached"):
            load(home, "openai", base_url="http://127.0.0.1:9/v1").embed(["a"])
        with pytest.raises(EmbeddingError, match=r"answers at 127\.0\.0\.1:9; .* set embedding\.base_url$"):
            load(home, "ollama", base_url="http://127.0.0.1:9").embed(["a"])


def test_a_chunk_is_one_window_and_a_long_query_is_cut(home: Home, service: Service) -> None:
    chunk = "Breadcrumb > Of some length\n" + "Some words of a usual chunk, 東京. " * 45
    assert load(home, "openai").windows(chunk) == load(home, "ollama").windows(chunk) == [chunk]
    assert len(load(home, "openai").windows("word, " * 5000)) == 4
    load(home, "openai").embed_query("word " * 20_000)
    assert 7_000 < len(service.texts[0]) < 10_000
    load(home, "openai").embed_query("a\ud800b")
    assert service.texts[1:] == ["a?b"]


def test_windows_leave_room_for_the_prefix(home: Home, service: Service) -> None:
    text = "ab " * 510
    embedder = load(home, "ollama", "mxbai-embed-large", passage_prefix="passage: ")
    windows = embedder.windows(text)
    assert " ".join(windows).split() == text.split()
    embedder.embed(windows)
    assert service.texts == [f"passage: {window}" for window in windows]
    assert max(len(rough_tokens(sent)) for sent in service.texts) <= 512


@PROVIDERS_HERE
@pytest.mark.parametrize("kind", BAD_VECTORS)
def test_an_unusable_vector_is_an_error(home: Home, service: Service, provider: str, kind: str) -> None:
    service.give("bad", BAD_VECTORS[kind])
    with pytest.raises(UnusableVectorError) as caught:
        load(home, provider).embed(["good", "bad"])
    assert not caught.value.is_general
    assert "\n" not in str(caught.value)


def test_the_bad_text_is_known_across_requests(home: Home, service: Service) -> None:
    service.give("bad", BAD_VECTORS["zeros"])
    with pytest.raises(UnusableVectorError, match="gave a vector of zeros") as caught:
        load(home, "openai").embed([*["good"] * 130, "bad", "good"])
    assert caught.value.position == 130


@PROVIDERS_HERE
def test_another_length_or_count_is_an_error(home: Home, service: Service, provider: str) -> None:
    service.give("bad", [1.0] * 12)
    with pytest.raises(UnusableVectorError, match="12 dimensions, but the others have 8") as caught:
        load(home, provider).embed(["good", "bad"])
    assert (caught.value.position, caught.value.is_general) == (1, True)
    embedder = load(home, provider)
    embedder.embed(["good"])
    with pytest.raises(UnusableVectorError, match="12 dimensions"):
        embedder.embed_query("bad")
    for count in (0, 1, 3):
        service.vectors = lambda texts: [[1.0] * 8] * count  # noqa: B023
        with pytest.raises(UnusableVectorError, match=f"gave {count} vectors for 2 texts" if count else "") as caught:
            load(home, provider).embed(["one", "two"])
        assert caught.value.is_general or not count


@pytest.mark.parametrize(
    ("provider", "deployment", "status", "said"),
    [
        ("openai", "", 401, f"openai rejects the key (401); {how_to_set('openai')}"),
        ("openai", "", 403, f"openai rejects the key (403); {how_to_set('openai')}"),
        ("openai", "", 404, "openai has no model text-embedding-3-small (404); set embedding.model"),
        ("openai", "", 429, "openai reports that your account's limit is reached (429); try again later"),
        ("openai", "", 503, "openai cannot embed at the moment (503); try again later"),
        ("openai", "mine", 404, "Azure OpenAI has no deployment mine (404); set embedding.azure_deployment"),
        ("openai", "mine", 401, f"openai rejects the key (401); {how_to_set('openai')}"),
        ("ollama", "", 404, "ollama has no model nomic-embed-text (404); run `ollama pull nomic-embed-text` or set "
                            "embedding.model"),
        ("ollama", "", 500, "ollama cannot embed at the moment (500); try again later"),
        ("google", "", 403, f"google rejects the key (403); {how_to_set('google')}"),
        ("google", "", 404, "google has no model gemini-embedding-001 (404); set embedding.model"),
        ("google", "", 429, "google reports that your account's limit is reached (429); try again later"),
        ("google", "", 503, "google cannot embed at the moment (503); try again later"),
        ("voyage", "", 401, f"voyage rejects the key (401); {how_to_set('voyage')}"),
        ("voyage", "", 429, "voyage reports that your account's limit is reached (429); try again later"),
        ("voyage", "", 503, "voyage cannot embed at the moment (503); try again later"),
    ],
)  # fmt: skip
def test_error_messages_have_advice(
    home: Home, service: Service, provider: str, deployment: str, status: int, said: str
) -> None:
    service.refuse(status, f"the key {KEY} is not\nto my taste")
    chosen = [{}] if provider in ("google", "voyage") else [{}, {"base_url": service.url}]
    if deployment:
        chosen = [{"base_url": service.url, "azure_deployment": deployment}]
    for more in chosen:
        expected = said + " or embedding.base_url" * (status == 404 and bool(more))
        embedder = load(home, provider, **more)
        for call in (lambda: embedder.embed(["a"]), lambda: embedder.embed_query("a")):  # noqa: B023
            with pytest.raises(EmbeddingError) as caught:
                call()
            assert not isinstance(caught.value, UnusableVectorError)
            assert str(caught.value) == expected
            assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("provider", "status", "message"),
    [
        ("openai", 400, f"too many tokens, dear {KEY}"),
        ("ollama", 400, "the input length exceeds the context length"),
        ("google", 400, f"too many tokens, dear {KEY}"),
        ("voyage", 400, f"too many tokens, dear {KEY}"),
        ("ollama", 500, "failed to encode response: json: unsupported value: NaN"),
    ],
)
def test_a_rejected_text(home: Home, service: Service, provider: str, status: int, message: str) -> None:
    service.refuse(status, message)
    with pytest.raises(UnusableVectorError, match=f"rejects the text \\({status}\\)") as caught:
        load(home, provider).embed(["a"])
    assert message.replace(KEY, "[redacted:key]") in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_an_unreadable_answer(home: Home, service: Service) -> None:
    service.vectors = lambda texts: ["not a vector"]
    with pytest.raises(UnusableVectorError, match="unreadable answer"):
        load(home, "ollama").embed(["a"])


@pytest.mark.parametrize(
    ("provider", "package"),
    [("openai", "openai"), ("google", "google-genai"), ("voyage", "voyageai"), ("ollama", "ollama")],
)
def test_a_missing_package(home: Home, monkeypatch: pytest.MonkeyPatch, provider: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, PROVIDERS[provider].module, None)
    with pytest.raises(EmbeddingError) as caught:
        load_embedder(home, EmbeddingSettings(provider=provider, model="some"))  # type: ignore[arg-type]
    assert f"{provider} needs the package {package}" in str(caught.value)
    assert f"{sys.executable} -I -m pip install '{package}>=" in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "variables"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("google", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("voyage", "VOYAGE_API_KEY"),
    ],
)
def test_a_missing_key(home: Home, monkeypatch: pytest.MonkeyPatch, provider: str, variables: str) -> None:
    module = PROVIDERS[provider].module
    monkeypatch.setitem(sys.modules, module, ModuleType(module))
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    # What Chroma would take too, but is no standard variable.
    monkeypatch.setenv("CHROMA_OPENAI_API_KEY", KEY)
    with pytest.raises(EmbeddingError) as caught:
        load_embedder(home, EmbeddingSettings(provider=provider, model="some"))  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"the embedding provider {provider} needs a key; run `memkit config set keys.{provider}` in your own "
        f"terminal, or set {variables} there"
    )


@pytest.mark.parametrize("key", [f"{KEY}\nmore", f"{KEY} more", f"{KEY}\u2019"])
def test_a_key_with_more_after_it(home: Home, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY holds more than a key") as caught:
        load(home, "openai")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("variable", [None, " "])
def test_a_key_in_the_settings(
    home: Home, service: Service, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    """It reaches the service, and no variable keeps it: programs that memkit starts would inherit it."""
    own = "sk-of-the-settings"
    Path(home.root).mkdir()
    Path(home.config_file).write_text(f'[keys]\nopenai = "{own}"\n')
    load(home, "openai").embed(["a"])
    assert service.requests[-1].headers["authorization"] == f"Bearer {KEY}"  # the variable wins
    monkeypatch.delenv("OPENAI_API_KEY")
    if variable is not None:
        monkeypatch.setenv("OPENAI_API_KEY", variable)
    embedder = load(home, "openai")
    embedder.embed(["a"])
    embedder.embed_query("a")
    assert {one.headers["authorization"] for one in service.requests[1:]} == {f"Bearer {own}"}
    assert os.environ.get("OPENAI_API_KEY") == variable
    service.refuse(400, f"the key {own} is not to my taste")
    with pytest.raises(EmbeddingError, match="not to my taste") as caught:
        embedder.embed(["a"])
    assert own not in "".join(traceback.format_exception(caught.value))
