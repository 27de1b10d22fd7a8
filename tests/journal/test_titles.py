"""The title of a turn says something, in plain text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.journal.sentences import names_subject
from memkit.journal.titles import TITLE_CHARACTERS, title_of
from tests.ci import examples


@pytest.mark.parametrize(
    ("prompt", "answer", "title"),
    [
        ("Which port?", "7443.", "Which port?"),
        ("yes.", "🎉 **SUCCESS! Rebase complete and pushed!**", "Rebase complete and pushed!"),
        ("ok\n\nmove the gateway", "Done.", "move the gateway"),
        ("yes", "Done.", "yes"),
        ("continue", "Perfect! I moved the gateway to 7443.", "I moved the gateway to 7443."),
        ("Perfect! Can you move it?", "Yes.", "Can you move it?"),
        ("## Use **bold** and [links](https://a.test) in `a.py` 🎉", "", "Use bold and links in a.py"),
        ("```\nlog\n```\nwhy does this fail?", "", "why does this fail?"),
        ("2026-01-01 12:00 ERROR x\nwhy does this fail?", "", "why does this fail?"),
        ("Two problems:\n1. the port is wrong\n2. no test", "", "Two problems: 1. the port is wrong"),
        ("Code Review for PR #17: Fix it\n\nStrengths\nGood parsing", "All blocking issues are fixed:", "All blocking issues are fixed"),
        ("code review the gateway", "It is fine.", "code review the gateway"),
        ("Implement the following plan:\n\n# Plan: Fix: Drop IE\n\n## Context\nIt is old.", "", "Fix: Drop IE"),
        ("Setze den folgenden Plan um:\n\n# Gateway Plan\n\nEr zieht um.", "", "Gateway"),
        ("I got this feedback:\n\nThe cache key ends in a digest", "", "I got this feedback: The cache key ends in a digest"),
        ("can you look at the changes here?\nThe cache key is wrong", "", "The cache key is wrong"),
        (f"can you please look at the branch, {'the gateway ' * 8}", "", f"{'the gateway ' * 8}".strip()),
        (f"we review https://x.test/a/pull/7 - {'please ' * 15}ask", "", f"we review https://x.test/a/pull/7 - {'please ' * 8}…"),
        ("fix lint errors:\n  a.go:12:1: unused flag\n    if flag == nil {", "Fixed.", "fix lint errors"),
        ("fix lint:\n[… 416 characters left out: `memkit transcript`]\n", "Fixed.", "fix lint"),
        ("You are a senior developer, skilled in git.\n\nfind the cache leak", "", "find the cache leak"),
        ("• notarizing the cache\n⨯ release failed after 0s\n", "The notary key was missing.", "The notary key was missing."),
        ("Operation stopped by hook: Another session is active", "The other session is old.", "The other session is old."),
        ("/review", "Let me look at it. The gateway has two bugs.", "The gateway has two bugs."),
        ("/review 42", "The pull request has two bugs.", "The pull request has two bugs."),
        ("/deploy-check staging", "All is well.", "/deploy-check staging"),
        ("! ls *.py", "Two modules are left.", "! ls *.py"),
        ("", "✅ **All checks pass**", "All checks pass"),
        ("", "", ""),
    ],
)
def test_what_the_title_says(prompt: str, answer: str, title: str) -> None:
    assert title_of(prompt, answer) == title


@settings(max_examples=examples(150))
@given(st.text(), st.text())
def test_it_is_one_line(prompt: str, answer: str) -> None:
    title = title_of(prompt, answer)
    assert len(title) <= TITLE_CHARACTERS
    assert "\n" not in title
    assert "<!--" not in title
    assert title == title_of(prompt, answer)


def test_the_number_of_a_ticket_names_no_subject() -> None:
    assert not names_subject("have a look at linear ABC-108, we work on that here")
    assert names_subject("have a look at ABC-108, the gateway port")
