"""Newest first, on coding sessions in which decisions are amended.

`tests/fixtures/amendments.json` has four projects in LoCoMo's format. Questions of category 1 ask about an
amended decision: `evidence` is the amendment, `earlier` the decision before it. Those of category 2 ask about one
that later turns only test, fix, or document. Those of category 3 ask about the past. The rules were chosen on the
first and third project; the others are only reported. `python benchmarks/locomo.py --data …` has all figures.
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from memkit.embedding import Embedder
from memkit.search import corrections
from memkit.search.ranking import Searcher
from memkit.search.results import SearchRequest
from memkit.settings import Settings
from tests.ci import AT_NIGHT
from tests.memory import real_embedder

__all__ = ["real_embedder"]

FILE = Path(__file__).resolve().parents[1] / "fixtures" / "amendments.json"
PROJECTS = {"billing": 5, "pipeline": 5, "fieldapp": 4, "platform": 4}
"""How many of the six amendments come first at least: 11 of 12 in the chosen projects, 9 in the others."""

AMENDED, KEPT, PAST = 1, 2, 3


def test_amendments_come_first(
    real_embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import locomo

    projects = [
        one for one in json.loads(FILE.read_text(encoding="utf-8"))
        if AT_NIGHT or one["sample_id"] in ("billing", "platform")
    ]  # fmt: skip
    (tmp_path / "some.json").write_text(json.dumps(projects))
    is_marked = False
    for asked, project in zip(locomo.indexed(tmp_path / "some.json", "product", real_embedder), projects, strict=True):
        name = asked.conversation.name
        earlier = {qa["question"]: frozenset(qa["earlier"]) for qa in project["qa"]}
        searcher = Searcher([asked.snapshot], Settings().search, real_embedder)
        first_before = first_after = 0
        for question in asked.conversation.questions:
            request = SearchRequest(question.text, 10, minimum=0.0)
            after = searcher.answer(request).results
            with monkeypatch.context() as patch:
                patch.setattr(corrections, "MOST_PLACES", 0)
                before = searcher.answer(request).results
            wanted = question.evidence
            place, place_before, second = (
                next((n for n, one in zip(count(), found) if asked.hit(one).holds & those), 99)
                for found, those in ((after, wanted), (before, wanted), (after, earlier[question.text]))
            )
            if question.category == AMENDED:
                first_before += place_before == 0
                first_after += place == 0
                assert place > second or second == 99 or after[second].changed_by
            else:
                assert place == place_before  # the answer keeps its place
            assert question.category != KEPT or not after[place].changed_by
            is_marked |= question.category == PAST and bool(after[place].changed_by)  # marked, not moved
        assert first_before <= 1
        assert first_after >= PROJECTS[name], name
    assert is_marked
