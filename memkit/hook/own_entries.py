"""The record of what this memory home wrote into a project's memory. Hooks quote nothing else.

The files of a memory may come with a repository, from anybody. So the home keeps, for each project, a
fingerprint of each heading, entry, and bullet that its journal ever wrote. Anchors prove nothing: anybody
who has seen a memory can forge them around other words.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator

from memkit import anchors
from memkit.files import MOST_BYTES, PRIVATE_FILE, make_private_directory, read_tail
from memkit.hook.project import Registry, digest16
from memkit.paths import Home
from memkit.text import encodable

HOOK_BYTES = 1024 * 1024
"""Bytes of the record's end that a hook reads: the newest sixty thousand fingerprints."""

ANSWER_CHARACTERS = 280
"""Characters of an entry's answer to quote; the skill shows the rest."""

_BLOCK = 65_536

# A line ends at a line feed only, as for the journal.
_HEADING = re.compile(r"^#{2,3} [^\n]*", re.MULTILINE)
_LABEL = re.compile(r"^\*\*(Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)


class OwnEntries:
    """The words in one project's memory that this home wrote."""

    def __init__(self, home: Home, root: str, most: int = MOST_BYTES) -> None:
        """Read at most the last `most` bytes of each record, for the project's root and its earlier ones."""
        parts = []
        for place in (root, *Registry.read(home).earlier_roots(root)):
            try:
                parts.append(read_tail(own_file(home, place), most))
            except OSError:  # nothing was written yet, or the record is unreadable
                continue
        self._fingerprints = b"\n" + b"\n".join(parts) + b"\n"

    def __contains__(self, words: object) -> bool:
        """Return whether this home wrote these words: a heading, a bullet, or `entry_words`."""
        return isinstance(words, str) and b"\n" + _fingerprint(words) + b"\n" in self._fingerprints


def own_file(home: Home, root: str) -> str:
    """The path of the fingerprints of the project at `root`."""
    return os.path.join(home.projects, digest16(root) + ".own")


def note_own(
    home: Home, root: str, before: str, after: str, among: Container[str] | None = None
) -> None:
    """Record the words that are in the text `after` of a file, not in `before`, and `among` the given ones.

    Call it before the file is written: words that never get there do no harm. Raise `OSError`.
    """
    before, after = _without_equal_ends(before, after)
    old = set(quotable(before))
    _record(
        home,
        root,
        [
            words
            for words in dict.fromkeys(quotable(after))
            if words not in old and (among is None or words in among)
        ],
    )


def note_redacted(home: Home, root: str, before: str, after: str) -> None:
    """Record the words of `after` that are own words of `before`, redacted. Raise `OSError`."""
    old, new = list(quotable(before)), list(quotable(after))
    if len(old) != len(new):  # not the same entries
        return
    own = OwnEntries(home, root)
    _record(home, root, [b for a, b in zip(old, new) if a != b and a in own])


def _record(home: Home, root: str, new: list[str]) -> None:
    if not new:
        return
    make_private_directory(home.projects)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(own_file(home, root), flags, PRIVATE_FILE), "ab") as file:
        file.write(b"".join(_fingerprint(words) + b"\n" for words in new))


def quotable(text: str) -> Iterator[str]:
    """Yield the headings, bullets, and entries of a memory file as they would be quoted."""
    for line in text.split("\n"):
        if line.startswith("#"):
            yield heading_words(line)
        elif line.startswith("- ") and "<!--" in line:
            yield bullet_words(line)
    for heading, body in entries_of(text):
        yield entry_words(heading, answer_of(body))


def _without_equal_ends(before: str, after: str) -> tuple[str, str]:
    """Return the parts in which two texts differ, from the heading of a turn to the end of an entry.

    Turns are added to a day of megabytes many times; do not parse the unchanged text each time.
    """
    most, start, end = min(len(before), len(after)), 0, 0
    while start + _BLOCK <= most and before.startswith(after[start : start + _BLOCK], start):
        start += _BLOCK
    while start + end + _BLOCK <= most:
        block = after[len(after) - end - _BLOCK : len(after) - end]
        if not before.startswith(block, len(before) - end - _BLOCK):
            break
        end += _BLOCK
    start = after.rfind("\n", 0, max(0, after.rfind("<!-- turn:", 0, start))) + 1
    end = max(0, end - _BLOCK)  # an entry is shorter
    return before[start : len(before) - end], after[start : len(after) - end]


def heading_words(line: str) -> str:
    """Return a heading without its marks and anchors, on one line."""
    return " ".join(anchors.strip(line).lstrip("#").split())


def bullet_words(line: str) -> str:
    """Return a bullet without its mark and anchors, on one line."""
    line = anchors.strip(line)
    return " ".join((line[2:] if line.startswith("- ") else line).split())


def entry_words(heading: str, answer: str) -> str:
    """Return an entry as it is quoted: its heading, and the start of its answer if it has one."""
    return f"{heading} -> {answer}" if answer else heading


def entries_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield heading and body of each turn and note; as in the journal, only anchors bound them."""
    heading, start = "", 0
    for match in _HEADING.finditer(text):
        line = match[0]
        found = anchors.parse(line)
        is_entry = ("turn" if line.startswith("### ") else "note") in found
        if is_entry or (line.startswith("## ") and "session" in found):
            if heading:
                yield heading, text[start : match.start() - 1]
            heading, start = heading_words(line) if is_entry else "", match.end() + 1
    if heading:
        yield heading, text[start:]


def answer_of(body: str) -> str:
    """Return the start of the answer on one line, cut at a word."""
    parts = _LABEL.split(body)
    labelled = dict(zip(parts[1::2], parts[2::2]))
    text = " ".join((labelled.get("Answered") or labelled.get("Did") or "").split())
    if len(text) <= ANSWER_CHARACTERS:
        return text
    return text[: ANSWER_CHARACTERS - 2].rsplit(" ", 1)[0] + " …"


def _fingerprint(words: str) -> bytes:
    return digest16(encodable(words)).encode("ascii")
