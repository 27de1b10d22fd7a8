"""Summaries of a stretch of time, without a model: counts, titles, words, files, failures, what was decided.

A summary is made of the sections of a day file. Those of days add up to that of a week, and so on. Each part
has a limit, so that a year takes no more room than a month.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING

import msgspec

from memkit import anchors
from memkit.agents.tools import role_of
from memkit.bullets import DECIDED, EDITED, FAILED, OPEN, OUTCOME, read_bullets
from memkit.errors import JournalError
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.facts import FactFile
from memkit.journal.journal import Journal
from memkit.journal.markup import FENCED
from memkit.journal.sentences import is_log
from memkit.journal.sessions import open_lines, shown_bullet, stretch
from memkit.journal.tool_lines import read_call, split_count
from memkit.journal.turn_parts import read_parts
from memkit.privacy.tombstones import NOTHING, Forgotten
from memkit.text import encodable, one_line
from memkit.timeline.nodes import MONTH, WEEK, YEAR, Span

if TYPE_CHECKING:
    from memkit.index.tokens import Tokenizer

logger = logging.getLogger(__name__)

MOST_LINES, LINE_CHARACTERS = 12, 560
"""The most lines of a rollup to show, and of characters of each. A model writes fewer and shorter ones, but a
repository may bring a file of any size.
"""


@dataclass(frozen=True, slots=True)
class RollupLine:
    """A line of a rollup, as the user may have edited it.

    `id` and `citations` (bullets first, then turns) are for `memkit show`; `date` is an ISO day, or "".
    """

    id: str
    text: str
    date: str
    citations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rollup:
    """The title, or "", and the lines that a model wrote about a period."""

    title: str
    lines: tuple[RollupLine, ...]


def read_rollup(journal: Journal, span: Span, forgotten: Forgotten = NOTHING) -> Rollup | None:
    """Return the rollup of a period without `forgotten` lines, or None if it has no line."""
    if span.kind not in (YEAR, MONTH, WEEK):
        return None
    for name in (f"{span.name}.md", f"{span.name}.local.md"):
        try:
            file = FactFile(encodable(journal.text(name)), name)
        except JournalError as error:
            logger.warning("%s", error)
            continue
        lines = []
        for one in file.facts():
            cited = one.fact.citations
            if forgotten.covers_fact(one.id, cited.turns, cited.grips):
                continue
            text = one_line(unescape(one.fact.shown.removeprefix("- ")), LINE_CHARACTERS)
            lines.append(RollupLine(one.id, text, one.fact.date, (*cited.grips, *cited.turns)))
        if lines:
            return Rollup(one_line(unescape(file.title), TITLE_CHARACTERS), tuple(lines[:MOST_LINES]))
    return None


LEAST_TURNS = 2
"""A word of one turn characterizes that turn, not a stretch of several."""

_LONGEST, _SHORTEST = 40, 3
_AROUND = ".,;:!?…()[]{}<>\"'`“”‘’«»*_|→·—–-=~#/\\"
_NAME = re.compile(r"[^\W\d_]")
_FEW_LETTERS = 0.4
_UNSPACED = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7fb]")


def words_of(text: str) -> set[str]:
    """Return the words of a text that may name its subject, in lowercase; a name in code keeps its case.

    Of Chinese and Japanese, which have no spaces, return pairs of characters.
    """
    found: set[str] = set()
    for word in text.split():
        found.update(_terms(word))
    return found


@lru_cache(32_768)
def _terms(raw: str) -> tuple[str, ...]:
    from memkit.subject import STOP_WORDS, subject_of

    word = raw.strip(_AROUND)
    if not _SHORTEST <= len(word) <= _LONGEST and not _UNSPACED.search(word):
        return ()
    if _UNSPACED.search(word):
        return tuple(one for one in _tokenizer().tokenize(word) if _UNSPACED.search(one))
    letters = len(_NAME.findall(word))
    if letters < len(word) * _FEW_LETTERS or word.casefold() in STOP_WORDS["english"]:
        return ()
    if not subject_of(word):
        return ()
    is_name = any(not letter.isalpha() for letter in word) or word[1:] != word[1:].lower()
    return (word if is_name else word.casefold(),)


@lru_cache(1)
def _tokenizer() -> Tokenizer:
    from memkit.index.tokens import Tokenizer

    return Tokenizer()


def telling(
    words: Mapping[str, int], turns: int, all_words: Mapping[str, int], all_turns: int, most: int
) -> list[str]:
    """Return the words of some turns that set them apart from all others, the most telling first.

    `words` and `all_words` count the turns that have a word; `turns` and `all_turns` are the numbers of all
    turns. The measure is the log-likelihood ratio of the two counts (Rayson and Garside 2000, "Comparing
    corpora using frequency profiling"). Where there are no other turns, the most frequent words come first.
    """
    others = all_turns - turns
    scores: dict[str, float] = {}
    for word, count in words.items():
        if count < min(LEAST_TURNS, turns):
            continue
        elsewhere = max(0, all_words.get(word, 0) - count)
        if others <= 0:
            scores[word] = count
        elif count * others > elsewhere * turns:
            share = (count + elsewhere) / all_turns
            score = count * math.log(count / (turns * share))
            if elsewhere:
                score += elsewhere * math.log(elsewhere / (others * share))
            scores[word] = score
    return sorted(scores, key=lambda word: (-scores[word], word))[:most]


TITLE_CHARACTERS = 120
FAILURE_CHARACTERS = 160
QUESTION_CHARACTERS = 240
MOST_SEGMENTS = 1000
"""The most stretches of one day. A repository may bring day files of any content."""

_DAY_WORDS, _WORDS = 120, 400
_FILES, _FAILURES = 40, 20
_TITLES, _OPEN, _DECIDED = 12, 40, 40
_PROMPT_CHARACTERS = 600


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A line about something with an id: a title, an open question, a decision.

    `time` is local (`2026-11-20 14:02`), or the day alone. `weight` is the number of turns behind a title.
    """

    time: str
    text: str
    id: str
    weight: int = 0


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """The turns below one heading of a session, or a note (`session` and `turns` are empty).

    That is the segment of a summary, or without one the part of a session that is on this day. `id` is that
    of its first turn (of the note, or of the session if its turns are gone). Times are local, `HH:MM`.
    """

    id: str
    session: str
    begins: str
    ends: str
    title: str
    outcome: str
    turns: tuple[str, ...]


class Summary(msgspec.Struct):
    """The contents of some days. `words`, `files`, and `failures` count turns, edits, and calls.

    `failed` counts all calls that failed, also those beyond the limit of `failures`. `open` are the questions
    with which the last stretch of a session ended, by session.
    """

    days: int = 0
    turns: int = 0
    notes: int = 0
    failed: int = 0
    sessions: list[str] = []
    titles: list[Entry] = []
    words: dict[str, int] = {}
    files: dict[str, int] = {}
    failures: dict[str, int] = {}
    open: dict[str, list[Entry]] = {}
    decided: list[Entry] = []


class Numbers(msgspec.Struct, frozen=True):
    """Counts of a day file for `memkit stats`: turns, words, bullets of models, and sessions by ID.

    `hours` counts turns by the hour (0 to 23) in which they began, if their heading has a time. `files` has
    for each path the numbers of edits and of all calls of tools.
    """

    turns: int = 0
    words: int = 0
    bullets: int = 0
    sessions: tuple[str, ...] = ()
    hours: dict[int, int] = {}
    files: dict[str, tuple[int, int]] = {}


def read_day(journal: Journal, day: str) -> DayFile:
    """Return a day by its file's name. Bytes that are not UTF-8, which no JSON can hold, are question marks.

    Raise `JournalError`.
    """
    content = journal.day(day)
    content.lines = [encodable(line) for line in content.lines]
    return content


def read_segments(day: str, content: DayFile) -> list[Segment]:
    """Return the stretches and notes of a day, in the order of the file. Turns above all have no session."""
    return [_segment(day, content, *group) for group in _groups(content)]


def _groups(content: DayFile) -> list[tuple[Section | None, list[Section]]]:
    found = [(heading, turns) for heading, turns in content.groups() if heading is not None or turns]
    return found[:MOST_SEGMENTS]


def _segment(day: str, content: DayFile, heading: Section | None, turns: list[Section]) -> Segment:
    names = tuple(turn.pairs["turn"] for turn in turns)
    if heading is not None and "session" in heading.pairs:
        one = stretch(day, content, heading, turns)
        title, outcome = _title(one.title), one_line(unescape(one.outcome))
        return Segment(
            names[0] if names else one.session, one.session, one.begins, one.ends, title, outcome, names
        )
    first = heading or turns[0]
    times = sorted(one.minute for one in turns or [first] if one.minute)
    begins, ends = (times[0], times[-1]) if times else ("", "")
    title = _title(heading_title(first).removeprefix("Note: "))
    return Segment(names[0] if names else first.pairs["note"], "", begins, ends, title, "", names)


def bullets_of(content: DayFile, only: str = "") -> Iterator[str]:
    """Yield what a model wrote about a day, or about one of its segments, by id.

    Outcomes, decisions, and open points have their own places in an overview.
    """
    for heading, turns in _groups(content):
        if heading is None or (only and only not in [turn.pairs["turn"] for turn in turns[:1]]):
            continue
        for _, bullet in read_bullets(content.lines[heading.start + 1 : heading.end]):
            if not bullet.is_extract and not bullet.text.startswith((OUTCOME, DECIDED, OPEN)):
                yield one_line(unescape(shown_bullet(bullet)), LINE_CHARACTERS)


def summarize(day: str, content: DayFile, only: str = "") -> Summary:
    """Return what a day (its file's name) holds, or one of its segments, by id."""
    date, found = day[:10], Summary(days=1)
    words: Counter[str] = Counter()
    files: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for heading, turns in _groups(content):
        segment = _segment(day, content, heading, turns)
        if only and segment.id != only:
            continue
        time = f"{date} {segment.begins}".strip()
        found.turns += len(turns)
        found.notes += heading is not None and "note" in heading.pairs
        for turn in turns:
            _count(content.text(turn), words, files, failures)
        if heading is None or "session" not in heading.pairs:
            continue
        if segment.session not in found.sessions:
            found.sessions.append(segment.session)
        found.titles.append(Entry(time, segment.title, segment.id, len(turns)))
        ended = f"{date} {segment.ends}".strip()
        asked = [
            Entry(ended, one_line(unescape(text), QUESTION_CHARACTERS), name)
            for name, text in open_lines(content, heading, turns)
            if text
        ]
        found.open.pop(segment.session, None)
        if asked:
            found.open[segment.session] = asked
        below = content.lines[heading.start + 1 : heading.end]
        for _, bullet in read_bullets(below):
            if not bullet.is_doubted and bullet.text.startswith(DECIDED):
                text = one_line(unescape(shown_bullet(bullet).removeprefix(DECIDED)), QUESTION_CHARACTERS)
                found.decided.append(Entry(date, text, bullet.lasting_id))
            # These two repeat lines of tools.
            if bullet.is_verified and not bullet.text.startswith((EDITED, FAILED)):
                words.update(words_of(bullet.text.partition(": ")[2] or bullet.text))
    found.failed = sum(failures.values())
    found.words = _most(words, _DAY_WORDS)
    _limit(found, files, failures)
    return found


def _count(text: str, words: Counter[str], files: Counter[str], failures: Counter[str]) -> None:
    parts = read_parts(text)
    title = text.partition("\n")[0]
    asked = FENCED.sub("\n", parts.prompt[:_PROMPT_CHARACTERS]).split("\n")
    said = " ".join([anchors.strip(title), *(line for line in asked if not is_log(line))])
    words.update(words_of(said))
    for line in parts.tools:
        call, (_, count) = read_call(line), split_count(line)
        if role_of(call.name) == "edit" and call.given and not call.outcome:
            files[call.given] += count
        elif role_of(call.name) == "shell" and call.has_failed:
            shown = f"{call.given}: {call.reason}" if call.reason else call.given
            failures[one_line(shown, FAILURE_CHARACTERS)] += count


def count_day(content: DayFile) -> Numbers:
    """Return the numbers of a day."""
    turns = words = bullets = 0
    sessions: dict[str, None] = {}
    hours: Counter[int] = Counter()
    edited: Counter[str] = Counter()
    mentioned: Counter[str] = Counter()
    for section in content.sections:
        if "turn" in section.pairs:
            turns += 1
            hour = section.minute[:2]
            if hour and int(hour) < 24:
                hours[int(hour)] += 1
            parts = read_parts(content.text(section))
            words += parts.words
            for call in parts.file_calls:
                mentioned[call.path] += 1
                edited[call.path] += call.is_edit
        elif "session" in section.pairs:
            sessions[section.pairs["session"]] = None
            lines = content.lines[section.start + 1 : section.end]
            bullets += sum(not bullet.is_extract for _, bullet in read_bullets(lines))
    files = {path: (edited[path], mentioned[path]) for path in mentioned}
    return Numbers(turns, words, bullets, tuple(sessions), dict(hours), files)


def joined(parts: Sequence[Summary]) -> Summary:
    """Return what several summaries hold together; they are in the order of time.

    A question after which its session went on is no longer open.
    """
    if len(parts) == 1:
        return parts[0]
    found = Summary()
    sessions: dict[str, None] = {}
    words: Counter[str] = Counter()
    files: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for part in parts:
        found.days += part.days
        found.turns += part.turns
        found.notes += part.notes
        found.failed += part.failed
        sessions.update(dict.fromkeys(part.sessions))
        words.update(part.words)
        files.update(part.files)
        failures.update(part.failures)
        found.titles += part.titles
        found.decided += part.decided
        for session in found.open.keys() & set(part.sessions):
            del found.open[session]
        found.open.update(part.open)
    found.sessions = list(sessions)
    found.words = _most(words, _WORDS)
    _limit(found, files, failures)
    return found


def same_day(parts: Sequence[Summary]) -> Summary:
    """Return what the files of one day hold together."""
    return msgspec.structs.replace(joined(parts), days=1)


def _limit(summary: Summary, files: Mapping[str, int], failures: Mapping[str, int]) -> None:
    summary.files = _most(files, _FILES)
    summary.failures = _most(failures, _FAILURES)
    largest = sorted(summary.titles, key=lambda one: (-one.weight, one.time))[:_TITLES]
    summary.titles = sorted(largest, key=lambda one: one.time)
    summary.open = dict(list(summary.open.items())[-_OPEN:])
    summary.decided = summary.decided[-_DECIDED:]


def _most(counts: Mapping[str, int], most: int) -> dict[str, int]:
    if len(counts) <= most:
        return dict(counts)
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most])


def _title(text: str) -> str:
    return one_line(unescape(text), TITLE_CHARACTERS)
