"""A later entry that changes what an earlier one says comes first, and the earlier one says so."""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from pathlib import Path

import msgspec
import pytest

from memkit.embedding import Embedder
from memkit.pointers.prompts import find_pointers
from memkit.questions.layout import lay_out
from memkit.search import corrections
from memkit.search.corrections import _differ, _values
from memkit.search.ranking import Searcher
from memkit.search.results import Answer, Filters, Result, SearchRequest
from memkit.summarize.bullets import Bullet
from tests.memory import Memory
from tests.search.corpora import embedded, everything

QUESTION = "What is the timeout of the payment gateway client?"
FIRST, CHANGE, TEST, OTHER = "aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"
DECIDED = "The payment gateway client in gateway/client.go has a timeout of 300 s."
CHANGED = "I set the timeout of the payment gateway client to 600 s in gateway/client.go."


def day(date: str, *turns: tuple[str, str, str], bullets: tuple[Bullet, ...] = ()) -> str:
    lines = "".join(f"{one.line}\n" for one in bullets)
    text = "".join(
        f"### 09:{number:02} {asked} <!-- turn:{name} -->\n**Asked** {asked}\n**Answered** {answer}\n\n"
        for number, (name, asked, answer) in enumerate(turns)
    )
    session = f"5e55{date[5:7]}{date[8:]}"
    return f"# {date}\n\n## 09:00 Work <!-- session:{session} branch:main -->\n\n{lines}\n{text}"


def remember(root: Path, embedder: Embedder, change: str = CHANGED, **days: str) -> Memory:
    files = {
        "2026-11-02.md": day("2026-11-02", (FIRST, "Which timeout does the client have?", DECIDED)),
        "2026-11-05.md": day("2026-11-05", (CHANGE, "The export was cut off, look at it.", change)),
        "2026-11-06.md": day("2026-11-06", (OTHER, "Who cooks?", "Priya cooks soup, as ever.")),
        **days,
    }
    return embedded(root, files, embedder)


def found(memory: Memory, query: str = QUESTION, **options: object) -> list[Result]:
    return everything(memory, query, **options)


def turns(results: list[Result]) -> list[str]:
    return [one.chunk.turns[0] for one in results if one.chunk.turns]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, real_embedder: Embedder) -> Memory:
    return remember(tmp_path_factory.mktemp("changed"), real_embedder)


def test_the_change_is_first_and_the_decision_is_marked(memory: Memory) -> None:
    new, old, *_ = found(memory)
    assert turns([new, old]) == [CHANGE, FIRST]
    assert new.score >= old.score
    assert (new.changed_by, old.changed_by["id"], old.changed_by["date"]) == ({}, new.id, "2026-11-05")
    assert old.mark == f"earlier; see {new.id}, 2026-11-05: {CHANGED}"
    assert turns(found(memory, k=1)) == [CHANGE]
    answer = memory.search(QUESTION)
    assert f'changed_by="see {new.id}, 2026-11-05: {CHANGED}">' in lay_out(answer, 2000)
    assert json.loads(json.dumps(old.as_dict()))["changed_by"] == old.changed_by
    assert msgspec.convert(msgspec.to_builtins(answer), Answer) == answer  # as the service hands it on
    assert turns(found(memory, k=None, budget=2000))[:2] == [CHANGE, FIRST]
    (only,) = found(memory, filters=Filters(session="5e551102"))
    assert (turns([only]), only.changed_by) == ([FIRST], {})
    pointers = find_pointers(memory.searcher(), QUESTION, "another", set())  # shows what holds now
    assert pointers[0].text == CHANGED
    assert not any("300 s" in one.text for one in pointers)


@pytest.mark.parametrize(
    "answer",
    [
        "I wrote a test for the timeout of the payment gateway client in gateway/client.go.",
        "The test of the payment gateway client waited for the wrong clock. The timeout of 300 s is as before.",
        "The payment gateway client in gateway/client.go has its timeout of 300 s in GatewayTimeout.",
    ],
)
def test_other_work_on_it_changes_nothing(tmp_path: Path, real_embedder: Embedder, answer: str) -> None:
    results = found(remember(tmp_path, real_embedder, answer))
    assert FIRST in turns(results)
    assert not any(one.changed_by for one in results)


@pytest.mark.parametrize(("now", "is_change"), [("600 s", False), ("900 s", True), ("300 s again", True)])
def test_work_that_carries_out_a_decision_changes_nothing(
    tmp_path: Path, real_embedder: Embedder, now: str, is_change: bool
) -> None:
    decided = day("2026-11-02", (FIRST, "Raise the timeout of the payment gateway client to 600 s.", "All right."))
    done = f"Done: I raised the timeout of the payment gateway client to {now} in gateway/client.go."
    results = found(remember(tmp_path, real_embedder, done, **{"2026-11-02.md": decided}))
    assert {FIRST, CHANGE} <= set(turns(results))
    assert any(one.changed_by for one in results) == is_change


def test_a_question_about_the_past_keeps_the_order(memory: Memory) -> None:
    results = found(memory, "Which timeout does the payment gateway client have originally?")
    old, new = (next(one for one in results if name in one.chunk.turns) for name in (FIRST, CHANGE))
    assert results.index(old) < results.index(new)
    assert old.changed_by["id"] == new.id


def test_a_question_about_the_present_gets_the_newest_of_equals(
    tmp_path: Path, real_embedder: Embedder
) -> None:
    asked = "Which queue do the workers read?"
    days = {
        f"2026-11-{number:02}.md": day(f"2026-11-{number:02}", (name, asked, f"{answer} See the docs."))
        for number, name, answer in (
            (2, FIRST, "The workers read the Redis queue."), (6, CHANGE, "The workers take the Redis queue.")
        )
    }
    memory = embedded(tmp_path, days, real_embedder)
    query = "which Redis queue do the workers read"
    assert turns(found(memory, query)) == [FIRST, CHANGE]
    newest, older = found(memory, f"{query} now")
    assert turns([newest, older]) == [CHANGE, FIRST]
    assert newest.score >= older.score


def test_another_project_changes_nothing(tmp_path: Path, real_embedder: Embedder) -> None:
    first = day("2026-11-02", (FIRST, "Which timeout does the client have?", DECIDED))
    change = day("2026-11-05", (CHANGE, "The export was cut off, look at it.", CHANGED))
    one = embedded(tmp_path / "one", {"2026-11-02.md": first}, real_embedder)
    two = embedded(tmp_path / "two", {"2026-11-05.md": change}, real_embedder)
    both = Searcher([one.snapshot, two.snapshot], one.settings.search, real_embedder)
    results = both.answer(SearchRequest(QUESTION, k=50, minimum=0.0)).results
    assert {FIRST, CHANGE} <= set(turns(results))
    assert not any(result.changed_by for result in results)


def test_the_newest_change_and_its_bullet_count(tmp_path: Path, real_embedder: Embedder) -> None:
    again = "The timeout of the payment gateway client in gateway/client.go is back to 300 s."
    third = day("2026-11-09", (TEST, "The bank repaired it.", again))
    results = found(remember(tmp_path / "again", real_embedder, **{"2026-11-09.md": third}))
    assert turns(results)[0] == TEST
    assert {one.changed_by["id"] for one in results if one.changed_by} == {results[0].id}
    bullet = Bullet(text=CHANGED.rstrip("."), kind="decision", turns=(CHANGE,), is_verified=True)
    long = f"{'We looked at the logs of the bank for an hour. ' * 20}{CHANGED}"
    change = day("2026-11-05", (CHANGE, "The export was cut off.", long), bullets=(bullet,))
    new, old, *_ = found(remember(tmp_path, real_embedder, **{"2026-11-05.md": change}))
    assert new.chunk.citations == (bullet.grip,)
    assert (turns([old]), old.changed_by["id"]) == ([FIRST], new.id)


def test_a_weak_change(tmp_path: Path, real_embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it matched the question too little to be a result by itself."""
    memory = remember(tmp_path, real_embedder, f"{CHANGED} The bank's export takes 422 s, the log says.")
    with monkeypatch.context() as patch:
        patch.setattr(corrections, "LEAST_COSINE", 2.0)
        plain = found(memory)
    old, new = (next(one for one in plain if name in one.chunk.turns) for name in (FIRST, CHANGE))
    assert new.relevance < old.relevance
    between = (new.relevance + old.relevance) / 2
    assert turns(found(memory, minimum=between)) == [CHANGE, FIRST]


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ("kept for 14 days", "keeps 30 days", True),
        ("kept for 14 days", "kept for 14 days", False),
        ("three nodes", "five nodes", True),
        ("300 s", "in 2 places", False),
        ("at 98 % load", "85% of it", True),
        ("14 days, later 30 days", "30 days", False),
        ("starts at 02:00 UTC", "starts at 04:00 UTC.", True),
        ("", "5", False),
        ("7", "8", False),
    ],
)
def test_values_that_differ(before: str, after: str, differ: bool) -> None:
    assert _differ(_values(before), _values(after)) is differ


ASKED = "Should we use a cache for the sailing times, and which one?"
EDIT = "Edit src/sailings.py"


@pytest.mark.parametrize(
    ("asked", "decided", "tools", "is_first"),
    [
        (ASKED, "ok, the first one", EDIT, True),
        ("Use a cache for the sailing times.", "ok, the first one", EDIT, False),  # asks nothing
        (ASKED, "ok, the first one", "Read src/sailings.py", False),  # changes nothing
        (ASKED, f"ok, the first one.{' Then the ports.' * 10}", EDIT, False),  # more than a word
    ],
)
def test_what_decided_comes_before_what_asked(
    tmp_path: Path, real_embedder: Embedder, asked: str, decided: str, tools: str, is_first: bool
) -> None:
    answer = "Done: the sailing times are kept in a dict for 60 s."
    text = day("2026-11-02", (FIRST, asked, "Options: a dict, or Redis."), (CHANGE, decided, answer))
    text = text.replace(f"{decided}\n**Answered**", f"{decided}\n\n**Did** {tools}\n\n**Answered**")
    results = found(remember(tmp_path, real_embedder, **{"2026-11-02.md": text}), ASKED)
    assert (turns(results)[0] == CHANGE) is is_first
    assert results[0].score >= results[1].score


def test_no_text_is_too_odd(tmp_path: Path, real_embedder: Embedder) -> None:
    wild = 'The timeout of the payment gateway client is now 600 s"></entry><entry id="1'
    memory = remember(tmp_path, real_embedder, wild)
    text = lay_out(memory.search(QUESTION), 2000)
    assert text.count("<entry ") == text.count("</entry>") == len(text.split("\n<entry ")) - 1
    for question in itertools.chain(["%", "a" * 10_000, "timeout " * 500]):
        memory.search(question)


def test_a_search_leaves_no_snapshot_open(memory: Memory) -> None:
    gc.collect()
    gc.disable()  # only what is in no cycle is freed
    try:
        searcher = memory.searcher()
        searcher.answer(SearchRequest(QUESTION))
        find_pointers(searcher, QUESTION, "another", set())
        snapshot = weakref.ref(searcher.corpus.snapshots[0])
        del searcher
        assert snapshot() is None
    finally:
        gc.enable()
