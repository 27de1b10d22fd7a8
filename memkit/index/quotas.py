"""Limits for calls to a Chroma server: those of Chroma Cloud, on any server.

Source: https://docs.trychroma.com/cloud/quotas-limits. The cloud refuses a call as a whole if it exceeds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_ROWS = 300
"""Records of one write, and results of one read."""

MOST_DOCUMENT_BYTES = 16_384
MOST_KEYS = 32
MOST_VALUE_BYTES = 4_096
"""The limit for one value of a record's metadata."""

WORK_CALLS = 4
SEARCH_CALLS = 4
"""Concurrent calls of one process, by passes and by searches. Chroma Cloud accepts ten, and a command may run
next to the service.
"""


def fit_document(text: str) -> str:
    """Return as much of `text` as a record takes."""
    return _cut(text, MOST_DOCUMENT_BYTES)


def fit_metadata(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata whose texts, of any length, are cut to fit. Raise `ValueError` for too many keys."""
    if len(values) > MOST_KEYS:
        raise ValueError(f"a row has {len(values)} keys, and a server takes {MOST_KEYS}")
    return {
        name: _cut(value, MOST_VALUE_BYTES) if isinstance(value, str) else value
        for name, value in values.items()
    }


def fit_list(names: tuple[str, ...]) -> str:
    """Return the first of `names`, joined by commas, that a value takes."""
    joined = ",".join(names)
    if len(joined.encode("utf-8", "replace")) <= MOST_VALUE_BYTES:
        return joined
    return _cut(joined, MOST_VALUE_BYTES).rpartition(",")[0]


def _cut(text: str, most: int) -> str:
    # A lone surrogate has no UTF-8, and no server takes it.
    data = text.encode("utf-8", "replace")
    return data[:most].decode("utf-8", "ignore")
