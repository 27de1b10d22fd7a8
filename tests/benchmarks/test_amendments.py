"""Newest first, on coding sessions in which decisions are amended.

`tests/fixtures/amendments.json` has four projects in LoCoMo's format. Questions of category 1 ask about an
amended decision: `evidence` is the amendment, `earlier` the decision before it. Those of category 2 ask about one
that later turns only test, fix, or document. Those of category 3 ask about the past. The rules were chosen on the
first and third project; the others are only reported. `python benchmarks/locomo.py --data …` has all figures.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memkit.embedding import Embedder
from memkit.search import corrections
from memkit.search.ranking import Searcher
from memkit.search.results import Result, SearchRequest
from memkit.settings import Settings
from tests.memory import real_embedder

__all__ = ["real_embedder"]

FILE = Path(__file__).resolve().parents[1] / "fixtures" / "amendments.json"
CHOSEN, REPORTED = ("billing", "pipeline"), ("fieldapp", "platform")
AMENDED, KEPT, PAST = 1, 2, 3


class Asked:
    """The results of each question, with the places of the amendment and of the earlier decision."""

    def __init__(self, locomo: Any, embedder: Embedder) -> None:
        earlier = {
            (one["sample_id"], qa["question"]): frozenset(qa["earlier"])
            for one in json.loads(FILE.read_text(encoding="utf-8"))
            for qa in one["qa"]
        }
        self.rows: list[tuple[str, int, int, int, list[Result]]] = []
        for asked in locomo.indexed(FILE, "product", embedder):
            name = asked.conversation.name
            searcher = Searcher([asked.snapshot], Settings().search, embedder)
            for question in asked.conversation.questions:
                results = searcher.answer(SearchRequest(question.text, 10, minimum=0.0)).results
                held = [asked.hit(one).holds for one in results]
                first, second = (
                    next((n for n, own in zip(count(), held) if own & wanted), 99)
                    for wanted in (question.evidence, earlier[name, question.text])
                )
                self.rows.append((name, question.category, first, second, results))

    def of(self, category: int, names: tuple[str, ...] = CHOSEN + REPORTED) -> Iterator[Any]:
        return (row[2:] for row in self.rows if row[1] == category and row[0] in names)


@pytest.fixture
def locomo() -> Any:
    return importlib.import_module("locomo")


def test_amendments_come_first(
    locomo: Any, real_embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = Asked(locomo, real_embedder)
    monkeypatch.setattr(corrections, "MOST_PLACES", 0)
    before = Asked(locomo, real_embedder)
    for names, least in ((CHOSEN, 11), (REPORTED, 9)):
        assert len(list(after.of(AMENDED, names))) == 12
        assert sum(first == 0 for first, _, _ in before.of(AMENDED, names)) <= 1
        assert sum(first == 0 for first, _, _ in after.of(AMENDED, names)) >= least
    marked = [results[second].changed_by for first, second, results in after.of(AMENDED) if first < second]
    assert all(marked)
    for category in (KEPT, PAST):  # the answer keeps its place
        assert [row[0] for row in after.of(category)] == [row[0] for row in before.of(category)]
    assert not any(results[first].changed_by for first, _, results in after.of(KEPT))
    assert any(results[first].changed_by for first, _, results in after.of(PAST))  # marked, not moved
