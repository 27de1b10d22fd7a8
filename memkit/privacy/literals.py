"""Where the literals are without which no rule can match: one scan of a text for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from re import Pattern
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


def find(text: str, literals: tuple[str, ...]) -> Places:
    """Return where each of `literals` (in lower case, without duplicates) is in `text`, whatever its case.

    A hash of the characters from a position on tells whether one may begin there.
    """
    import numpy as np

    lowered = lower(text)
    single, groups, beginnings, tables = _tables(literals)
    places = {one: [*occurrences(lowered, one)] for one in single if one in lowered}
    hashes = _hashes(lowered)
    begins_2, begins_3, begins_4 = (table[hashes[size]] for size, table in enumerate(tables))
    begins_3 |= begins_4
    for length, may_begin in ((2, begins_2), (3, begins_3)):
        for at in np.flatnonzero(may_begin).tolist():
            pattern = groups.get(lowered[at : at + length])
            longest = pattern.match(lowered, at) if pattern else None
            if longest:
                for literal in beginnings[longest[0]]:
                    places.setdefault(literal, []).append(at)
    return places


@cache
def _tables(
    literals: tuple[str, ...],
) -> tuple[list[str], dict[str, Pattern[str]], dict[str, list[str]], list[Any]]:
    """Return the literals of one character, a pattern for the others with the same first characters, for each
    literal all that it begins with, and tables of which hashes begin one.
    """
    import numpy as np

    tables = [np.zeros(2**16, dtype=bool) for _ in range(3)]
    groups: dict[str, list[str]] = {}
    for literal in sorted(literals, key=len, reverse=True):
        if len(literal) > 1:
            groups.setdefault(literal[:3], []).append(literal)
            size = min(len(literal), 4) - 2
            tables[size][_hashes(literal)[size][0]] = True
    patterns = {start: re.compile("|".join(map(re.escape, group))) for start, group in groups.items()}
    beginnings = {
        literal: [other for other in group if literal.startswith(other)]
        for group in groups.values()
        for literal in group
    }
    return [literal for literal in literals if len(literal) == 1], patterns, beginnings, tables


def _hashes(text: str) -> tuple[Any, Any, Any]:
    """Return for each position a hash of two, of three, and of four characters from there on."""
    import numpy as np

    codes = np.frombuffer((text + "\0\0\0").encode("utf-32-le", "surrogatepass"), dtype=np.uint16)[::2]
    hashes_2 = codes[:-3] * np.uint16(40503) + codes[1:-2] * np.uint16(769)
    hashes_3 = hashes_2 * np.uint16(24851) + codes[2:-1]
    return hashes_2, hashes_3, hashes_3 * np.uint16(30011) + codes[3:]
