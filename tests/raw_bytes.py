"""Which files hold a word, looked for in their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard


def files_holding(root: Path, word: str, is_left_out: Callable[[Path], bool]) -> list[str]:
    """The files below `root` that hold the word in any case, with zstd frames opened."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and not is_left_out(path):
            data = path.read_bytes()
            if path.suffix == ".zst":
                data += b"".join(_frames(data))
            if word.encode() in data.lower():
                found.append(str(path.relative_to(root)))
    return found


def _frames(data: bytes) -> Iterator[bytes]:
    while data:
        one = zstandard.ZstdDecompressor().decompressobj()
        yield one.decompress(data)
        data = one.unused_data
