"""The sessions of a day: what each was about, how it ended, and what it left open."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memkit import anchors
from memkit.bullets import (
    COMMITTED,
    DECIDED,
    EDITED,
    FAILED,
    OPEN,
    OUTCOME,
    PULL_REQUEST,
    UNSOLVED,
    WrittenBullet,
    read_bullets,
)
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.extracts import is_overview
from memkit.journal.markup import one_line
from memkit.journal.outcomes import (
    MOST_CHANGES,
    MOST_SHARED,
    MUCH,
    is_main,
    is_thanks,
    main_commits,
    outcome,
    shared_subject,
)
from memkit.journal.sentences import open_point, subject_words
from memkit.journal.turn_parts import TurnParts, read_parts
from memkit.privacy.redact import redact
from memkit.text import one_line as folded
from memkit.text import plural

OUTCOME_CHARACTERS, DECISION_CHARACTERS = 240, 110
_MORE = re.compile(r"; and \d+ more\Z")


class DaySession(NamedTuple):
    """A session of one day, or a stretch of it: the turns below one heading.

    `begins` and `ends` are the local times (`HH:MM`, or "") at which the first and the last turn began.
    `outcome` is one line of Markdown, or "". `branch` is the last one that a turn names. `line` is the
    line of the heading in the file, from 1. `edits` counts the calls that edited a file.
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
    edits: int = 0


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

    A session with several stretches has the title of the first one, and the main outcome.
    """
    found: dict[str, list[DaySession]] = {}
    for one in stretches(day, content):
        found.setdefault(one.session, []).append(one)
    return [_joined(some) for some in found.values()]


def _joined(stretches: Sequence[DaySession]) -> DaySession:
    times = sorted(time for one in stretches for time in (one.begins, one.ends) if time)
    return stretches[0]._replace(
        begins=times[0] if times else "",
        ends=times[-1] if times else "",
        outcome=main_outcome(stretches),
        turns=tuple(turn for one in stretches for turn in one.turns),
        branch=next((one.branch for one in reversed(stretches) if one.branch), ""),
        edits=sum(one.edits for one in stretches),
    )


def stretch(day: str, content: DayFile, heading: Section, turns: Sequence[Section]) -> DaySession:
    """Return the stretch of work below one heading of a session."""
    times = sorted(one.minute for one in turns or [heading] if one.minute)
    parts = [read_parts(content.text(turn)) for turn in turns]
    branches = [branch for one in (heading, *turns) if (branch := one.pairs.get("branch"))]
    return DaySession(
        session=heading.pairs["session"],
        day=day[:10],
        begins=times[0] if times else "",
        ends=times[-1] if times else "",
        title=heading_title(heading),
        outcome=_edited_outcome(content, turns) or _outcome(content, heading, turns, parts),
        turns=tuple(turn.pairs["turn"] for turn in turns),
        branch=branches[-1] if branches else "",
        line=heading.start + 1,
        edits=sum(call.is_edit for part in parts for call in part.file_calls),
    )


def _edited_outcome(content: DayFile, turns: Sequence[Section]) -> str:
    """Return the outcome that the user wrote in the overview, or "". Another turn ends it."""
    marks = [f"turns:{turn.pairs['turn']}" for turn in turns]
    lines = [one for one in content.opening if any(mark in one for mark in marks) and is_overview(one)]
    line = next((shown_line(one) for one in lines if not is_overview(one, unedited=True)), "")
    return line.partition(f" · {plural(len(turns), 'turn')} → ")[2]


def _outcome(
    content: DayFile, heading: Section, turns: Sequence[Section], parts: Sequence[TurnParts]
) -> str:
    last = turns[-1].pairs["turn"] if turns else ""
    title = heading_title(heading)
    names = {turn.pairs["turn"] for turn in turns}
    covered = {heading.pairs.get("summary"), heading.pairs.get("extract")} - {None}
    while len(turns) > 1 and last not in covered and is_thanks(parts[-1]):
        turns, parts = turns[:-1], parts[:-1]
        last = turns[-1].pairs["turn"]
    if turns and last not in covered and covered <= names:
        return turn_outcome(content.text(turns[-1]))
    below = list(read_bullets(content.lines[heading.start + 1 : heading.end]))
    bullets = [one for _, one in below if not one.is_doubted]
    own = [shown_bullet(one) for one in bullets if not one.is_extract]
    extract = [shown_bullet(one) for one in bullets if one.is_extract]
    decided = [one for one in own or extract if one.startswith(DECIDED)][-1:]
    unsolved = [one for one in extract if one.startswith(FAILED) and one.endswith(UNSOLVED)][-1:]
    if own:
        told = [one.removeprefix(OUTCOME) for one in own if one.startswith(OUTCOME)]
        said = (told or decided or [one for one in own if not one.startswith((OPEN, FAILED))])[-1:]
    else:
        done = [one for one in extract if one.startswith(PULL_REQUEST)] or [
            one for one in extract if one.startswith(COMMITTED) and is_main(one.removeprefix(COMMITTED))
        ]
        if not done:
            result = redact(outcome(parts, title))
            is_failure = result.startswith((FAILED.lower().strip(" :"), "interrupted"))
            done = unsolved if unsolved and is_failure else [result]
        decided = [one.replace(f" ({title})", "") for one in decided]
        said = [one for one in decided if not done[0] or _adds(one, title, done[0])] + done[:1]
    said = [one for one in said if one] or unsolved
    said += [shown_bullet(one) for _, one in below if one.text.startswith(OPEN)][-1:]  # a mark hides no work
    room, limits = OUTCOME_CHARACTERS, {}
    for left, part in zip(range(len(said), 0, -1), sorted(said, key=len), strict=True):
        limits[part] = room // left
        room -= min(len(part), limits[part])
    return " · ".join(_shown(part, limits[part]) for part in said)


def _adds(decision: str, title: str, result: str) -> bool:
    """Return whether a short decision is about the title, and tells more than it and the result do."""
    is_near = result.startswith(EDITED) or shared_subject(decision, title) > 0
    is_new = not set(subject_words(decision)).issubset(subject_words(f"{DECIDED} {title} {result}"))
    return is_near and is_new and len(decision) <= DECISION_CHARACTERS


def main_outcome(stretches: Sequence[DaySession]) -> str:
    """Return the outcome of a session from its stretches of work, in order.

    One with a pull request comes before those with commits, and these before others with edits. Of equal
    ones, it is the one that has most edits and shares most with the title of the first stretch. Without a
    commit, others with nearly as many edits are named too, if there is room.
    """
    title = stretches[0].title

    def rank(one: DaySession) -> tuple[bool, bool, bool, float]:
        weight = min(shared_subject(one.outcome, title), MOST_SHARED) + math.log2(1 + one.edits)
        weight -= MOST_SHARED * (EDITED in one.outcome)
        is_commit = any(map(is_main, _committed(one).split("; ")))
        return PULL_REQUEST in one.outcome, is_commit, one.edits > 0, weight

    main = max([one for one in reversed(stretches) if one.outcome] or stretches[:1], key=rank)
    own = _committed(main)
    if not own:
        near = [one for one in stretches if one.edits * MUCH >= main.edits > 0 and EDITED not in one.outcome]
        second = max((one for one in near if one != main and one.outcome), key=rank, default=None)
        both = _shown(f"{main.outcome} · {second.outcome}") if second else ""
        is_fit = both.count(" · ") == 1 and not both.endswith("…") and PULL_REQUEST not in both
        return both if is_fit else main.outcome
    done = [subject for one in stretches for subject in _committed(one).split("; ")]
    subjects = main_commits(filter(None, done), max(MOST_CHANGES, own.count("; ") + 1))
    return main.outcome.replace(own, "; ".join(subjects))


def _committed(one: DaySession) -> str:
    return _MORE.sub("", one.outcome.partition(COMMITTED)[2].partition(" · ")[0])


def turn_outcome(section: str) -> str:
    """Return what came of a turn, with its open question, or "". `section` is the turn in a day file."""
    parts = read_parts(section)
    said, asked = outcome([parts]), open_point(parts.answer)
    if asked and asked not in said:
        said = " · ".join(filter(None, [said, f"{OPEN}{asked}"]))
    return _shown(redact(said))


def outcome_of(section: str) -> str:
    """Return what came of the turn in `section`, without what it left open, or "" if nothing tells."""
    return _shown(redact(outcome([read_parts(section)])))


def open_lines(content: DayFile, heading: Section, turns: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """Yield id and text of what a stretch of work left open.

    That is in its bullets if they cover its last turn, else at the end of the last answer.
    """
    last = turns[-1].pairs["turn"] if turns else ""
    bullets = [one for _, one in read_bullets(content.lines[heading.start + 1 : heading.end])]
    covered = (heading.pairs.get("summary"), heading.pairs.get("extract"))
    if turns and (last not in covered or not bullets):  # the extract of a single turn has none
        asked = open_point(read_parts(content.text(turns[-1])).answer)
        yield last, redact(asked)
        return
    for bullet in bullets:
        if bullet.text.startswith(OPEN):
            yield bullet.lasting_id, shown_bullet(bullet).removeprefix(OPEN)


def shown_bullet(bullet: WrittenBullet) -> str:
    """Return the text of a bullet to show; see `shown_line`."""
    return bullet.text if bullet.text in bullet.line else redact(bullet.text)


def shown_line(line: str) -> str:
    """Return a line without anchors; a day is redacted, but removing them can join the parts of a secret."""
    text = folded(anchors.strip(line))
    return text if text in line else redact(text)


def _shown(text: str, limit: int = OUTCOME_CHARACTERS) -> str:
    """Redact again: removing anchors can join the parts of a secret. Leave out changes without room."""
    shown = one_line(anchors.strip(text), limit)
    if shown.endswith("…") and len(told := shown.rpartition("; ")[0]) * 2 > limit:
        shown = told
    return shown if shown.removesuffix(" …") in text else redact(shown)
