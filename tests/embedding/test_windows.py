from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.embedding.models import Token, cut_into_windows
from tests.ci import examples


def words(text: str) -> list[Token]:
    """Tokenize words into pieces of at most four characters."""
    return [
        Token(start, min(start + 4, match.end()), number)
        for number, match in enumerate(re.finditer(r"\S+", text))
        for start in range(match.start(), match.end(), 4)
    ]


def characters(text: str) -> list[Token]:
    """Tokenize characters, with two tokens for each beyond ASCII."""
    return [
        Token(index, index + 1, None)
        for index, character in enumerate(text)
        if not character.isspace()
        for _ in range(1 if character.isascii() else 2)
    ]


def joined(parts: list[str]) -> str:
    return "".join("".join(part.split()) for part in parts)


@pytest.mark.parametrize(
    ("text", "limit", "windows"),
    [
        (" one two \n", 2, [" one two \n"]),  # it fits
        ("", 2, [""]),
        ("a b c\nd e.\n \nf g h i j", 8, ["a b c\nd e.", "f g h i j"]),  # paragraph
        ("a b c. d\ne f g. h i j", 8, ["a b c. d", "e f g. h i j"]),  # line
        ("a b c. d e f g h i j", 8, ["a b c.", "d e f g h i j"]),  # sentence
        ("a b c d e f g h i j", 8, ["a b c d e", "f g h i j"]),  # word
        ("a b c d eeeeeeee f g h i", 8, ["a b c d", "eeeeeeee f g h i"]),  # not inside a word
        ("a\n\nb c d e f g h i j", 8, ["a\n\nb c d e", "f g h i j"]),  # too far from an equal share
        ("x" * 40, 4, ["x" * 16, "x" * 12, "x" * 12]),  # a word longer than a window
    ],
)
def test_the_cut_is_at_the_best_boundary(text: str, limit: int, windows: list[str]) -> None:
    assert cut_into_windows(text, limit, words) == windows


texts = st.text(st.sampled_from("ab é.!\n\n。\t"), max_size=200) | st.text(max_size=200)


@settings(max_examples=examples(100))
@given(texts, st.integers(1, 12))
def test_windows_fit_and_keep_everything(text: str, limit: int) -> None:
    windows = cut_into_windows(text, limit, words)
    assert joined(windows) == joined([text])
    assert all(len(words(window)) <= limit for window in windows)
    if len(words(text)) > limit:
        assert all(window == window.strip() != "" for window in windows)
    windows = cut_into_windows(text, limit + 1, characters)
    assert set(joined([text])) == set(joined(windows))
    assert all(len(characters(window)) <= limit + 1 for window in windows)
