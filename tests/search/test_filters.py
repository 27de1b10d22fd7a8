"""Which chunks a search may return."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.chunk import KINDS, Chunk
from memkit.search.corpus import Corpus, mask
from memkit.search.ranking import Searcher
from memkit.search.results import Filters, SearchRequest
from memkit.settings.load import SearchSettings
from tests.ci import examples
from tests.memory import FakeEmbedder, make_chunk
from tests.search.corpora import snapshot_of

SESSIONS = ("", "5e550001", "5e55ffff", "ab")
BRANCHES = ("", "main", "main2", "feature/x")
DATES = ("", "2026-02-28", "2026-03-01", "2026-11-20")
SOURCES = ("docs/a.md", "docs/deep/b.md", "docs2/c.md", "docs/[d].md", "README.md", "/elsewhere/docs/a.md")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Chunks of all sorts, in two projects."""
    sorts = list(product(SESSIONS, BRANCHES, KINDS, DATES, SOURCES))
    random.Random(7).shuffle(sorts)
    chunks = [
        make_chunk(
            f"The gateway listens on {number}.", session=session, branch=branch, kind=kind,
            date=day, source=source, start_line=number, turns=(str(number),), citations=(),
        )
        for number, (session, branch, kind, day, source) in enumerate(sorts[:400])
    ]  # fmt: skip
    directory = tmp_path_factory.mktemp("filtered")
    return Corpus(
        [
            snapshot_of(directory / name, part, embedder=FakeEmbedder())
            for name, part in (("one", chunks[:300]), ("two", chunks[300:]))
        ]
    )


def passes(chunk: Chunk, filters: Filters) -> bool:
    day = date.fromisoformat(chunk.date) if chunk.date else None
    return all(
        [
            filters.since is None or (day is not None and day >= filters.since),
            filters.until is None or (day is not None and day <= filters.until),
            chunk.session.startswith(filters.session),
            filters.branch in ("", chunk.branch),
            filters.kind in ("", chunk.kind),
            not filters.path
            or chunk.source == filters.path
            or chunk.source.startswith(filters.path.rstrip("/") + "/")
            or fnmatchcase(chunk.source, filters.path),
        ]
    )


DAYS = st.none() | st.sampled_from(
    [date(2026, 2, 27), date(2026, 2, 28), date(2026, 3, 1), date(2026, 11, 20), date(2027, 1, 1)]
)
FILTERS = st.builds(
    Filters, since=DAYS, until=DAYS, session=st.sampled_from(["", "5e55", "5e550001", "a", "b", "5E55"]),
    branch=st.sampled_from([*BRANCHES, "feature", "unknown"]), kind=st.sampled_from(["", *KINDS]),
    path=st.sampled_from(["", *SOURCES, "docs", "docs/", "doc", "*.md", "docs/*", "/elsewhere", "x"]),
)  # fmt: skip


@settings(max_examples=examples(100))
@given(FILTERS)
def test_filters_of_each_chunk(corpus: Corpus, filters: Filters) -> None:
    expected = [passes(corpus.chunk(position), filters) for position in range(len(corpus))]
    assert mask(filters, corpus).tolist() == expected


@settings(max_examples=examples(40))
@given(FILTERS, st.sampled_from(["context", "rrf", "weighted", "lexical", "dense"]))
def test_filters_only_leave_out_results(corpus: Corpus, filters: Filters, mode: str) -> None:
    """What is found is what would be found anyway, less the others, in the same order.

    The wording is left out: only chunks that pass are read.
    """
    chosen = Searcher([], msgspec.convert({"mode": mode}, SearchSettings), FakeEmbedder())
    chosen.weights = replace(chosen.weights, wording_weight=0.0)
    chosen.corpus = corpus
    everything = chosen.answer(SearchRequest("gateway listens", k=1000, minimum=0)).results
    assert len(everything) > 300
    found = chosen.answer(SearchRequest("gateway listens", k=1000, minimum=0, filters=filters)).results
    assert found == [result for result in everything if passes(result.chunk, filters)]
    first = chosen.answer(SearchRequest("gateway listens", k=3, minimum=0, filters=filters)).results
    assert first == found[:3]


@pytest.mark.parametrize("path", ["./docs/a.md", "docs/a.md/"])
def test_paths_as_shells_complete_them(corpus: Corpus, path: str) -> None:
    plain = mask(Filters(path="docs/a.md"), corpus)
    assert plain.any()
    assert mask(Filters(path=path), corpus).tolist() == plain.tolist()
