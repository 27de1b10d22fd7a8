"""Facts about models, and the names of their collections."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.embedding.models import cut_into_windows, prefixes, rough_tokens, space, tokens_read
from memkit.index.catalog import collection_name
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import EmbeddingSettings, load
from memkit.settings.load import Settings
from tests.ci import examples

PROVIDERS = ("local", "multilingual", "sentence-transformers", "openai", "google", "voyage", "ollama", "none")


@pytest.mark.parametrize(
    ("model", "query", "passage", "tokens"),
    [
        ("intfloat/e5-small-v2", "query: ", "passage: ", 512),
        ("intfloat/multilingual-e5-large", "query: ", "passage: ", 512),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", "", 512),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", "", 512),
        ("BAAI/bge-large-zh-v1.5", "为这个句子", "", 512),
        ("bge-m3:latest", "", "", 8192),
        ("bge-large:335m", "Represent this sentence", "", 512),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: ", 2048),
        ("nomic-embed-text:latest", "search_query: ", "search_document: ", 2048),
        ("mxbai-embed-large", "Represent this sentence", "", 512),
        ("snowflake-arctic-embed:137m", "Represent this sentence", "", 512),
        ("snowflake-arctic-embed2", "query: ", "", 8192),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", "", 8192),
        ("embeddinggemma:300m", "task: search result", "title: none | text: ", 2048),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", "", 32768),
        ("text-embedding-3-small", "", "", 7),
        ("my-bge-large", "", "", 7),
    ],
)
def test_known_models(model: str, query: str, passage: str, tokens: int) -> None:
    found = prefixes(model)
    assert found.query.startswith(query)
    assert bool(found.query) == bool(query)
    assert found.passage == passage
    assert tokens_read(model, 7) == tokens
    assert prefixes(model, "", "p") == ("", "p")


def test_every_provider_has_a_space(tmp_path: Path) -> None:
    def name(**chosen: str) -> str:
        settings = msgspec.convert(chosen, EmbeddingSettings)
        return collection_name(project, home, space(settings))

    project, home = Project(str(tmp_path)), Home(str(tmp_path / "home"))
    names = {name(provider=provider, model="one") for provider in PROVIDERS}
    assert len(names) == len(PROVIDERS) - 1  # without a provider, chunks wait for the local model
    assert name(provider="none") == name(provider="local") == name()
    assert name(provider="openai", model="one") != name(provider="openai", model="two")
    # What stands before a passage changes its vector; what stands before a query does not.
    assert name(provider="ollama") != name(provider="ollama", passage_prefix="")
    assert name(provider="ollama") == name(provider="ollama", passage_prefix="search_document: ")
    assert name(provider="ollama") == name(provider="ollama", query_prefix="")
    for model in ("m" * 300, "Модель/模型", "..", "-a-", "a/b:c@d"):
        made = name(provider="sentence-transformers", model=model)
        assert 3 <= len(made) <= 63
        assert made.replace("-", "").isalnum()
        assert made.isascii()


def test_a_repository_cannot_choose_a_provider(tmp_path: Path) -> None:
    home, project = Home(str(tmp_path / "home")), Project(str(tmp_path))
    Path(project.root, ".memkit.toml").write_text(
        "[embedding]\nprovider = 'openai'\nmodel = 'x'\nquery_prefix = 'q'\npassage_prefix = 'p'\n"
    )
    loaded = load.load(home, project)
    assert loaded.settings == Settings()
    assert len(loaded.refused) == 4


@settings(max_examples=examples(100))
@given(st.text(max_size=300), st.integers(4, 40))
def test_rough_tokens_are_at_least_half_the_bytes(text: str, limit: int) -> None:
    visible = "".join(text.split())
    assert len(rough_tokens(text)) >= len(visible.encode("utf-8", "replace")) / 2
    windows = cut_into_windows(text, limit, rough_tokens)
    assert "".join("".join(windows).split()) == visible
    assert all(len(rough_tokens(window)) <= limit for window in windows)
