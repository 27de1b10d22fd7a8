"""Prices and ends of models."""

from __future__ import annotations

from datetime import date, timedelta
from typing import get_args, get_type_hints

import pytest

from memkit.llm import TokenUsage
from memkit.llm.anthropic import DEFAULT_MODEL
from memkit.llm.calls import _table, end_of, price
from memkit.llm.chat_completions import SERVICES
from memkit.settings import EmbeddingSettings, SummarizeSettings

MILLION = 1_000_000
BOTH = TokenUsage(tokens_in=MILLION, tokens_out=MILLION)


@pytest.mark.parametrize(("provider", "model", "dollars"), [
    ("anthropic", "claude-haiku-4-5", 6.0),
    ("anthropic", "claude-haiku-4-5-20251001", 6.0),
    ("claude-cli", "claude-haiku-4-5-20251001", 6.0),
    ("anthropic", "claude-opus-4-5-20251101", 30.0),
    ("anthropic", "claude-opus-4-20250514", 90.0),
    ("openai", "gpt-5-mini-2025-08-07", 2.25),
    ("google", "models/gemini-2.5-flash", 2.8),
    ("ollama", "llama3.2", 0.0),
    ("openai", "claude-haiku-4-5", None),
    ("anthropic", "claude-opus-4-99", None),
    ("openai", "gpt-5-pro", None),
    ("openai", "gpt-5x1", None),
    ("claude-cli", "haiku", 6.0),
    ("google", "text-embedding-004", None),  # it has an end
])  # fmt: skip
def test_price(provider: str, model: str, dollars: float | None) -> None:
    assert price(provider, model, BOTH) == pytest.approx(dollars)


def test_other_prices() -> None:
    """Cached tokens cost less, and the price that the provider names counts."""
    usage = TokenUsage(tokens_in=10 * MILLION, cache_read=4 * MILLION, cache_written=2 * MILLION)
    dollars = price("anthropic", "claude-haiku-4-5", usage)
    assert dollars == pytest.approx(4 * 1.0 + 4 * 0.1 + 2 * 1.25)
    read = TokenUsage(tokens_in=MILLION, cache_read=MILLION)
    assert price("openai", "gpt-4o", read) == pytest.approx(1.25)
    usage = TokenUsage(tokens_in=MILLION, usd=0.25)
    assert price("claude-cli", "claude-haiku-4-5", usage) == 0.25
    assert price("openai", "no such model", usage) == 0.25


@pytest.mark.parametrize(("url", "dollars"), [
    ("http://localhost:1234/v1", 0.0), ("http://127.0.0.1:1234/v1", 0.0), ("http://[::1]:1234/v1", 0.0),
    ("https://proxy.example/v1", None), ("http://192.168.0.7:1234/v1", None), ("no address", None),
])  # fmt: skip
def test_other_addresses(url: str, dollars: float | None) -> None:
    assert price("ollama", "gpt-oss", BOTH, url) == dollars
    assert price("openai", "gpt-5-mini", BOTH, url) is None


@pytest.mark.parametrize(("provider", "model", "day"), [
    ("openai", "gpt-5-mini", date(2026, 12, 11)), ("openai", "gpt-5-mini-2025-08-07", date(2026, 12, 11)),
    ("google", "models/gemini-2.5-flash", date(2026, 12, 1)),
    ("claude-cli", "claude-sonnet-4-5", date(2026, 11, 30)),
    ("google", "text-embedding-004", date(2026, 1, 14)), ("openai", "gpt-5.4-mini", None),
    ("openai", "unknown", None), ("ollama", "gpt-5-mini", None),
])  # fmt: skip
def test_end(provider: str, model: str, day: date | None) -> None:
    assert end_of(provider, model) == day
    assert end_of(provider, model, "https://proxy.example/v1") is None


def test_default_models_and_the_table() -> None:
    # Within a year after the last look at the vendors' lists.
    chosen = [("anthropic", DEFAULT_MODEL)] + [(one.name, one.model) for one in SERVICES.values()]
    assert all(price(*one, BOTH) is not None for one in chosen)
    for name in get_args(get_type_hints(EmbeddingSettings, include_extras=True)["provider"])[0].__args__:
        chosen.append((name, EmbeddingSettings(provider=name).model))
    for provider, model in chosen:
        day = end_of(provider, model)
        assert day is None or day > _table()["as_of"] + timedelta(days=365)
    # Every entry names a known provider, and costs at least as much to write as to read.
    assert _table()["as_of"] > date(2026, 1, 1)
    (names, _) = get_args(get_type_hints(SummarizeSettings, include_extras=True)["provider"])
    for provider, table in _table().items():
        if provider == "as_of":
            continue
        assert provider in get_args(names)
        for entry in table["models"].values():
            assert 0 < entry.get("in", 1) <= entry.get("out", 1)
            assert entry.keys() <= {"in", "out", "cache_read", "cache_written", "ends"}
            assert type(entry.get("ends", date.max)) is date
