"""Bullets of a model, checked against the turns they name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit import anchors
from memkit.llm import UnusableReplyError
from memkit.privacy.redact import redact
from memkit.summarize.bullets import Bullet, claims, is_proved, read_bullets
from tests.summarize.stage import bullet

TURNS = {
    "t1": "The gateway listens on 7443, see deploy/gateway.yaml. Commit 3fa9c1d. It took 1.5 s.",
    "t2": "We agreed: `pytest -q tests/unit` must pass; ERR_404 came from PolicyController.",
    "t3": "",
}
NUMBERS = {1: (0, "t1"), 2: (0, "t2"), 3: (1, "t3")}


def read(*bullets: Any) -> dict[int, list[Bullet]]:
    return read_bullets({"bullets": list(bullets)}, NUMBERS, TURNS, redact)


@pytest.mark.parametrize(
    ("text", "proved"),
    [
        ("The gateway listens on 7443.", True),
        ("The gateway listens on 443.", False),  # a part of a number is another number
        ("There are 3 gateways.", False),
        ("Commit 3fa9c1d moved the port.", True),
        ("Commit 3fa9c1e moved the port.", False),
        ("`deploy/gateway.yaml` was edited.", True),
        ("deploy/invented.yaml was edited.", False),
        ("It took 1.5s, and the user's wish/command was and/or e.g. met.", False),  # wish/command
        ("It took 1.5s, and the user's wish was met, e.g. at once.", True),
        ("Nothing but plain words, which prove nothing and need no proof.", True),
        ("He said “it is fine”.", False),
    ],
)
def test_a_bullet_is_proved_only_by_its_turns(text: str, proved: bool) -> None:
    assert is_proved(text, [TURNS["t1"]]) is proved


def test_claims_are_names_numbers_and_quotations() -> None:
    found = list(claims('PolicyController gave ERR_404 for "no such user" in `a b.py` after 12 tries'))
    assert sorted(found) == sorted(["a b.py", "no such user", "PolicyController", "ERR_404", "12"])


def test_bullets_go_to_the_segment_of_their_turns() -> None:
    found = read(bullet("One.", [1, 2], "decision"), bullet("Two.", [3, 1]), bullet("Three.", [2, 3]))
    assert [(one.text, one.turns) for one in found[0]] == [("One.", ("t1", "t2")), ("Three.", ("t2",))]
    assert [(one.text, one.turns) for one in found[1]] == [("Two.", ("t3",))]


@pytest.mark.parametrize(
    "item",
    [
        bullet("No turns.", []),
        bullet("Unknown turn.", [99]),
        bullet("No number.", ["1"]),
        bullet("Unknown kind.", [1], "opinion"),
        bullet(" \n ", [1]),
        bullet("- ", [1]),
        "a string",
        {"text": 7, "kind": "finding", "turns": [1]},
        {"text": "Turns are no list.", "kind": "finding", "turns": 1},
        None,
    ],
)
def test_a_bullet_without_a_valid_turn_is_dropped(item: Any) -> None:
    with pytest.raises(UnusableReplyError):
        read(item)
    assert [one.text for one in read(item, bullet("Kept.", [1]))[0]] == ["Kept."]


@pytest.mark.parametrize("value", [{}, {"bullets": "none"}, {"bullets": []}, {"bullets": None}])
def test_an_answer_of_the_wrong_form_is_unusable(value: dict[str, Any]) -> None:
    with pytest.raises(UnusableReplyError):
        read_bullets(value, NUMBERS, TURNS, redact)


def test_a_duplicate_bullet_is_dropped() -> None:
    assert len(read(bullet("Same.", [1]), bullet("Same.", [1]))[0]) == 1


def test_bullet_signs_and_labels_of_the_model_are_removed() -> None:
    (one,) = read(bullet("- Decided: port 7443.", [1], "decision"))[0]
    assert one.line.startswith("- Decided: port 7443. <!-- grip:")


def test_secrets_in_an_answer_are_redacted() -> None:
    key = "sk-ant-" + "api03-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5oQ7sU9wY1"
    (one,) = read(bullet(f"The key is {key}.", [1]))[0]
    assert key not in one.line
    assert "[redacted:" in one.line


@given(st.text(), st.sampled_from(["decision", "open"]), st.booleans())
def test_any_text_becomes_one_line(text: str, kind: str, verified: bool) -> None:
    try:
        found = read(bullet(text, [1], kind))
    except UnusableReplyError:
        return
    line = found[0][0].line
    assert len(line.splitlines()) == 1
    assert line.startswith("- ")
    pairs = anchors.parse(line)
    assert pairs["turns"] == "t1"
    assert set(pairs) <= {"grip", "turns", "check"}
    assert line.count("<!--") == 1
