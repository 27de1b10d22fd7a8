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

DTYPE = np.dtype(
    [*((name, np.int32) for name in ("length", "entry", "day", *NAMED)), ("text", np.int64)]
)
"""A row a chunk. `length` is the content's in characters, `entry` numbers what belongs together (the
pieces of a turn; else each chunk is one), `day` is the proleptic ordinal of the date, 0 without one,
`text` is `Chunk.text_number`.
"""

Names = dict[str, list[str]]
"""For each of `NAMED` the names its numbers stand for."""

Columns = tuple[NDArray[Any], Names]
"""An array of `DTYPE`, and the names its numbers stand for."""


def make_columns(chunks: Sequence[Chunk]) -> Columns:
    """The columns of `chunks`, in their order; names and entries are numbered as they come."""
    codes: dict[str, dict[str, int]] = {name: {"": -1} for name in NAMED}
    entries: dict[object, int] = {}
    rows = []
    for number, chunk in enumerate(chunks):
        turn = (chunk.source, chunk.session, chunk.turns)
        entry: object = turn if chunk.kind == "turn" else number
        named = (
            codes[name].setdefault(getattr(chunk, name), len(codes[name]) - 1) for name in NAMED
        )
        rows.append(
            (
                len(chunk.content),
                entries.setdefault(entry, len(entries)),
                date.fromisoformat(chunk.date).toordinal() if chunk.date else 0,
                *named,
                chunk.text_number,
            )
        )
    names = {name: list(known)[1:] for name, known in codes.items()}
    return np.array(rows, dtype=DTYPE), names


def join(parts: Sequence[Columns]) -> Columns:
    """The columns of several texts, one after the other, numbered as if they had been made at once.

    No entry may go over from one part to the next. A part may be a slice of an array, with the names
    of all of it; those that the slice does not use are dropped.
    """
    columns = np.concatenate([np.zeros(0, DTYPE), *(rows for rows, _ in parts)])
    codes: dict[str, dict[str, int]] = {name: {} for name in NAMED}
    begin = entries = 0
    for rows, names in parts:
        own = columns[begin : begin + len(rows)]
        begin += len(rows)
        if not len(own):
            continue
        own["entry"] += entries - own["entry"].min()
        entries = int(own["entry"].max()) + 1
        for name, known in codes.items():
            used, first = np.unique(own[name], return_index=True)
            numbers = np.full(len(names[name]) + 1, -1, np.int32)  # the last is for the empty name
            for number in used[np.argsort(first)].tolist():
                if number >= 0:
                    numbers[number] = known.setdefault(names[name][number], len(known))
            own[name] = numbers[own[name]]
    return columns, {name: list(known) for name, known in codes.items()}
