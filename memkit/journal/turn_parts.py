"""Read the section of a turn: its prompt, its tool calls, and its answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from memkit import anchors
from memkit.journal.markup import one_line
from memkit.journal.titles import TITLE_CHARACTERS, title_of
from memkit.journal.tool_lines import FileCall, file_calls

NO_TITLE = "(no text)"
COMPACTION_TITLE = "Claude Code's own summary of the session so far"

_DID = re.compile(r"\n\*\*Did\*\*(?P<inline> .*)?(?:\n(?P<list>(?:\n- .*)+))?")
_OUTCOME = re.compile(r"\n\*\*(Answered|Interrupted)\*\*")
_HEADING = re.compile(r"#{3}\s+(?:\d\d:\d\d(?:\s+|\Z))?(.*)")
_UNASKED = re.compile(
    r"(?:#{1,2} [^\n]*\n+)*(?P<heading>### [^\n]*)\n+(?=\*\*(?:Did|Answered|Interrupted)\*\*)"
)


class TurnParts(NamedTuple):
    """The parts of a turn's section, without their labels.

    `tools` are the lines of its tool calls. `outcome` is the label of `answer`: `Answered`, `Interrupted`, or
    "" if there is none.
    """

    prompt: str
    tools: list[str]
    outcome: str
    answer: str

    @property
    def words(self) -> int:
        """The number of words of prompt and answer."""
        return len(self.prompt.split()) + len(self.answer.split())

    @property
    def file_calls(self) -> list[FileCall]:
        """The tool calls on files. Of calls that a digest has no room for, it names edits alone."""
        return [call for line in self.tools for call in file_calls(line)]

    @property
    def edited(self) -> list[str]:
        """The paths of the files that its calls edited, in order."""
        return [call.path for call in self.file_calls if call.is_edit]


def read_parts(section: str) -> TurnParts:
    """Read the parts of a turn's section, which begins with its heading.

    Text that a user added belongs to the part above it; without any label, it is the answer.
    """
    heading, newline, rest = section.partition("\n")
    text = newline + rest
    did = _DID.search(text)
    outcome = _OUTCOME.search(text, did.end() if did else 0)
    end = did.start() if did else outcome.start() if outcome else len(text)
    asked = text[:end].removeprefix("\n**Asked**")
    following = text[did.end() : outcome.start() if outcome else len(text)] if did else ""
    following += text[outcome.end() :] if outcome else ""
    if end == len(asked) == len(text):
        asked, following = "", text
    elif not text[:end].strip():
        asked = _heading_prompt(heading, following)
    tools: list[str] = []
    if did is not None:
        inline = (did["inline"] or "").strip()
        lines = inline.split(" · ") if inline else (did["list"] or "").split("\n- ")
        tools = [line for line in lines if line.strip()]
    return TurnParts(asked.strip(), tools, outcome[1] if outcome else "", following.strip())


def with_prompt(section: str) -> str:
    """Return a turn's section with its prompt below the heading, also if the heading alone has it."""
    match = _UNASKED.match(section)
    prompt = read_parts(section[match.start("heading") :]).prompt if match else ""
    return f"{match[0]}**Asked** {prompt}\n\n{section[match.end() :]}" if match and prompt else section


def _heading_prompt(heading: str, answer: str) -> str:
    match = _HEADING.match(anchors.strip(heading))
    title = match[1].strip() if match else ""
    # Earlier versions took the first line of the answer as it was.
    of_answer = (NO_TITLE, COMPACTION_TITLE, title_of("", answer), one_line(answer, TITLE_CHARACTERS))
    return "" if title in of_answer else title
