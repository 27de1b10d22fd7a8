"""The sets of claims are well-formed, and the evaluation of summaries tells models apart."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from memkit.conversation.turn import ToolCall
from memkit.embedding import load_embedder
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from memkit.summarize import wording
from tests.ci import AT_NIGHT, only_at_night


@pytest.mark.parametrize("name", ["fit", "test"])
def test_a_set_has_enough_claims_of_each_kind(name: str) -> None:
    import claim_sets

    groups = claim_sets.read(claim_sets.DIRECTORY / f"{name}.txt")
    kinds = Counter(kind for group in groups for kind, _ in group.lies)
    assert len(groups) >= 50
    assert sum(len(group.true) for group in groups) >= 120
    assert kinds.total() >= 90
    assert min(kinds[kind] for kind in claim_sets.KINDS) >= 9
    for group in groups:
        assert 1 <= len(group.turns) <= 3
        assert all(turn.answer or turn is group.turns[-1] for turn in group.turns)
        assert not {text for _, text in group.lies} & set(group.true)


def test_the_sets_share_neither_topics_nor_claims() -> None:
    import claim_sets

    fit, test = (claim_sets.read(claim_sets.DIRECTORY / f"{name}.txt") for name in ("fit", "test"))
    assert not {group.topic for group in fit} & {group.topic for group in test}
    first, second = (
        {text for group in groups for text in [*group.true, *(lie for _, lie in group.lies)]}
        for groups in (fit, test)
    )
    assert not first & second


def test_a_group_reads_as_memkit_keeps_it(tmp_path: Path) -> None:
    import claim_sets

    path = tmp_path / "set.txt"
    path.write_text(
        "== the port\nAsked: Which port?\nDid: Read a.yaml · Bash `make` → failed: no rule · Bash `make` → ok\n"
        "Answered: Two: / - 7443 / - 8443\n+ It is 7443.\n- number: It is 7444.\n"
    )
    (group,) = claim_sets.read(path)
    assert group.true == ["It is 7443."]
    assert group.lies == [("number", "It is 7444.")]
    assert group.turns[0].tools == [
        ToolCall("Read", {"file_path": "a.yaml"}, ""),
        ToolCall("Bash", {"command": "make"}, "no rule", is_error=True),
        ToolCall("Bash", {"command": "make"}, "ok"),
    ]
    (text,) = group.texts
    assert "**Did** Read a.yaml · Bash `make` → failed: no rule · Bash `make` → ok" in text
    assert "**Answered** Two:\n- 7443\n- 8443" in text


@pytest.mark.parametrize(
    "line", ["Answer: 7443", "- guess: It is 7444.", "~ It is 7443.", "Did: Bash `make` · ·"]
)
def test_another_line_is_an_error(tmp_path: Path, line: str) -> None:
    import claim_sets

    path = tmp_path / "set.txt"
    path.write_text(f"== the port\nAsked: Which port?\n{line}\n")
    with pytest.raises(ValueError, match=r"line 3: not a line of a set of claims"):
        claim_sets.read(path)


def shorten(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    """By day, read only the first groups of each set."""
    import claim_sets

    read = claim_sets.read
    if not AT_NIGHT:
        monkeypatch.setattr(claim_sets, "read", lambda path: read(path)[:groups])


def test_scripted_models_get_what_they_deserve(
    home_with_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import claim_sets
    import summaries

    shorten(monkeypatch, 4)
    monkeypatch.setattr(sys, "argv", ["summaries.py", "--json"])
    assert summaries.main() == 0
    figures = json.loads(capsys.readouterr().out)
    assert list(figures["check"]) == ["fit", "test"]
    for found in figures["check"].values():
        assert 0 < found["marked"] < found["lies"]
        assert sum(one["marked"] for one in found["kinds"].values()) == found["marked"]
    groups = claim_sets.read(claim_sets.DIRECTORY / "sessions.txt")
    planted = sum(kind != "order" for group in groups for kind, _ in group.lies)
    good, lying, obedient, lazy = (
        figures["models"][name] for name in ("good", "lying", "obedient", "lazy")
    )
    assert good["references"] == sum(len(group.true) for group in groups)
    assert good["found"] >= 0.8 * good["references"]
    assert lazy["found"] <= 0.3 * lazy["references"]
    assert good["lies_written"] == lazy["lies_written"] == 0
    assert 0 < lying["lies_written"] <= planted
    assert lying["lies_accepted"] <= lying["lies_written"]
    assert lying["unverified"] > good["unverified"]
    assert obedient["lies_written"] <= 2
    assert good["tokens"] > 0


@pytest.mark.parametrize("with_vectors", [pytest.param(True, marks=only_at_night), False])
def test_the_weights_of_the_check_are_those_of_its_set(home_with_model: Path, with_vectors: bool) -> None:
    import claim_sets
    import summaries

    embedder = load_embedder(Home.from_environment(), EmbeddingSettings()) if with_vectors else None
    groups = claim_sets.read(claim_sets.DIRECTORY / "fit.txt")
    intercept, weights = summaries.fitted_weights(groups, embedder)
    shipped = wording.WITH_VECTORS if with_vectors else wording.BY_WORDS
    assert shipped == pytest.approx((intercept, *weights), abs=0.02)
