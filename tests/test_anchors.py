"""The one parser and writer of memkit's comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit import anchors


@given(session=st.text(), branch=st.text(), turn=st.text(min_size=1))
def test_what_is_rendered_is_parsed_and_no_value_forges(session: str, branch: str, turn: str) -> None:
    line = f"## 10:00 Title {anchors.render(session=session, branch=branch, turn=turn)}"
    expected = {
        name: anchors.safe(value)
        for name, value in (("session", session), ("branch", branch), ("turn", turn))
        if value
    }
    assert anchors.parse(line) == expected
    assert anchors.strip(line) == "## 10:00 Title"
    assert len(line.splitlines()) == 1
    assert line.count("<!--") == line.count("-->") == 1


@given(st.text())
def test_safe_values_stay(value: str) -> None:
    once = anchors.safe(value)
    assert anchors.safe(once) == once
    assert len(once) <= 120
    assert "--" not in once


@pytest.mark.parametrize(
    "text",
    ["<!-- a comment -->", "<!-- turn: x -->", "<!--turn:x-->", "<!-- turn:x and -->", "<!-- other:x -->",
     "<!-- turn:<x> -->", "<!-- turn:x", "turn:x -->", "<!-- Turn:x -->", "<!-- turn:x\n-->", ""],
)  # fmt: skip
def test_other_comments_are_the_users(text: str) -> None:
    assert anchors.parse(text) == {}
    assert anchors.strip(text) == text


def test_text_around_several_anchors_is_kept() -> None:
    line = "- Decided: 7443.  <!-- grip:k3f9a1 turns:8ad3df7f,77c1e09b -->\t<!-- turn:a --> end"
    assert anchors.parse(line) == {"grip": "k3f9a1", "turns": "8ad3df7f,77c1e09b", "turn": "a"}
    assert anchors.strip(line) == "- Decided: 7443. end"
    assert anchors.parse("<!-- turn:a --> <!-- turn:b -->") == {"turn": "b"}


@given(st.text("<!->-: turnsio\n\tx"))
def test_stripping_removes_every_anchor(text: str) -> None:
    if anchors.parse(text):
        assert len(anchors.strip(text)) < len(text)
    else:
        assert anchors.strip(text) == text


def test_a_million_characters_are_searched_in_one_go() -> None:
    for unit in ("<!-- turn:x ", "<!--", " ", "\t<", "<!-- turn:", "<!-- turn:x turn:y "):
        assert anchors.parse(unit * (1_000_000 // len(unit))) == {}
