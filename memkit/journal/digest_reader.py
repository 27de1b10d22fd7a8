"""Reads back what `digest` wrote: how many words were said in a turn, and on which files it worked.

By searching for strings alone, so that years of days take a second. A person or a conversation can write a
label as well; then the first one counts.
"""

from __future__ import annotations

from typing import NamedTuple

from memkit.journal.digest import FILE_TOOLS

_EDITING = FILE_TOOLS - {"Read", "LS"}
_SAID = ("\n**Asked**", "\n**Answered**", "\n**Interrupted**")
_DID = "\n**Did**"


class FileCall(NamedTuple):
    """A call of a tool on a file: the path as the digest shows it, and whether the file was edited."""

    path: str
    is_edit: bool


class DigestText(NamedTuple):
    """What stands below a turn's heading: the words asked and answered, the calls on files in order.

    Words are what stands between blanks. A digest shows the first `digest.MAX_TOOLS` tools only.
    """

    words: int
    calls: list[FileCall]


def read_turn(section: str) -> DigestText:
    """Read the section of a turn, its heading included."""
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
    """The words in whole lines, each with the line end before it; not the labels that begin them."""
    return len(text.split()) - sum(map(text.count, _SAID))


def _tool_lines(section: str, start: int) -> tuple[int, list[str]]:
    """The tools named from `start` on, behind the label, and where their list ends."""
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
    # Of a call on a file that went well the digest tells no outcome.
    return FileCall(path, name in _EDITING and not outcome)
