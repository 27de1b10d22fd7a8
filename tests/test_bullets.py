"""The one parser of bullets: what summaries and extracts write is read back, whatever the words are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memkit import anchors
from memkit.bullets import bullet_words, read_bullet, read_bullets
from memkit.journal.extracts import extract_line
from memkit.summarize.bullets import LABELS, Bullet

WORDS = st.text(st.characters(exclude_categories=["Cs"])).map(
    lambda text: " ".join(anchors.strip(text.replace("<!--", "")).split())
)
TURNS = st.lists(st.text("0123456789abcdef", min_size=8, max_size=8), min_size=1, max_size=12)
LINES = st.text("- \tgrip:turnsfactby,check<!->\n(unverified)")


@given(WORDS, st.sampled_from(sorted(LABELS)), TURNS, st.booleans())
def test_a_bullet_of_a_summary_is_read(words: str, kind: str, turns: list[str], is_verified: bool) -> None:
    written = Bullet(words, kind, tuple(turns), is_verified)
    found = read_bullet(written.line)
    assert found is not None
    mark = "" if is_verified else " (unverified)"
    assert found.text == " ".join(f"{LABELS[kind]}: {words}{mark}".split())
    assert (found.line, found.id, found.turns) == (written.line, written.grip, tuple(turns))
    assert found.is_verified == (is_verified and not words.endswith("(unverified)"))
    assert not found.is_extract


@given(WORDS, TURNS)
def test_a_line_of_an_extract_is_read_back(words: str, turns: list[str]) -> None:
    found = read_bullet(extract_line(f"Edited: {words}", turns))
    assert found is not None
    assert (found.text, found.turns, found.is_extract) == (f"Edited: {words}".strip(), tuple(turns), True)


@given(LINES)
def test_any_text_is_read(text: str) -> None:
    """A bullet has an ID, its words hold no anchor, and lines are numbered from 0."""
    lines = text.split("\n")
    found = dict(read_bullets(lines))
    for number, line in enumerate(lines):
        bullet = found.get(number)
        assert (bullet is not None) == ("grip" in anchors.parse(line))
        if bullet is not None:
            assert bullet.id and all(bullet.turns)
            assert bullet.line == line
            assert bullet.text == bullet_words(line) == " ".join(bullet.text.split())


def test_a_user_may_move_a_bullet() -> None:
    for line in (
        "- Decided: 7443. <!-- grip:a1 turns:b2 -->",
        "  - Decided: 7443. <!-- grip:a1 turns:b2 -->",
        "- Decided:  7443. <!-- grip:a1 --> <!-- turns:b2 -->\t",
    ):
        found = read_bullet(line)
        assert found is not None
        assert (found.text, found.id, found.turns) == ("Decided: 7443.", "a1", ("b2",))
    for line in (
        "- Decided: 7443.", "- Decided: `grip:a1` is an ID.", "- 14:02 [Port](#port) <!-- overview:0a turns:b2 -->", "",
        "- Decided: 7443. (2026-11-20) <!-- fact:f1 grips:a1 turns:b2 -->",
    ):  # fmt: skip
        assert read_bullet(line) is None
    for line in ("- Found: x. <!-- grip:a check:unverified -->", "- Found: x. (unverified) <!-- grip:a -->"):
        found = read_bullet(line)
        assert found is not None and not found.is_verified
