"""Factors that raise or lower a result independently of its words."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest

from memkit.search.corpus import DOMAIN_BOOST, INSTRUCTION_BOOST, Corpus, boosts_of, recency_of
from memkit.search.ranking import Searcher
from memkit.search.results import SearchRequest
from memkit.settings.load import SearchSettings
from tests.memory import FakeEmbedder, make_chunk
from tests.search.corpora import snapshot_of

TODAY = date(2026, 11, 20)
SOURCES = (
    "README.md", "docs/billing/api.md", "docs/billing/deep/tax.md", "docs/billing.instructions.md",
    "docs/web/api.md", "memory/2026-11-20.md",
)  # fmt: skip
PLAIN = SearchSettings(recency_boost=0)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A chunk a file, all of the same words."""
    chunks = [
        make_chunk(
            "the port",
            source=source,
            domain=Path(source).parent.name,
            kind="instruction" if source.endswith(".instructions.md") else "note",
        )
        for source in SOURCES
    ]
    return Corpus([snapshot_of(tmp_path, chunks)])


def raised(corpus: Corpus, file: str, *domains: str) -> set[str]:
    """Return the sources that the edited file raises."""
    settings = msgspec.structs.replace(PLAIN, domains=list(domains))
    nothing = np.zeros(len(corpus))
    factors = boosts_of(corpus, settings, file, nothing) / boosts_of(corpus, settings, "", nothing)
    is_raised = np.isclose(factors, DOMAIN_BOOST)
    assert (is_raised | (factors == 1)).all()
    return {corpus.chunk(n).source for n in np.flatnonzero(is_raised).tolist()}


def test_the_domain_is_the_name_of_a_directory(corpus: Corpus) -> None:
    for file, expected in {
        "src/billing/invoice.py": {"docs/billing/api.md"},
        "billing/a/b/c.py": {"docs/billing/api.md"},
        "src/Billing/invoice.py": {"docs/billing/api.md"},
        "src/web/deep/page.ts": {"docs/web/api.md", "docs/billing/deep/tax.md"},
        "docs/notes.txt": {"docs/billing.instructions.md"},
        "src/billing.py": set(), "src/billings/a.py": set(), "app.py": set(), "": set(),
    }.items():  # fmt: skip
        assert raised(corpus, file) == expected, file


def test_the_domain_is_named_by_the_settings(corpus: Corpus) -> None:
    domains = ["src/pay=docs/billing", "/src/pay/tax/ = docs/billing/deep/", "src/a.py=README.md"]
    for file, expected in {
        "src/pay/a.py": {"docs/billing/api.md", "docs/billing/deep/tax.md"},
        "src/pay/deep/er/a.py": {"docs/billing/api.md", "docs/billing/deep/tax.md"},
        "src/pay/tax/a.py": {"docs/billing/deep/tax.md"},  # the innermost directory counts
        "src/payments/a.py": set(),
        "src/a.py": {"README.md"},
        "lib/web/a.py": {"docs/web/api.md"},  # none of them fits: the name of the directory decides
    }.items():
        assert raised(corpus, file, *domains) == raised(corpus, file, *domains[::-1]) == expected, file


def test_recency_halves(tmp_path: Path) -> None:
    ages = [0, 10, 20, 365, -3]
    days = [(TODAY - timedelta(days=age)).isoformat() for age in ages]
    chunks = [make_chunk(day, source=f"{n}.md", date=day) for n, day in enumerate([*days, ""])]
    corpus = Corpus([snapshot_of(tmp_path, chunks)])
    found = recency_of(corpus, 10, TODAY)
    assert found == pytest.approx([1, 0.5, 0.25, 0.5**36.5, 1, 0])
    assert recency_of(corpus, 10, TODAY + timedelta(days=10)) == pytest.approx(
        [0.5, 0.25, 0.125, 0.5**37.5, 0.5**0.7, 0]
    )
    factors = boosts_of(corpus, SearchSettings(recency_boost=0.4), "", found)
    assert factors == pytest.approx(1 + 0.4 * found)
    assert boosts_of(corpus, PLAIN, "", found).tolist() == [1] * 6


@pytest.mark.parametrize("mode", ["context", "lexical", "dense"])
def test_a_boost_decides_between_equal_scores(corpus: Corpus, tmp_path: Path, mode: str) -> None:
    settings = msgspec.structs.replace(PLAIN, mode=mode)
    chunks = corpus.snapshots[0].chunks()
    embedded = snapshot_of(tmp_path / "embedded", chunks, embedder=FakeEmbedder())
    searcher = Searcher([embedded], settings, FakeEmbedder())
    question = SearchRequest("which port", k=50, minimum=0, explain=True)
    found = searcher.answer(dataclasses.replace(question, file="src/web/a.py")).results
    assert [result.explanation["boost"] for result in found] == [DOMAIN_BOOST, INSTRUCTION_BOOST, 1, 1, 1, 1]
    assert found[0].chunk.domain == "web"
    assert found[1].chunk.kind == "instruction"
    assert found[0].score == pytest.approx(DOMAIN_BOOST * found[2].score, abs=1e-5)
    order = [result.chunk.source for result in searcher.answer(question).results[1:]]
    assert order == sorted(order, reverse=True)  # of equal ones, the last is the newest
