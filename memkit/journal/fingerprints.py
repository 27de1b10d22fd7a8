"""Fingerprints of turns' sections, by which an edit is noticed. They name the format of the section."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from memkit.journal.day_file import DayFile, Section, encoded

_FORMAT = "-2"
"""Ends the fingerprints of sections as `memkit.journal.digest` renders them now. Earlier ones lack it."""


def written_lines(content: DayFile, section: Section, hashes: Iterable[str]) -> int:
    """Return how many lines of the section read as they were written, or 0 if they were edited.

    A user's note below them does not count.
    """
    read = hashlib.sha256()
    count = 0
    hashes = {one.removesuffix(_FORMAT) for one in hashes}
    for number, line in enumerate(content.lines[section.start : section.end], start=1):
        read.update(encoded(line if number == 1 else f"\n{line}"))
        if _shown(read) in hashes:
            count = number
    return count


def section_hash(section: str) -> str:
    """Return a fingerprint of a turn's section as written, to detect a later edit. It names the format."""
    return _shown(hashlib.sha256(encoded(section))) + _FORMAT


def is_of_format_1(known: str) -> bool:
    """Return whether a version that rendered turns otherwise made this fingerprint."""
    return not known.endswith(_FORMAT)


def _shown(read: hashlib._Hash) -> str:
    return read.hexdigest()[:16]
