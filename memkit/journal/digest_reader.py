"""Read a digest back: how many words a turn has, and which files it worked on.

Plain string searches, so that years of days take a second. A user or a conversation can write a label too;
the first one counts.
"""

from __future__ import annotations

from typing import NamedTuple

from memkit.journal.digest import FILE_TOOLS

_EDITING = FILE_TOOLS - {"Read", "LS"}
_SAID = ("\n**Asked**", "\n**Answered**", "\n**Interrupted**")
_DID = "\n**Did**"


class FileCall(NamedTuple):
    """A tool call on a file: the path as the digest shows it, and whether the call edited the file."""

    path: str
    is_edit: bool


class DigestText(NamedTuple):
    """The words and file calls of a turn. A digest shows only the first `digest.MAX_TOOLS` tools."""

    words: int
    calls: list[FileCall]


def read_turn(section: str) -> DigestText:
    """Read the section of a turn, including its heading."""
    start = section.find("\n")
    if start < 0:
        return DigestText(0, [])
    did = section.find(_DID, start)
    if did < 0:
        return DigestText(_word_count(section[start:]), [])
    end, lines = _tool_lines(section, did + len(_DID))
    words = _word_count(section[start:did]) + _word_count(section[end:])
    return DigestText(words, [call for line in lines if (call := _file_call(line)) is not None])


def _word_count(text: str) -> int:
    """Count the words in whole lines, without the labels that begin them."""
    return len(text.split()) - sum(map(text.count, _SAID))


def _tool_lines(section: str, start: int) -> tuple[int, list[str]]:
    """Return the end of the list of tools that begins at `start`, behind the label, and its entries."""
    end = _line_end(section, start)
    inline = section[start:end].strip()
    if inline:
        return end, inline.split(" · ")
    lines = []
    if section.startswith("\n\n- ", start):
        end = start + 1
        while section.startswith("\n- ", end):
            begin, end = end + 3, _line_end(section, end + 1)
            lines.append(section[begin:end])
    return end, lines


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _file_call(line: str) -> FileCall | None:
    name, _, rest = line.removeprefix("↳ ").partition(" ")
    if name not in FILE_TOOLS:
        return None
    path, outcome, _ = rest.partition(" → ")
    if not path or path.startswith("→ "):
        return None
    # The digest shows no outcome for a file call that succeeded.
    return FileCall(path, name in _EDITING and not outcome)
