"""The sessions of a day: what each was about, how it ended, and what it left open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memkit import anchors
from memkit.bullets import DECIDED, OPEN, WrittenBullet, read_bullets
from memkit.hook.phrases import sentences
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.markup import one_line
from memkit.journal.sentences import last_question
from memkit.journal.turn_parts import TurnParts, read_parts
from memkit.privacy.redact import redact
from memkit.text import one_line as folded

OUTCOME_CHARACTERS = 240
READ_CHARACTERS = 1500
FEW_WORDS = 4
"""A sentence with fewer words, such as "No." or "Clean solution.", needs the next one."""

_HEADING = re.compile(r"^[ \t]*(?:\\?#{1,6} [^\n]*|\*\*[^*\n]+\*\*:?[ ]*)$", re.MULTILINE)
"""A heading in an answer: the journal writes it in bold, or escaped in earlier versions."""

_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d{1,2}[.)])\s)|(?<=:)\n")
_LEAD_IN = re.compile(
    r"(?:so|and|now)?,? *(?:here|below|in short|in summary|to summarize|what I did)\b.*:$", re.IGNORECASE
)
"""A sentence that only announces the next one. "Two causes:" says something and stays."""

_TELLING = ("Pull request: ", DECIDED, "Committed: ", "Failed: ")
"""Lines of an extract that tell how the work went, best first."""

_FAILED, _NOT_AGAIN = "Failed: ", "not run again"


class DaySession(NamedTuple):
    """A session of one day, or a stretch of it: the turns below one heading.

    `begins` and `ends` are the local times (`HH:MM`, or "") at which the first and the last turn began.
    `outcome` is one line of Markdown, or "". `branch` is that of the last turn that has one. `line` is the
    line of the heading in the file, from 1.
    """

    session: str
    day: str
    begins: str
    ends: str
    title: str
    outcome: str
    turns: tuple[str, ...]
    branch: str
    line: int


def stretches(day: str, content: DayFile) -> list[DaySession]:
    """Return the stretches of work of a day: one for each heading of a session, in order."""
    numbers = content.file_lines()
    return [
        stretch(day, content, heading, turns)._replace(line=numbers[heading.start])
        for heading, turns in content.groups()
        if heading is not None and "session" in heading.pairs
    ]


def sessions(day: str, content: DayFile) -> list[DaySession]:
    """Return the sessions of a day, in order of their first heading.

    A session with several stretches has the title of the first one, and the last outcome.
    """
    found: dict[str, DaySession] = {}
    for one in stretches(day, content):
        first = found.setdefault(one.session, one)
        if first is not one:
            times = sorted(filter(None, (first.begins, first.ends, one.begins, one.ends)))
            found[one.session] = first._replace(
                begins=times[0] if times else "",
                ends=times[-1] if times else "",
                outcome=one.outcome or first.outcome,
                turns=(*first.turns, *one.turns),
                branch=one.branch or first.branch,
            )
    return list(found.values())


def stretch(
    day: str, content: DayFile, heading: Section, turns: Sequence[Section]
) -> DaySession:
    """Return the stretch of work below one heading of a session."""
    times = sorted(one.minute for one in turns or [heading] if one.minute)
    branches = [branch for one in (heading, *turns) if (branch := one.pairs.get("branch"))]
    return DaySession(
        session=heading.pairs["session"],
        day=day[:10],
        begins=times[0] if times else "",
        ends=times[-1] if times else "",
        title=heading_title(heading),
        outcome=_outcome(content, heading, turns),
        turns=tuple(turn.pairs["turn"] for turn in turns),
        branch=branches[-1] if branches else "",
        line=heading.start + 1,
    )


def _outcome(content: DayFile, heading: Section, turns: Sequence[Section]) -> str:
    last = turns[-1].pairs["turn"] if turns else ""
    names = {turn.pairs["turn"] for turn in turns}
    covered = {heading.pairs.get("summary"), heading.pairs.get("extract")} - {None}
    if not turns or last in covered or not covered <= names:
        below = _best_bullet(content.lines[heading.start + 1 : heading.end])
        if below or not turns:
            return below
    return turn_outcome(content.text(turns[-1]))


def turn_outcome(section: str) -> str:
    """Return how a turn ended, with its open question, or "". `section` is the turn in a day file."""
    parts = read_parts(section)
    said, asked = _said(parts), last_question(parts.answer)
    if not said and not asked and parts.tools:
        said = parts.tools[-1].partition(" → ")[2]
    if asked and asked not in said:
        said = redact(" · ".join(filter(None, [said, f"{OPEN}{asked}"])))
    return _shown(said)


def outcome_of(section: str) -> str:
    """Return what came of the turn in `section`: the first sentence of its answer that says something.

    Return "interrupted" for a turn that ended so, and "" if nothing tells.
    """
    return _said(read_parts(section))


def _said(parts: TurnParts) -> str:
    said = _decisive(parts.answer) if parts.outcome != "Interrupted" else "interrupted"
    # Without emoji or emphasis, parts of a secret can join.
    return said if said in parts.answer else redact(said)


def _best_bullet(lines: Sequence[str]) -> str:
    """Return the first bullet, or the most telling line of an extract, then what is left open."""
    found = [bullet for _, bullet in read_bullets(lines) if bullet.is_verified]
    bullets = [one for one in found if not one.is_extract]
    words = [shown_bullet(one) for one in bullets or found]
    telling = [one for label in _TELLING for one in words if one.startswith(label)]
    best = (words if bullets else telling)[:1]
    left = [one for one in words if one.startswith(_FAILED) and one.endswith(_NOT_AGAIN)][-1:]
    left += [shown_bullet(one) for one in found if one.text.startswith(OPEN)][-1:]
    parts = list(dict.fromkeys([*best, *left]))
    return " · ".join(_shown(part, OUTCOME_CHARACTERS // len(parts)) for part in parts)


def open_lines(content: DayFile, heading: Section, turns: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """Yield id and text of what a stretch of work left open.

    That is in its bullets if they cover its last turn, else at the end of the last answer.
    """
    last = turns[-1].pairs["turn"] if turns else ""
    if turns and last not in (heading.pairs.get("summary"), heading.pairs.get("extract")):
        asked = last_question(read_parts(content.text(turns[-1])).answer)
        yield last, redact(asked)
        return
    for _, bullet in read_bullets(content.lines[heading.start + 1 : heading.end]):
        if bullet.text.startswith(OPEN):
            yield bullet.lasting_id, shown_bullet(bullet).removeprefix(OPEN)


def shown_bullet(bullet: WrittenBullet) -> str:
    """Return the text of a bullet to show; see `shown_line`."""
    return bullet.text if bullet.text in bullet.line else redact(bullet.text)


def shown_line(line: str) -> str:
    """Return a line without anchors; a day is redacted, but removing them can join the parts of a secret."""
    text = folded(anchors.strip(line))
    return text if text in line else redact(text)


def _decisive(answer: str) -> str:
    """Return the first sentence that says something; one that is short or ends in a colon, with the next."""
    prose = "\n\n".join(answer.split("```")[::2])[:READ_CHARACTERS]
    for text in (_HEADING.sub("\n", prose), prose):
        said = ""
        for sentence in (one for block in _BLOCK.split(text) for one in sentences(block.lstrip("\\ "))):
            if _LEAD_IN.match(sentence):
                continue
            said = f"{said} {sentence}".strip()
            if len(said.split()) >= FEW_WORDS and not said.endswith(":"):
                break
        if said:
            return said
    return ""


def _shown(text: str, limit: int = OUTCOME_CHARACTERS) -> str:
    """Redact again: removing anchors or line ends can join the parts of a secret."""
    shown = one_line(anchors.strip(text), limit)
    return shown if shown.removesuffix(" …") in text else redact(shown)
