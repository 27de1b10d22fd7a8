"""Documents whose postings several parts hold, and writes that are cut short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from memkit.index.lexical import Arrays, JoinedPostings, LexicalIndex, Postings, make_arrays

Parts = list[tuple[Arrays, NDArray[np.int32]]]


@st.composite
def parts_of(draw: st.DrawFn, texts: Sequence[str]) -> Parts:
    """The arrays of parts that hold `texts` and others in any order, and the slot of each document."""
    count = draw(st.integers(1, 4), "parts")
    held: list[list[tuple[int, str]]] = [[] for _ in range(count)]
    for slot, text in enumerate(texts):
        held[draw(st.integers(0, count - 1))].append((slot, text))
    for own in held:
        for text in draw(st.lists(st.sampled_from(["gateway port", "ERR_404", "gone gone", ""]), max_size=2)):
            own.insert(draw(st.integers(0, len(own))), (-1, text))
    return [
        (make_arrays((text for _, text in own), "english"), np.array([slot for slot, _ in own], np.int32))
        for own in held
    ]


@st.composite
def in_parts(draw: st.DrawFn, texts: Sequence[str]) -> LexicalIndex:
    """The index of `texts` over such parts."""
    return joined(draw(parts_of(texts)), len(texts))


def joined(parts: Parts, size: int) -> LexicalIndex:
    """The index over parts."""
    lengths = np.zeros(size, np.int32)
    for arrays, places in parts:
        lengths[places[places >= 0]] = arrays["lengths"][places >= 0]
    postings = JoinedPostings([(Postings(arrays), places) for arrays, places in parts])
    return LexicalIndex("english", postings, lengths)


class Writes:
    """Lets calls of the functions that it wraps happen as often as `left` says. The next one is an interrupt."""

    left = 0

    def limit(self, patch: pytest.MonkeyPatch, owner: Any, *names: str) -> None:
        for name in names:
            patch.setattr(owner, name, self._limited(getattr(owner, name)))

    def _limited(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            return original(*arguments, **options)

        return call
