"""The places of the literals without which no rule can match: one scan of a text finds all of them."""

from __future__ import annotations

import re
from collections import defaultdict
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


_ASIAN = re.compile("[\u3040-\ud7af]")  # the scripts of short literals that are not ASCII
_FEW = 100  # characters up to which a loop is faster than numpy
_FACTOR = 24851


class Literals:
    """Literals in lower case, which one scan of a text finds.

    A hash of three characters tells where a literal may begin, and one of four confirms it. One pattern for
    all with the same first characters finds the longest; the others there are among what it begins with.
    """

    def __init__(self, literals: Iterable[str]) -> None:
        import numpy as np

        self.all = sorted(set(literals), key=len, reverse=True)
        self._short = [literal for literal in self.all if len(literal) < 3]
        self._short_ascii = [*filter(str.isascii, self._short)]
        self._begin_3, self._begin_4, self._end_3 = (np.zeros(2**16, dtype=bool) for _ in range(3))
        groups: dict[str, list[str]] = {}
        for literal in self.all[: len(self.all) - len(self._short)]:
            groups.setdefault(literal[:3], []).append(literal)
            codes, hashes = _hashes(literal)
            self._begin_3[hashes[0]] = True
            self._begin_4[hashes[:1] * _FACTOR + codes[3]] = True
            self._end_3[hashes[0]] |= len(literal) == 3
        self._match = {key: re.compile("|".join(map(re.escape, all_))).match for key, all_ in groups.items()}
        self._beginnings = {one: [*filter(one.startswith, all_)] for all_ in groups.values() for one in all_}

    def find(self, lowered: str) -> Places:
        """Return where each of the literals is in a text in lower case."""
        short = self._short if not lowered.isascii() and _ASIAN.search(lowered) else self._short_ascii
        places = defaultdict(list, {one: [*occurrences(lowered, one)] for one in short if one in lowered})
        for at in range(len(lowered)) if len(lowered) < _FEW else self._may_begin(lowered):
            match = self._match.get(lowered[at : at + 3])
            longest = match(lowered, at) if match else None
            if longest:
                for literal in self._beginnings[longest[0]]:
                    places[literal].append(at)
        return places

    def _may_begin(self, lowered: str) -> list[int]:
        codes, hashes = _hashes(lowered)
        found = self._begin_3.take(hashes).nonzero()[0]
        hashes = hashes[found]
        is_begin = self._begin_4.take(hashes * _FACTOR + codes[found + 3]) | self._end_3.take(hashes)
        return found[is_begin].tolist()  # type: ignore[no-any-return]


def _hashes(text: str) -> tuple[Any, Any]:
    """Return the lower 16 bits of each character, and for each position a hash of three of them."""
    import numpy as np

    encoding, size = ("ascii", np.uint8) if text.isascii() else ("utf-32-le", np.uint32)
    codes = np.frombuffer((text + "\0\0\0").encode(encoding, "surrogatepass"), dtype=size).astype(np.uint16)
    hashes = codes[:-3] * 40503
    hashes += codes[1:-2]
    hashes *= _FACTOR
    hashes += codes[2:-1]
    return codes, hashes
