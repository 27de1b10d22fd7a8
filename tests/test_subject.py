"""The subject of a prompt: its words without those of any coding session."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.subject import subject_of
from tests.ci import examples


@pytest.mark.parametrize(
    ("prompt", "subject"),
    [
        ("please change the port of the staging gateway", "the port of the staging gateway"),
        ("Run the tests, and fix what fails!", "the and what"),
        ("What is 2+2?", "What is"),
        ("17 * 23 = ?", ""),
        ("why is port 443 taken", "why is port 443 taken"),
        ("tests/test_orders.py fails in run_in_executor", "tests/test_orders.py in run_in_executor"),
        ("commits, committed, committing, tries, copied", ""),
        ("Postgres’s orders", "Postgres’s orders"),
        ("", ""),
    ],
)
def test_subjects(prompt: str, subject: str) -> None:
    assert subject_of(prompt) == subject


@settings(max_examples=examples(100))
@given(st.text(max_size=200))
def test_any_prompt(prompt: str) -> None:
    assert set(subject_of(prompt).split()) <= set(prompt.split())
