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


class Literals:
    """Literals in lower case, which one scan of a text finds.

    A hash of the characters from a position on tells whether one may begin there. One pattern for all with
    the same first characters finds the longest; the others there are among what the longest begins with.
    """

    def __init__(self, literals: Iterable[str]) -> None:
        import numpy as np

        self.all = sorted(set(literals), key=len, reverse=True)
        self._tables = [np.zeros(2**16, dtype=bool) for _ in range(3)]
        groups: dict[str, list[str]] = {}
        for literal in self.all:
            groups.setdefault(literal[:3], []).append(literal)
            size = min(len(literal), 4) - 2
            if size >= 0:
                self._tables[size][_hashes(literal)[size][0]] = True
        self._single = [literal for literal in self.all if len(literal) == 1]
        self._patterns = {start: re.compile("|".join(map(re.escape, all_))) for start, all_ in groups.items()}
        self._beginnings = {
            literal: [other for other in group if literal.startswith(other)]
            for group in groups.values()
            for literal in group
        }

    def find(self, text: str) -> Places:
        """Return where each of the literals is in `text`, whatever its case."""
        import numpy as np

        lowered = lower(text)
        places = {one: [*occurrences(lowered, one)] for one in self._single if one in lowered}
        hashes = _hashes(lowered)
        begins_2, begins_3, begins_4 = (table[hashes[size]] for size, table in enumerate(self._tables))
        begins_3 |= begins_4
        for length, may_begin in ((2, begins_2), (3, begins_3)):
            for at in np.flatnonzero(may_begin).tolist():
                pattern = self._patterns.get(lowered[at : at + length])
                longest = pattern.match(lowered, at) if pattern else None
                if longest:
                    for literal in self._beginnings[longest[0]]:
                        places.setdefault(literal, []).append(at)
        return places


def _hashes(text: str) -> tuple[Any, Any, Any]:
    """Return for each position a hash of two, of three, and of four characters from there on."""
    import numpy as np

    codes = np.frombuffer((text + "\0\0\0").encode("utf-32-le", "surrogatepass"), dtype=np.uint16)[::2]
    hashes_2 = codes[:-3] * np.uint16(40503) + codes[1:-2] * np.uint16(769)
    hashes_3 = hashes_2 * np.uint16(24851) + codes[2:-1]
    return hashes_2, hashes_3, hashes_3 * np.uint16(30011) + codes[3:]
