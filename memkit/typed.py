"""Turn plain values into typed ones, in any thread."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_building = threading.Lock()


def typed(value: Any, kind: type[T]) -> T:
    """Return a plain value as a `kind`, as `msgspec.convert` does.

    msgspec builds the type information of a class at its first use, and crashes if two threads do so at once.
    """
    with _building:
        msgspec.json.Decoder(kind)  # takes a microsecond once it is built
    return msgspec.convert(value, kind)
