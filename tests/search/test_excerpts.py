"""The two lines that a person reads of a result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.chunk import Chunk
from memkit.index.lexical import LexicalIndex
from memkit.search.excerpts import make_excerpt, outcome_of
from memkit.search.results import Excerpt
from tests.ci import examples
from tests.memory import make_chunk

TURN = """### 04:44 the issue is for the **token** streaming 🎉

**Asked** the issue is for the token streaming. It shows an object.

**Did**

- Edit app/ai-chat.ts
- Bash `git push` → failed: no upstream for the branch

**Answered** Perfect! Here is what I did:

\\## Summary
The params were stringified in ai-chat.ts. I fixed that."""


def index(*texts: str) -> LexicalIndex:
    return LexicalIndex.of(texts)


INDEX = index(TURN, "branch of a tree", "another branch", "streaming in a branch", "a token", "an object")


def turn(text: str = TURN, **known: str) -> Chunk:
    values = {"kind": "turn", "date": "2025-09-20", "heading": "04:44 the issue is for the **token** streaming 🎉"}
    values["breadcrumb"] = f"2025-09-20 > 04:34 Streaming > {values['heading']}"
    return make_chunk(text, **{**values, **known})


def excerpt(question: str) -> Excerpt:
    return make_excerpt(turn(), outcome_of(TURN, None), INDEX, question)


def test_title_and_outcome() -> None:
    found = excerpt("token streaming")
    assert (found.time, found.title, found.session) == ("04:44", "the issue is for the token streaming", "Streaming")
    assert (found.match, found.outcome) == ("", "The params were stringified in ai-chat.ts.")
    assert found.words == ("token", "streaming")


def test_the_line_with_the_words_that_the_title_lacks() -> None:
    assert excerpt("token streaming shows an object").match == "It shows an object."
    found = excerpt("which branch has no upstream")
    assert found.match == "Bash `git push` → failed: no upstream for the branch"
    assert set(found.words) == {"upstream", "branch"}
    found = excerpt("stringified params")  # a word in the outcome is enough
    assert (found.match, found.words) == ("", ("params", "stringified"))
    note = make_chunk("# Gateway\n\nIt listens on 7443.", kind="note", heading="Gateway", breadcrumb="Gateway")
    assert make_excerpt(note, "", INDEX, "ports").match == "It listens on 7443."  # the text begins


def test_rare_words_weigh_more() -> None:
    """Five documents hold "branch", one "stringified"."""
    many = index(TURN, *["a branch"] * 5)
    found = make_excerpt(turn(), "", many, "stringified branch")
    assert found.match == "The params were stringified in ai-chat.ts."


def test_a_bullet_is_its_own_title_and_tells_the_outcome() -> None:
    bullet = make_chunk(
        "## 09:00 Work\n\n- Decided: Tokens stay in the cache.\n- Found: 443 is taken.",
        kind="summary", heading="09:00 Work", breadcrumb="2025-09-20 > 09:00 Work", date="2025-09-20",
    )  # fmt: skip
    found = make_excerpt(bullet, "", INDEX, "what is taken")
    assert (found.time, found.title, found.match, found.session) == ("09:00", "Found: 443 is taken.", "", "Work")
    fixed = make_chunk("## 09:00 Work\n\n- Fixed: The params are objects again.")
    assert outcome_of(TURN, fixed) == "Fixed: The params are objects again."


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("**Answered** Done. It works.", "Edited: a.ts"),
        ("**Answered** Here it is:\n\n```sh\nrm -r x\n```\n\n- **Moved** the cache key.", "Moved the cache key."),
        ("**Answered** Two causes:\n\n- The cache key was wrong.\n- More.", "Two causes: The cache key was wrong."),
        ("**Answered** No. Amounts become integers of cents. More.", "No. Amounts become integers of cents."),
        ("**Answered** \\## Summary\n\nHere's what changed:\nThe port is 7443 now.", "The port is 7443 now."),
        ("**Answered** All tests pass! Let me check the port. Shall I move the port?", "Edited: a.ts"),
        ("**Interrupted**", "interrupted"),
        ("", "Edited: a.ts"),
    ],
)
def test_outcomes(answer: str, outcome: str) -> None:
    assert outcome_of(f"### 10:00 Go on\n**Asked** Go on\n**Did** Edit a.ts\n{answer}", None) == outcome


@settings(max_examples=examples(100))
@given(st.text(max_size=300), st.text(max_size=60), st.text(max_size=60), st.sampled_from(["turn", "note", "fact"]))
def test_any_text(text: str, heading: str, question: str, kind: str) -> None:
    chunk = make_chunk(text, kind=kind, heading=heading, breadcrumb=f"a > {heading}")
    found = make_excerpt(chunk, outcome_of(text, None), INDEX, question)
    for line in (found.time, found.title, found.match, found.outcome, found.session):
        assert len(line.splitlines()) <= 1
