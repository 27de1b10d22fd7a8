"""Chunks in the form in which a snapshot holds them: what `snapshot` reads and `snapshot_writer` writes.

Chunks that stay as they are go from one snapshot into the next as bytes, which is many times faster than
to parse and to print them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.index.chunk import Chunk
from memkit.index.chunk_reader import CHUNK_FIELDS, OFFSET_TYPE
from memkit.index.columns import Columns, make_columns
from memkit.index.store import Row


@dataclass(frozen=True, slots=True)
class ChunkSegment:
    """Neighbouring chunks. `lengths`, `windows` and the columns are aligned to them.

    `lines` are the chunks as JSON, one a line, `lengths` the bytes of each; `ids` stand one after the
    other; `vectors` (sum of windows, dimensions) are those of the windows, `windows` how many each has.
    """

    lines: bytes | memoryview
    lengths: NDArray[np.int64]
    ids: bytes | memoryview
    columns: Columns
    vectors: NDArray[np.float32]
    windows: NDArray[np.int64]


def segment_of(rows: Sequence[Row], dimensions: int) -> ChunkSegment:
    """The segment of `rows`, whose vectors have `dimensions`."""
    lines = [_to_json(row.chunk) for row in rows]
    vectors = [row.vectors for row in rows if row.vectors is not None]
    return ChunkSegment(
        lines=b"".join(lines),
        lengths=np.array([len(line) for line in lines], OFFSET_TYPE),
        ids=b"".join(row.id.encode("ascii") for row in rows),
        columns=make_columns([row.chunk for row in rows]),
        vectors=np.concatenate([np.zeros((0, dimensions), np.float32), *vectors]),
        windows=np.array([0 if row.vectors is None else len(row.vectors) for row in rows], int),
    )


def _to_json(chunk: Chunk) -> bytes:
    # `dataclasses.asdict` copies deeply, which takes five times as long.
    fields: dict[str, Any] = {stored: getattr(chunk, name) for name, stored in CHUNK_FIELDS.items()}
    return json.dumps(fields).encode("ascii") + b"\n"
