"""What ranking and filtering need to know of all chunks at once, as arrays.

Reading a chunk means parsing it; a search that looks at a hundred thousand of them reads these.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.index.chunk import Chunk

NAMED = ("session", "kind", "branch", "source", "domain")
"""Columns whose numbers stand for names; equal numbers, equal names, and -1 for the empty one."""

DTYPE = np.dtype([(name, np.int32) for name in ("length", "entry", "day", *NAMED)])
"""A row a chunk. `length` is the content's in characters, `entry` numbers what belongs together (the
pieces of a turn; else each chunk is one), `day` is the proleptic ordinal of the date, 0 without one.
"""

Names = dict[str, list[str]]
"""For each of `NAMED` the names its numbers stand for."""


def make_columns(chunks: Sequence[Chunk]) -> tuple[NDArray[Any], Names]:
    """The columns of `chunks`, in their order, and the names their numbers stand for."""
    codes: dict[str, dict[str, int]] = {name: {"": -1} for name in NAMED}
    entries: dict[object, int] = {}
    rows = []
    for number, chunk in enumerate(chunks):
        entry: object = (chunk.session, chunk.turns) if chunk.kind == "turn" else number
        named = (
            codes[name].setdefault(getattr(chunk, name), len(codes[name]) - 1) for name in NAMED
        )
        rows.append(
            (
                len(chunk.content),
                entries.setdefault(entry, len(entries)),
                date.fromisoformat(chunk.date).toordinal() if chunk.date else 0,
                *named,
            )
        )
    names = {name: list(known)[1:] for name, known in codes.items()}
    return np.array(rows, dtype=DTYPE), names
