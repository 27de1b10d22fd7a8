"""The words that set a stretch of time apart."""

from __future__ import annotations

from collections import Counter

from memkit.timeline.summary import telling, words_of


def test_words_that_name_a_subject() -> None:
    found = words_of("Please fix the Gateway: src/app.py, PolicyController, ERR_404 (again!) and 12 tests, a --flag.")
    assert found == {"gateway", "src/app.py", "PolicyController", "ERR_404", "flag"}
    assert words_of("x" * 41 + " --- 2026-11-20 7443 é") == set()


def test_pairs_of_a_language_without_spaces() -> None:
    assert {"請求", "求書"} <= words_of("請求書を直す")


def test_what_is_frequent_here_and_rare_elsewhere_comes_first() -> None:
    november = Counter({"gateway": 9, "deploy": 9, "typo": 2, "once": 1})
    everything = november + Counter({"deploy": 90, "typo": 40, "billing": 50})
    assert telling(november, 20, everything, 220, 5) == ["gateway"]
    assert telling(november, 20, everything, 220, 0) == []


def test_a_memory_of_one_stretch_has_its_most_frequent_words() -> None:
    words = {"gateway": 3, "billing": 5, "once": 1}
    assert telling(words, 9, words, 9, 5) == ["billing", "gateway"]
    assert telling({"once": 1}, 1, {"once": 1}, 1, 5) == ["once"]
