"""A bullet of a summary and the turns that it cites are one result."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.browse.expand import expand_known
from memkit.embedding import Embedder
from memkit.pointers.prompts import find_pointers
from memkit.questions.layout import lay_out
from memkit.search.ranking import Searcher
from memkit.search.results import Filters, Result, SearchRequest
from memkit.search.selection import BulletIndex, CitedTurn, Selection
from memkit.summarize.bullets import Bullet
from tests.ci import examples
from tests.memory import Memory
from tests.search.corpora import embedded, everything

STORY = "We looked at the logs, tried three things, read the manual, and talked about lunch. " * 10
PORT, CACHE, BOTH = "aaaaaaaa", "bbbbbbbb", "cccccccc"
QUESTION = "which port does the staging gateway use"


def bullet(text: str, *turns: str, verified: bool = True) -> str:
    return Bullet(text=text, kind="finding", turns=turns, is_verified=verified).line


def day(*bullets: str, session: str = "5e550001") -> str:
    """A day of two long turns below these bullets."""
    lines = "\n".join(bullets)
    return f"""# 2026-11-18

## 09:00 Work <!-- session:{session} branch:main summary:{CACHE} -->

{lines}

### 09:00 Please look at staging. <!-- turn:{PORT} -->
**Asked** Please look at staging.
**Answered** {STORY}
The staging gateway now uses port 7443. ERR_404 is gone.

### 09:10 And the build? <!-- turn:{CACHE} -->
**Asked** And the build?
**Answered** {STORY}
The nightly build was slow, the compiler cache was thrown away each time.
"""


ON_PORT = bullet("the staging gateway uses port 7443.", PORT)
ON_CACHE = bullet("the nightly build was slow without the compiler cache.", CACHE)


def remember(root: Path, embedder: Embedder, *bullets: str) -> Memory:
    return embedded(root, {"2026-11-18.md": day(*bullets)}, embedder)


def found(memory: Memory, query: str = QUESTION, **options: object) -> list[Result]:
    return everything(memory, query, **options)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, real_embedder: Embedder) -> Memory:
    return remember(tmp_path_factory.mktemp("bullets"), real_embedder, ON_PORT, ON_CACHE)


def test_the_bullet_stands_for_its_turn_and_leads_on(memory: Memory) -> None:
    results = found(memory)
    shown = [("summary", (PORT,)), ("summary", (CACHE,))]
    assert [(one.chunk.kind, one.chunk.turns) for one in results] == shown
    assert "port 7443" in results[0].chunk.content
    assert results[0].score >= results[1].score
    first = results[0]
    (turn,) = first.as_dict()["merged"]
    assert turn["kind"] == "turn"
    assert first.turn_entries == [turn["id"]]
    assert f'expand="{turn["id"]}"' in lay_out(memory.search(QUESTION), 500)
    section, session = (
        expand_known(memory.project, memory.home, lambda one: memory.settings, name)
        for name in (turn["id"], first.id)
    )
    assert section["turns"] == [PORT]
    assert "ERR_404 is gone" in section["content"]
    assert (turn["id"], first.id) == (PORT, first.chunk.citations[0])
    assert session["heading"] == "09:00 Work"
    assert session["citations"][0] == first.chunk.citations[0]
    wide = found(memory, budget=4000)  # also the text of the turn
    assert [one.chunk.kind for one in wide].count("summary") == 2
    assert "ERR_404" in "".join(one.chunk.content for one in wide)
    assert [one.chunk.kind for one in found(memory, budget=50)][:1] == ["summary"]


def test_the_turn_is_shown_if_only_it_has_the_name_or_it_matches_much_better(memory: Memory) -> None:
    first = found(memory, "ERR_404")[0]
    assert (first.chunk.kind, first.chunk.turns) == ("turn", (PORT,))
    assert "ERR_404" in first.chunk.content
    assert [one["kind"] for one in first.merged] == ["summary"]
    assert first.turn_entries == []
    first = found(memory, "we talked about lunch and read the manual and looked at the logs")[0]
    assert first.chunk.kind == "turn"


JOINT = "the staging gateway uses port 7443, the build needs its cache."


@pytest.mark.parametrize(("text", "expected"), [
    # The turn is shown if the bullet is not verified.
    (day(bullet("the gateway uses port 9.", PORT, verified=False)), {(PORT,): ["unverified"], (CACHE,): []}),
    # The turn is shown if it is hardly longer.
    (day(ON_PORT).replace(STORY, ""), {(PORT,): ["summary"], (CACHE,): []}),
    # A bullet of two turns is shown once.
    (day(bullet(JOINT, PORT, CACHE)), {(PORT, CACHE): ["turn", "turn"]}),
    # A bullet whose turn is gone is a result.
    (day(bullet("the gateway uses port 7443.", "dddddddd")), {("dddddddd",): [], (PORT,): [], (CACHE,): []}),
])  # fmt: skip
def test_what_stands_for_what(tmp_path: Path, real_embedder: Embedder, text: str, expected: dict[object, object]) -> None:
    results = found(embedded(tmp_path, {"2026-11-18.md": text}, real_embedder))
    assert {one.chunk.turns: [other["kind"] for other in one.merged] for one in results} == expected


def test_a_bullet_is_judged_by_itself(memory: Memory) -> None:
    corpus = memory.searcher().corpus
    bullets = corpus.where("kind", lambda kind: kind == "summary")
    assert bullets.any()
    assert not corpus.layout.neighbors(bullets.astype(float), 1.0, 1.0).any()
    lent = corpus.layout.neighbors((~bullets).astype(float), 1.0, 1.0)
    assert lent.any() and not lent[bullets].any()


@pytest.mark.parametrize(("kind", "count"), [("turn", 2), ("summary", 3)])
def test_a_filter_by_kind(tmp_path: Path, real_embedder: Embedder, kind: str, count: int) -> None:
    again = bullet("the staging gateway is back on the old port.", PORT)
    memory = remember(tmp_path, real_embedder, ON_PORT, again, ON_CACHE)
    results = found(memory, filters=Filters(kind=kind))
    assert [one.chunk.kind for one in results].count(kind) == len(results) >= count
    assert all(one.merged == [] for one in results)
    assert len(found(memory)) == 2


def test_bullets_of_another_project_do_not_count(tmp_path: Path, real_embedder: Embedder) -> None:
    bare = remember(tmp_path / "bare", real_embedder)
    other = remember(tmp_path / "other", real_embedder, ON_PORT, ON_CACHE)
    both = Searcher([bare.snapshot, other.snapshot], bare.settings.search, real_embedder)
    results = both.answer(SearchRequest(QUESTION, k=50, minimum=0.0)).results
    own = [one for one in results if one.root == bare.project.root]
    assert {PORT, CACHE} == {turn for one in own for turn in one.chunk.turns}
    assert {one.chunk.kind for one in own} == {"turn"}
    assert all(one.merged == [] for one in own)


def test_a_stranger_cites_everything(tmp_path: Path, real_embedder: Embedder) -> None:
    """A list of turns of any length, in many bullets."""
    names = ",".join([*(f"{n:08x}" for n in range(5000)), PORT])
    wild = [f"- Found: port {n} <!-- grip:{n:08x} turns:{PORT},{names} -->" for n in range(60)]
    results = found(remember(tmp_path, real_embedder, *wild))
    assert all(len(one.merged) <= 20 for one in results)
    assert sum(PORT in one.chunk.turns for one in results) == 1


def test_a_pointer_is_not_given_twice_by_another_name(memory: Memory) -> None:
    searcher = memory.searcher()
    prompt = f"please tell me {QUESTION}"
    (first, *_) = find_pointers(searcher, prompt, "another", set())
    turn = found(memory, prompt)[0].turn_entries[0]
    assert "port 7443" in first.text
    assert first not in find_pointers(searcher, prompt, "another", {turn})


class Links(BulletIndex):
    """Given links, without a corpus."""

    def __init__(self, turns: list[list[int]], size: int) -> None:
        self.is_unverified = np.zeros(size, bool)
        self.links: dict[int, list[CitedTurn]] = {}
        for number, bullets in enumerate(turns):
            turn = CitedTurn([number], bullets)
            for position in [number, *bullets]:
                self.links.setdefault(position, []).append(turn)

    def turns(self, position: int) -> list[CitedTurn]:
        return self.links.get(position, [])


@settings(max_examples=examples(100))
@given(
    st.lists(st.lists(st.integers(40, 79), max_size=4, unique=True), min_size=40, max_size=40),
    st.lists(st.integers(0, 30), min_size=80, max_size=80),
    st.lists(st.booleans(), min_size=80, max_size=80),
    st.integers(1, 60),
)
def test_one_place_a_turn(cited: list[list[int]], scores: list[int], allowed: list[bool], size: int) -> None:
    """Chunks 0 to 39 are turns, the others bullets; each turn has up to four."""
    links = Links([bullets if bullets else [] for bullets in cited], 80)
    links.links = {n: turns for n, turns in links.links.items() if any(one.bullets for one in turns)}
    selection = Selection(
        scores=np.array(scores, float), own=np.array(scores, float) / 10, exact=None,
        allowed=np.array(allowed), lengths=np.where(np.arange(80) < 40, 900, 90).astype(np.int32),
        entries=np.arange(80, dtype=np.int32), days=np.zeros(80, np.int32), repeat_cost=0.1,
        about=np.ones(80, bool), raisable=np.array(allowed), bullets=links,
    )  # fmt: skip
    places = list(selection.places())
    assert list(islice(selection.places(), size)) == places[:size]
    assert [one.score for one in places] == sorted((one.score for one in places), reverse=True)
    assert all(allowed[one.position] for one in places)
    assert len({one.position for one in places}) == len(places)
    for turn, bullets in enumerate(cited):
        members = {n for n in [turn, *bullets] if allowed[n]}
        stands = [one for one in places if turn == one.position or turn in one.merged]
        assert not members or stands or not allowed[turn]
        if bullets and members:
            best = max((scores[n] for n in bullets if allowed[n]), default=0)
            value = max(scores[turn], (scores[turn] + best) / 2) if allowed[turn] else best
            assert max(one.score for one in places if one.position in members) >= value
