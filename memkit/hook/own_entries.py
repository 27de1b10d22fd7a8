"""What of a project's memory this memory home wrote: nothing else is quoted unless somebody asks.

The files of a memory may come with a repository, from anybody. So the home keeps, for each project, a
fingerprint of each heading, entry, and bullet that its journal ever put into a file. Anchors prove
nothing: who has seen a memory can forge them around words of their own.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator

from memkit import anchors
from memkit.files import MOST_BYTES, PRIVATE_FILE, make_private_directory, read_tail
from memkit.hook.project import Registry, digest16
from memkit.paths import Home

HOOK_BYTES = 1024 * 1024
"""How much of the record's end a hook reads: about sixty thousand fingerprints, the newest ones."""

ANSWER_CHARACTERS = 280
"""How much of an entry's text is shown; the skill shows the rest."""

_BLOCK = 65_536

_LABEL = re.compile(r"^\*\*(Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)


class OwnEntries:
    """The words of one project that this home wrote."""

    def __init__(self, home: Home, root: str, most: int = MOST_BYTES) -> None:
        """Read at most the last `most` bytes of the record of the project at `root`, wherever it was."""
        parts = []
        for place in (root, *Registry.read(home).earlier_roots(root)):
            try:
                parts.append(read_tail(own_file(home, place), most))
            except OSError:  # nothing was written yet; what cannot be read vouches for nothing
                continue
        self._known = b"\n" + b"\n".join(parts) + b"\n"

    def __contains__(self, words: object) -> bool:
        """Return whether this home wrote these words: a heading, a bullet, or `entry_words`."""
        return isinstance(words, str) and b"\n" + _fingerprint(words) + b"\n" in self._known


def own_file(home: Home, root: str) -> str:
    """Where the fingerprints of the project at `root` are kept."""
    return os.path.join(home.projects, digest16(root) + ".own")


def note_own(
    home: Home, root: str, before: str, after: str, among: Container[str] | None = None
) -> None:
    """Record what the text `after` of a file has that `before` lacks, if it is `among`. Raise `OSError`.

    Call it before the file is written: words that never get there do no harm in the record.
    """
    before, after = _without_equal_ends(before, after)
    known = set(quotable(before))
    _record(
        home,
        root,
        [
            words
            for words in dict.fromkeys(quotable(after))
            if words not in known and (among is None or words in among)
        ],
    )


def note_redacted(home: Home, root: str, before: str, after: str) -> None:
    """Record the words of `after` that are own words of `before`, redacted. Raise `OSError`."""
    old, new = list(quotable(before)), list(quotable(after))
    if len(old) != len(new):  # not the same entries: nothing tells which became which
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
    """The headings, bullets, and entries of a memory file, in the words in which they would be quoted."""
    for line in text.split("\n"):
        if line.startswith("#"):
            yield heading_words(line)
        elif line.startswith("- ") and "<!--" in line:
            yield bullet_words(line)
    for heading, body in entries_of(text):
        yield entry_words(heading, answer_of(body))


def _without_equal_ends(before: str, after: str) -> tuple[str, str]:
    """The part in which two texts differ, from the heading of a turn on, with what follows of an entry.

    A turn is added to a day of megabytes many times; what stays need not be read again each time.
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
    """A heading without its marks and anchors, on one line."""
    return " ".join(anchors.strip(line).lstrip("#").split())


def bullet_words(line: str) -> str:
    """A bullet without its mark and anchors, on one line."""
    line = anchors.strip(line)
    return " ".join((line[2:] if line.startswith("- ") else line).split())


def entry_words(heading: str, answer: str) -> str:
    """An entry as it is quoted: its heading, and the start of its answer if it has one."""
    return f"{heading} -> {answer}" if answer else heading


def entries_of(text: str) -> Iterator[tuple[str, str]]:
    """Heading and body of each turn and note; as in the journal, only anchors bound them."""
    heading, body = "", []  # type: tuple[str, list[str]]
    # Lines as the journal sees them: at another line end, a stranger's heading would end for one only.
    for line in text.split("\n"):
        found = anchors.parse(line) if line.startswith(("## ", "### ")) else {}
        is_entry = ("turn" if line.startswith("### ") else "note") in found
        if is_entry or (line.startswith("## ") and "session" in found):
            if heading:
                yield heading, "\n".join(body)
            heading, body = heading_words(line) if is_entry else "", []
        else:
            body.append(line)
    if heading:
        yield heading, "\n".join(body)


def answer_of(body: str) -> str:
    """The start of the answer on one line, cut at a word."""
    parts = _LABEL.split(body)
    labelled = dict(zip(parts[1::2], parts[2::2]))
    text = " ".join((labelled.get("Answered") or labelled.get("Did") or "").split())
    if len(text) <= ANSWER_CHARACTERS:
        return text
    return text[: ANSWER_CHARACTERS - 2].rsplit(" ", 1)[0] + " …"


def _fingerprint(words: str) -> bytes:
    return digest16(words.encode("utf-8", "replace").decode("utf-8")).encode("ascii")
