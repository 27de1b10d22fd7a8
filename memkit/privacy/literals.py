"""Where the literals are without which no rule can match: one scan of a text for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

Places = dict[str, list[int]]
"""The positions in a lower-case text of each literal that it contains."""


def lower(text: str) -> str:
    """Return `text` in lower case with the same length: one capital letter would become two characters."""
    return text.replace("\u0130", "I").lower()


def occurrences(text: str, word: str) -> Iterator[int]:
    """Yield the positions of `word` in `text`, overlapping ones too."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


_ASIAN = re.compile("[\u3040-\ud7af]")
"""The scripts of all literals shorter than three characters that are not ASCII."""

FEW = 100
"""Characters up to which a loop is faster than numpy."""


class Literals:
    """Literals in lower case, which one scan of a text finds.

    A hash of three characters tells whether a literal may begin there, and one of four confirms it. One pattern for
    all with the same first characters finds the longest; the others there are among what the longest begins with.
    """

    def __init__(self, literals: Iterable[str]) -> None:
        import numpy as np

        self.all = sorted(set(literals), key=len, reverse=True)
        self._short = [literal for literal in self.all if len(literal) < 3]
        self._begin_3, self._begin_4, self._end_3 = (np.zeros(2**16, dtype=bool) for _ in range(3))
        groups: dict[str, list[str]] = {}
        for literal in self.all[: len(self.all) - len(self._short)]:
            groups.setdefault(literal[:3], []).append(literal)
            codes = _codes(literal)
            hashes = _hashes(codes)
            self._begin_3[hashes[:1]] = True
            if len(literal) > 3:
                self._begin_4[hashes[:1] * _FACTOR + codes[3]] = True
            else:
                self._end_3[hashes[:1]] = True
        self._groups = {
            start: (re.compile("|".join(map(re.escape, group))).match, {one: [*filter(one.startswith, group)] for one in group})
            for start, group in groups.items()
        }

    def find(self, lowered: str) -> Places:
        """Return where each of the literals is in a text in lower case."""
        is_asian = not lowered.isascii() and _ASIAN.search(lowered) is not None
        places = {one: [*occurrences(lowered, one)] for one in self._short if (is_asian or one.isascii()) and one in lowered}
        for at in range(len(lowered)) if len(lowered) < FEW else self._may_begin(lowered):
            group = self._groups.get(lowered[at : at + 3])
            longest = group and group[0](lowered, at)
            if group and longest:
                for literal in group[1][longest[0]]:
                    places.setdefault(literal, []).append(at)
        return places

    def _may_begin(self, lowered: str) -> list[int]:
        codes = _codes(lowered)
        hashes = _hashes(codes)
        found = self._begin_3.take(hashes).nonzero()[0]
        hashes = hashes[found]
        is_begin = self._begin_4.take(hashes * _FACTOR + codes[found + 3]) | self._end_3.take(hashes)
        return found[is_begin].tolist()  # type: ignore[no-any-return]


_FACTOR = 24851


def _codes(text: str) -> Any:
    """Return the lower 16 bits of each character of a text, and three zeros."""
    import numpy as np

    if text.isascii():
        return np.frombuffer((text + "\0\0\0").encode(), dtype=np.uint8).astype(np.uint16)
    return np.frombuffer((text + "\0\0\0").encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint16)


def _hashes(codes: Any) -> Any:
    """Return a hash of three characters for each position."""
    hashes = codes[:-3] * 40503
    hashes += codes[1:-2]
    hashes *= _FACTOR
    hashes += codes[2:-1]
    return hashes
