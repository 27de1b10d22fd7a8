"""Extracts: what a segment's turns say about themselves, in up to six lines, without a model.

    - Decided: Let's use 7443 instead of 443. <!-- grip:5d0a8f13 turns:8ad3df7f by:extract -->
    - Edited: deploy/gateway.yaml ×3, README.md <!-- … -->
    - Failed: `pytest -q` 2 times: 1 failed, 11 passed; then it passed <!-- … -->
    - Committed: Move the gateway to 7443 <!-- … -->
    - Open: Should the production gateway move too? <!-- … -->

The words are those of the turns, so the same turns always give the same lines. After a compaction, a session
gets such lines on itself, see `session_so_far`.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memkit import anchors
from memkit.agents.omitted import FROM_MEMORY
from memkit.agents.tools import role_of
from memkit.archive.archive import Archive
from memkit.bullets import (
    COMMITTED,
    DECIDED,
    EDITED,
    FAILED,
    NOT_RUN_AGAIN,
    OPEN,
    PULL_REQUEST,
    STILL_FAILING,
)
from memkit.hook.entries import is_own_turn
from memkit.hook.guide import quoted_line
from memkit.ipc import unindexed
from memkit.journal.day_summaries import extracted
from memkit.journal.extracts import extract_line
from memkit.journal.journal import Journal
from memkit.journal.markup import one_line
from memkit.journal.outcomes import commits, main_commits, pull_requests
from memkit.journal.sentences import names_subject, open_point, plan, says_nothing
from memkit.journal.sessions import outcome_of
from memkit.journal.titles import TITLE_CHARACTERS, title_of
from memkit.journal.tool_lines import COUNTED, LOOKS, REASONS, Call, telling_lines
from memkit.paths import Home
from memkit.privacy.tombstones import Tombstones
from memkit.summarize.bullets import MAX_TURNS
from memkit.summarize.segments import Segment, archived_turns
from memkit.summarize.turns import READ_CHARACTERS, ExtractTurn, read_extract_turns

MOST_LINES = 6
MOST_FILES = 6
MOST_COMMITS = 4
LINE_CHARACTERS = 400
COMMAND_CHARACTERS = 70

SO_FAR_CHARACTERS, SO_FAR_DAYS = 1000, 3
SO_FAR_DECIDED, SO_FAR_OUTCOMES, SO_FAR_COMMANDS = 6, 3, 8
SO_FAR = "This session before the compaction, quoted:"
SO_FAR_END = "The memkit:memory-recall skill finds the exchanges themselves."

_USUAL = re.compile(r"(?:gh|git|mkdir)\b")
_TRUNKS = ("", "main", "master", "develop", "trunk", "HEAD")
_NO_FAILURE = re.compile(rf"doesn't want to proceed|Request interrupted by user|{re.escape(FROM_MEMORY)}")
_CODE_LINE = re.compile(r"[;{}]\s*$|·")
_PREFIX = re.compile(r"^(?:cd\s[^;&|]+(?:&&|;)\s*|(?:export\s+)?\w+=\S*\s+(?:&&\s*)?|time\s+|sudo\s+)+")
_SUFFIX = re.compile(r"(?:2>&1|2>\s*/dev/null|\|&?\s*(?:tail|head|grep|cat|tee)\b[^|]*)\Z")
"""One redirection or filter at the end. One pattern for all of them takes exponential time."""

_PIPED = re.compile(r"\||;|&\s*$")
"""A command with a pipe or a list: its exit code may not be that of its first part."""

_FAMILY = re.compile(r"(?:^|&&\s*)git\s+(commit|push|rebase|merge|pull)\b")


@dataclass(frozen=True, slots=True)
class Extract:
    """The lines above a segment's turns. `title` is "" if the first prompt will do."""

    lines: tuple[str, ...]
    title: str = ""


def make_extract(turns: Sequence[ExtractTurn], redact: Callable[[str], str], *, is_followed: bool) -> Extract:
    """Return the extract of a segment. If it `is_followed` by another, its last question was answered."""
    open_line = [] if is_followed else list(_open(turns))
    decided, edited, done = list(_decided(turns)), list(_edited(turns)), list(_committed(turns))
    room = MOST_LINES - len(open_line) - len(decided) - len(edited) - len(done)
    failed = list(_failed(turns, max(1, min(2, room))))
    lines = []
    for label, text, names in [*decided, *edited, *failed, *done, *open_line][:MOST_LINES]:
        shown = _redacted(label + text, redact)
        lines.append(extract_line(shown, names[:MAX_TURNS]))
    return Extract(tuple(dict.fromkeys(lines)), _title(turns))


def _redacted(line: str, redact: Callable[[str], str]) -> str:
    """Redact again: cutting and joining can join the parts of a secret."""
    return redact(one_line(redact(line), LINE_CHARACTERS))


def session_so_far(journal: Journal, session: str, own: Container[str], redact: Callable[[str], str]) -> str:
    """Return what a session decided, changed, ran, and left open, to quote after a compaction, or "".

    Claude's own summary keeps the decisions, and hardly a command. Read only turns whose words are in `own`.
    """
    turns, outcomes = list[ExtractTurn](), list[str]()
    for day in journal.days()[-SO_FAR_DAYS:]:
        content = journal.day(day)
        below = (turns for heading, turns in content.headings() if heading.pairs["session"] == session)
        found = [content.find_turn(turn.pairs["turn"]) for turns in below for turn in turns]
        sections = [one for one in found if one and is_own_turn(content.text(one), own)]
        outcomes += [outcome_of(content.text(one)) for one in sections[-SO_FAR_OUTCOMES:]]
        turns += read_extract_turns(content, [one.pairs["turn"] for one in sections], {}, redact)
    if not turns:
        return ""
    decided = [label + text for label, text, _ in _decided(turns, SO_FAR_DECIDED)]
    done = [*_edited(turns), *_failed(turns, 2), *_committed(turns), *_worked(turns), *_open(turns)]
    said = [label + text for label, text, _ in done if not text.endswith("passed")]
    text = ""
    for line in dict.fromkeys(filter(None, [*(decided or outcomes[-SO_FAR_OUTCOMES:]), *said])):
        quoted = quoted_line(f"- {_redacted(line, redact)}")
        text += quoted if len(text) + len(quoted) <= SO_FAR_CHARACTERS else ""
    return f"{SO_FAR}\n<memory>\n{text}</memory>\n{SO_FAR_END}" if text else ""


def _worked(turns: Sequence[ExtractTurn]) -> Iterator[_Line]:
    """Yield the last commands that ended well and did more than look, the last one first."""
    calls = [call for turn in turns for call in turn.calls if role_of(call.name) == "shell"]
    runs = [_Run("", _command(call.given)[1], call) for call in calls if call.outcome != "no result"]
    done = [one.command for one in runs if not (one.has_failed or one.is_look or _USUAL.match(one.command))]
    if done:
        yield "Worked: ", " · ".join(list(dict.fromkeys(map(_code, reversed(done))))[:SO_FAR_COMMANDS]), ()


def write_extracts(
    home: Home, journal: Journal, archive: Archive, segments: Iterable[Segment], redact: Callable[[str], str]
) -> int:
    """Write the extracts of closed segments that have none; return how many got one. Raise `JournalError`."""
    forgotten = Tombstones(home).forgotten().grips
    archived = functools.cache(functools.partial(archived_turns, archive))
    written = 0
    for segment, names in without_extract(journal, segments):
        content = journal.day(segment.day)
        turns = read_extract_turns(content, names, archived(segment.session), redact)
        if not turns:
            continue
        extract = make_extract(turns, redact, is_followed=segment.is_followed)
        lines = [line for line in extract.lines if anchors.parse(line)["grip"] not in forgotten]
        if len(segment.turns) == 1:  # the turn below says the same
            lines = []
        unindexed.mark(home, journal.project.root)
        written += journal.summarize(segment.day, names, lines, extract.title, key="extract")
    return written


def without_extract(journal: Journal, segments: Iterable[Segment]) -> Iterator[tuple[Segment, list[str]]]:
    """Yield the segments with turns that no extract covers, and these turns."""
    for segment in segments:
        covered = extracted(journal.day(segment.day), segment.session)
        names = [turn.id for turn in segment.turns if turn.id not in covered]
        if names:
            yield segment, names


_Line = tuple[str, str, Sequence[str]]


def _edited(turns: Sequence[ExtractTurn]) -> Iterator[_Line]:
    edits: dict[str, list[str]] = {}
    for turn in turns:
        done = [call for call in turn.calls if role_of(call.name) == "edit" and not call.has_failed]
        edits[turn.id] = [call.given for call in done if call.given and call.outcome != "no result"]
    names = sorted(filter(edits.get, edits), key=lambda name: -len(edits[name]))[:MAX_TURNS]
    counts = Counter(path for name in edits if name in names for path in edits[name])
    shown = [f"{path} ×{count}" if count > 1 else path for path, count in counts.most_common(MOST_FILES)]
    if len(counts) > MOST_FILES:
        shown.append(f"and {len(counts) - MOST_FILES} more")
    if shown:
        yield EDITED, ", ".join(shown), [name for name in edits if name in names]


def _committed(turns: Sequence[ExtractTurn]) -> Iterator[_Line]:
    done: dict[str, str] = {}
    pulls: dict[str, str] = {}
    for turn in turns:
        for call in turn.calls:
            done |= dict.fromkeys(commits(call), turn.id)
            pulls |= dict.fromkeys(pull_requests(call), turn.id)
    for label, found in ((COMMITTED, done), (PULL_REQUEST, pulls)):
        if main := main_commits(found, MOST_COMMITS):
            more = f"; and {len(found) - len(main)} more" if len(found) > len(main) else ""
            yield label, "; ".join(main) + more, list(dict.fromkeys(found[one] for one in main))


@dataclass(slots=True)
class _Run:
    turn: str
    command: str
    call: Call

    @property
    def is_look(self) -> bool:
        """Whether the command only looks, or is empty."""
        return not self.command.strip() or self.command.split()[0] in LOOKS

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or its last line counts failures: behind a pipe it ends without an error."""
        if self.call.has_failed or self.is_look or self.command.startswith("git "):
            return self.call.has_failed
        return COUNTED.search(_last_line(self.call.outcome)) is not None


def _failed(turns: Sequence[ExtractTurn], most: int) -> Iterator[_Line]:
    """Yield the commands that failed and what followed; those that were run again first."""
    runs: dict[str, list[_Run]] = {}
    for turn in turns:
        for call in turn.calls:
            if role_of(call.name) == "shell" and not _NO_FAILURE.search(call.outcome):
                key, command = _command(call.given)
                runs.setdefault(key, []).append(_Run(turn.id, command, call))
    streaks = [one for group in runs.values() for one in _streaks(group)]
    found = [one for one in streaks if one[1] or len(one[0]) > 1 or not one[0][0].is_look]
    order = {id(failed): n for n, (failed, _) in enumerate(found)}
    found.sort(key=lambda one: (one[1] is None, -len(one[0])))
    for failed, passed in sorted(found[:most], key=lambda one: order[id(one[0])]):
        shown = [failed[0], failed[-1], passed or failed[-1]]
        names = list(dict.fromkeys(run.turn for run in shown))
        yield FAILED, _what_followed(failed, passed), names


def _streaks(runs: Iterable[_Run]) -> Iterator[tuple[list[_Run], _Run | None]]:
    """Yield the failed runs in a row of one command, and the run after them that did not fail, if any."""
    failed: list[_Run] = []
    for run in runs:
        if run.has_failed:
            failed.append(run)
        elif failed:
            yield failed, run
            failed = []
    if failed:
        yield failed, None


def _what_followed(failed: Sequence[_Run], passed: _Run | None) -> str:
    times = f" {len(failed)} times" if len(failed) > 1 else ""
    reason = _reason(failed[-1].call.outcome)
    text = f"{_code(failed[0].command)}{times}{f': {reason}' if reason else ''}"
    if passed is None:
        return f"{text}{STILL_FAILING if times else NOT_RUN_AGAIN}"
    what = "it" if passed.command == failed[0].command else _code(passed.command)
    if _PIPED.search(passed.call.given):
        said = _last_line(passed.call.outcome)
        return f"{text}; later {what} {f'said: {said}' if said else 'ended without an error'}"
    return f"{text}; then {what} passed"


def _command(given: str) -> tuple[str, str]:
    """Return the key that equal commands share, and the command without prefixes and redirections."""
    command, before = _PREFIX.sub("", given[: READ_CHARACTERS // 4].strip()), ""
    while command != before:
        before = command
        command = _SUFFIX.sub("", command).rstrip()
    family = _FAMILY.search(command)
    if family is None:
        return " ".join(command.split()), command
    return f"git {family[1]}", command[command.index("git", family.start()) :]


def _reason(outcome: str) -> str:
    lines = telling_lines(outcome)
    said = [line for line in lines if not _CODE_LINE.search(line)]
    told = (line for pattern in REASONS for line in said if pattern.search(line))
    return next(told, (said or lines or [""])[0]).rstrip(" .:;")


def _last_line(outcome: str) -> str:
    return (telling_lines(outcome) or [""])[-1]


def _code(command: str) -> str:
    shown = one_line(command, COMMAND_CHARACTERS).replace("`", "'")
    return f"`{shown}`"


def _decided(turns: Sequence[ExtractTurn], most: int = 2) -> Iterator[_Line]:
    from memkit.journal.decisions import decisions  # 0.02 s to compile its table

    found: dict[str, Sequence[str]] = {}
    before: ExtractTurn | None = None
    for turn in turns:
        answer, title, names = (before.answer, before.title, [before.id]) if before else ("", "", [])
        found |= {one: [*names, turn.id] for one in decisions(turn.prompt, answer, title)}
        before = turn
    for sentence in list(found)[-most:]:
        yield DECIDED, sentence, found[sentence]


def _open(turns: Sequence[ExtractTurn]) -> Iterator[_Line]:
    last = turns[-1]
    asked = "" if last.calls else last.prompt
    if said := open_point(last.answer or asked) or plan(asked):
        yield OPEN, said, [last.id]


def _title(turns: Sequence[ExtractTurn]) -> str:
    """Return a title that names the subject, or "" if the title of the first turn does.

    An answer is no title: the subject of a commit is, or another prompt, or else the branch tells.
    """
    asked = [turn.title for turn in turns if turn.title == title_of(turn.prompt, "")]
    telling = [title for title in asked if not says_nothing(title, words=1)] or [turns[0].title]
    title = telling[0]
    if not names_subject(title):
        done = [one for turn in turns for call in turn.calls for one in commits(call)]
        branch = next((turn.branch for turn in turns if turn.branch not in _TRUNKS), "").rpartition("/")[2]
        if subject := next(filter(names_subject, done), ""):
            title = one_line(subject, TITLE_CHARACTERS)
        elif branch:
            title = f"{one_line(title, max(20, TITLE_CHARACTERS - len(branch) - 3))} ({branch})"
    return "" if title == turns[0].title else title
