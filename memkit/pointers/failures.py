"""Failures that are the same, what was run after one when it did not come back, and what worked of a tool.

    **Did** Bash `pytest -q` → failed: ModuleNotFoundError: No module named yaml
            Bash `pip install pyyaml` → Successfully installed pyyaml-6.0.2
            Bash `pytest -q` → 12 passed

Two failures are the same if their messages have the same words, apart from numbers, paths, and IDs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from memkit import anchors
from memkit.agents.tools import role_of
from memkit.archive.archive import Archive
from memkit.conversation.turn import ToolCall
from memkit.files import MOST_BYTES
from memkit.hook.entries import OwnEntries, days, did_words, heading_words, read_days, sections_of
from memkit.journal.tool_lines import REASONS, WRAPS, Call, is_step, read_call, telling_line, tool_line
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.subject import STOP_WORDS
from memkit.text import one_line

ALIKE, LEAST_WORDS, RUN_WORDS = 0.8, 2, 3
"""The least share of their words that both messages have, and of telling ones: "1 failed" has none. Else one
is a part of the other, or both have runs of so many words behind their starts, which are often the same.
"""

FEW_LINES, MOST_LINES = 12, 40  # of an output: of more than a few, those that look like errors

STEPS, MOST_STEPS = 2, 6  # the last ones before the call that passed: in a pointer, and in `memkit fix`
COMMAND_CHARACTERS, SHOWN_CHARACTERS, REASON_CHARACTERS = 60, 90, 300

_PREFIX = re.compile(
    r"\A\s*(?:cd\s[^;&|]+(?:&&|;)\s*|(?:export\s+)?[A-Za-z_]\w*=(?:\$\([^)]*\)|'[^']*'|\S)*\s+(?:&&\s*)?"
    r"|(?:time|sudo|env|npx|uvx)\s+"
    r"|(?:uv|poetry|pipenv|bundle)\s+(?:run|exec)\s+(?:-\S+\s+)*|timeout\s+\S+\s+"
    r"|(?:\S*/)?python[\d.]*\s+(?:-\S\s+)*-m\s+)*"
)
_PROGRAM = re.compile(r"(?:[^\s/]*/)*([\w.+-]+)")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_SCRIPTS = frozenset({"compose", "run", "exec", "run-script"})
_MAIN = frozenset({"bash", "node", "python", "ruby", "sh"})

_TEST = re.compile(r"""\S+::\S+|https?://\S+|['"`]\S+['"`] (?=already exists)""")
_PATH = re.compile(r"(?:[\w.~@-]*/)+[\w.@+-]*|(?<![\w.])[\w-]+\.[A-Za-z]{1,5}\b(?![.(])")
_LOG = re.compile(  # what logs put in front
    r"\A(?:\s*(?:\S+:\d+(?::\d+)?:|[\w.-]+ +\||\|?\[(?!Errno)[\w.:,+/ !-]*\]:?|\d[\d:.,TZ/-]{4,}|Caused by:"
    r"|[A-Z](?: +(?![\w.]*(?:Error|Exception):)[\w.]+)?:|E(?= )"
    r"|(?i:error|fatal?|warn(?:ing)?|info|failed)\b(?:\[\d*\])?\s*[:|-]?))+\s+"
)
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z]\w*)")
_HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{7,})\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_QUOTED = re.compile(r"""(?<!\w)['"`‘“](?![/~.])([\w.@:/-]{1,80})['"`’”](?!\w)|\bthe (\w+) operation\b""")
_NAMES = re.compile(
    r"""(?<![/\w])([A-Z]{1,3}\d{3,5}|[A-Z]+(?:_[A-Z]+)+)\b(?![.\w-])|(?<![\w-])(--[a-z][\w-]+)|([\w.-]+)[=~>]=\d"""
    r"""|\b(lib(?!rar)[A-Za-z]{2,})|\b([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b(?<!Error)(?<!Exception)(?![.(]| oper)"""
    r"""|(?<= )\((\d{3}|[A-Za-z]+(?: [a-z]+)+)(?=[):,])"""
    r"""|\b(?:column|field|found for|named|package|relation|requirement|table):? ['"]?([\w.-]+)"""
)
"""Failures of the same words differ in these: codes, options, packages, libraries, AccessDenied. Quoted
names and AWS operations may differ if there are many words.
"""

NO_SUBJECT = STOP_WORDS["english"].union(
    """actual assert assertionerror bash cannot code command directory error errors eval exist exists exit
    exited expected failed failure failures fatal file files found got line passed process received returned
    status test tests""".split()
)
_CUT, _PARTS, _ID = re.compile(r"[…\\]\Z|<<"), re.compile(r"&&|\|\|?|[;\n]"), re.compile(r"[-_.:]\w*\d|^\d")
_CHAIN = re.compile(r"&&|\|\||[;\n]")
_LOOKS = re.compile(r"\A(?!go )\S+(?: \S+){0,3}? (?:describe|get|history|list|logs|ls|ps|show|status)(?!\S)")
_EDITS = re.compile(r"\bsed\s+(?:-\S+\s+)*-i")
_INSTALLS = frozenset({"add", "install", "remove", "uninstall"})


class Failure(NamedTuple):
    """The identity of a failure: the message with its words, names, and paths, and the other lines."""

    reason: str
    words: tuple[str, ...]
    quoted: frozenset[str]
    names: frozenset[str]
    paths: frozenset[str]
    others: tuple[Failure, ...] = ()

    def matches(self, other: Failure) -> bool:
        """Return whether two failures are the same. One that tells no cause is not the same as itself."""
        return any(one._is(other) for one in (self, *self.others))

    def _is(self, other: Failure) -> bool:  # of a message that was cut, the other may have more
        theirs = other.words[: len(self.words)] if self.reason.endswith("…") else other.words
        ours = self.words[: len(theirs)] if other.reason.endswith("…") else self.words
        said = _telling(self.words) & _telling(other.words)
        telling = said | (self.quoted & other.quoted) | (self.names & other.names)
        is_other_file = bool(self.paths and other.paths) and self.paths.isdisjoint(other.paths)
        is_alike = len({*ours} & {*theirs}) >= ALIKE * len({*ours, *theirs})
        is_wrapped = WRAPS.search(self.reason) or WRAPS.search(other.reason)
        is_equal = self.words == other.words and self.quoted == other.quoted and self.quoted
        if is_wrapped or (len(telling) < LEAST_WORDS + is_other_file and not is_equal):
            return False
        rest = [word for word in said if not any(word in name for name in self.quoted | other.quoted)]
        is_named = other.names >= self.names or other.names <= self.names
        is_quoted = other.quoted >= self.quoted or other.quoted <= self.quoted or len(rest) >= 3 * LEAST_WORDS
        if not (is_named and is_quoted and (is_alike or len(telling) > LEAST_WORDS)):
            return False
        runs = SequenceMatcher(None, self.words, other.words, autojunk=False).get_matching_blocks()
        ends = [run for run in runs if run.size >= RUN_WORDS and (run.a or run.b)]
        both = [word for run in ends for word in self.words[run.a : run.a + run.size]]
        is_run = len(both) > RUN_WORDS + 1 and len(telling.intersection(both)) > LEAST_WORDS
        return is_alike or is_run or runs[0].size == min(len(self.words), len(other.words))


def _telling(words: Iterable[str]) -> set[str]:
    return {word for word in words if len(word) > 2} - NO_SUBJECT


@functools.lru_cache(1000)
def failure_of(reason: str) -> Failure:
    """Return what identifies a failure with this message."""
    reason = one_line(reason, REASON_CHARACTERS)
    said = _MODULE.sub("", _TEST.sub(" ", reason))
    quoted = (name.lower() for groups in _QUOTED.findall(said) for name in groups if not _ID.search(name))
    names = (name.lower() for groups in _NAMES.findall(said) for name in groups if name)
    said = _LOG.sub("", said)
    words = tuple(_WORDS.findall(_HEX.sub(" ", _PATH.sub(" ", said)).lower()))
    return Failure(reason, words, frozenset(quoted) - {""}, frozenset(names), frozenset(_PATH.findall(said)))


def family(command: str) -> str:
    """Return the program and subcommand that `command` runs first, such as `git push` or `npm run build`."""
    words = _PREFIX.sub("", command.strip()).split()
    program = _PROGRAM.match(words[0]) if words else None
    name = re.sub(r"^(python|node|ruby)[\d.]+$", r"\1", program[1] if program else "".join(words[:1]))
    rest = [word for word in words[1:4] if not word.startswith("-")]
    if name in _MAIN:
        return " ".join([name, *(one.rpartition("/")[2] for one in rest[:1])])
    if not rest or not _SUBCOMMAND.fullmatch(rest[0]):
        return name
    return " ".join([name, *rest[: 2 if rest[0] in _SCRIPTS else 1]])


def _families(call: Call) -> list[str]:
    """Return the family of each command of a chain that does not only look."""
    parts = (part for part in _CHAIN.split(call.given) if part.strip() and not is_step(part))
    return list(map(family, parts)) or [family(call.given)]


class Way(NamedTuple):
    """A failure among the calls of a session, and the `last` one, which passed; None if it was not solved."""

    calls: Sequence[Call]
    at: int
    last: int | None

    @property
    def text(self) -> str:
        """The failure and what became of it, in one line."""
        failed, between = self.calls[self.at], self.calls[self.at + 1 : self.last]
        shown = list(dict.fromkeys(_shown(step) for step in between if _is_step(step)))[-STEPS:]
        steps, command = ", then ".join(shown), _shown(failed)
        reason = one_line(failed.outcome, SHOWN_CHARACTERS).rstrip(" .:;")
        if self.last is None:
            then = f" (then {steps}; not run again)" if steps else ""
            return f"{command} failed the same way: {reason}; not solved{then}"
        passed = self.calls[self.last]
        is_same = passed.given == failed.given
        again = "it passed" if is_same else f"{_shown(passed)} passed"
        after = f" after {steps}" if steps else " when it was run again" if is_same else ""
        return f"{command} failed: {reason}; {again}{after}"


def way_past(
    calls: Sequence[Call], is_met: Callable[[Failure], bool], turns: Sequence[object] = ()
) -> Way | None:
    """Return the last failure of a kind that the calls of a session got past, or else met; or None.

    It is also past if its turn, one of `turns`, then ran another command that passed, after any edit.
    """
    ran = [n for n, one in enumerate(calls) if role_of(one.name) == "shell" and not one.has_passed]
    numbers = [n for n in ran if is_met(failure_of(calls[n].outcome))]
    end = len(calls)
    for at in reversed(numbers):
        wanted = _families(calls[at])[-1]
        passed = [n for n in range(at + 1, end) if calls[n].has_passed and wanted in _families(calls[n])]
        here = (n for n in passed if calls[n].given == calls[at].given and turns and turns[n] == turns[at])
        if passed:
            return Way(calls, at, next(here, passed[0]))
        end = at
    if not numbers:
        return None
    at = numbers[-1]
    later = [n for n, turn in enumerate(turns) if n > at and turn == turns[at] and _is_step(calls[n])]
    edited = next((n for n in later if role_of(calls[n].name) == "edit"), at)
    others = (n for n in later if n > edited and calls[n].has_passed)
    return Way(calls, at, next((n for n in others if not calls[n].given.startswith("git ")), None))


def _is_step(call: Call) -> bool:
    looks = is_step(_PREFIX.sub("", call.given)) and not _EDITS.search(call.given)
    is_command = role_of(call.name) == "shell" and not looks and not _LOOKS.match(call.given)
    return not call.has_failed and (is_command or role_of(call.name) == "edit")


def _shown(call: Call) -> str:
    shown = one_line(call.given, COMMAND_CHARACTERS)
    return f"{call.name} {shown}" if role_of(call.name) == "edit" else f"`{shown.replace('`', chr(39))}`"


class _DatedCall(NamedTuple):
    line: Call
    date: str
    session: str
    id: str


class Fix(NamedTuple):
    """The commands after a failure in the turn `id`; `passed` is "" if it was not solved there."""

    date: str
    session: str
    id: str
    command: str
    error: str
    steps: list[str]
    passed: str


class Invocation(NamedTuple):
    """A command that worked, how often, and the turn of the last time."""

    command: str
    times: int
    date: str
    id: str


def find_fixes(project: Project, home: Home, error: str, hide: Callable[[str], str]) -> list[Fix]:
    """Return what was run after this error, newest first, the unsolved ones last. `hide` redacts.

    `error` may be a part of the message, such as "no module named yaml" or "ENOSPC".
    """
    met, whole, found = error_met(error, hide), _whole_commands(home), []
    for calls in _sessions(project, home) if set(met.words) - NO_SUBJECT else ():
        lines, turns = [one.line for one in calls], [one.id for one in calls]
        if way := way_past(lines, lambda one: met.matches(one) or {*met.words} <= {*one.words}, turns):
            failed, between = calls[way.at], calls[way.at + 1 : way.last]
            steps = list(dict.fromkeys(whole(one) for one in between if _is_step(one.line)))[-MOST_STEPS:]
            passed = "" if way.last is None else whole(calls[way.last])
            found.append(Fix(*failed[1:], whole(failed), failed.line.outcome, steps, passed))
    return sorted(found, key=lambda one: not one.passed)


def find_invocations(project: Project, home: Home, tool: str) -> list[Invocation]:
    """Return the commands with `tool` that worked, the most frequent first."""
    found, whole = dict[str, list[_DatedCall]](), _whole_commands(home)
    for calls in _sessions(project, home):
        for one in reversed(calls):
            if one.line.has_passed and _uses(one.line.given, tool):
                found.setdefault(whole(one), []).append(one)
    shown = [Invocation(command, len(ran), ran[0].date, ran[0].id) for command, ran in found.items()]
    return sorted(shown, key=lambda one: -one.times)


def _sessions(project: Project, home: Home) -> list[list[_DatedCall]]:
    """Return the calls of each session that this home wrote, the last active session first."""
    own, found = OwnEntries(home, project.root), dict[str, list[_DatedCall]]()
    for day, text in reversed(list(read_days(project, days(project), MOST_BYTES))):
        for heading, _, turns in sections_of(text):
            session = anchors.parse(heading).get("session", "")
            for line, body in turns:
                if did_words(heading_words(line), body) in own:
                    turn, tools = anchors.parse(line).get("turn", ""), read_parts(f"{line}\n{body}").tools
                    calls = [_DatedCall(read_call(one), day, session, turn) for one in tools]
                    found[session] = [*found.pop(session, []), *calls]
    return list(reversed(found.values()))


def _whole_commands(home: Home) -> Callable[[_DatedCall], str]:
    """Return a function for the command of a call as the archive has it: a digest may show its start."""

    @functools.cache
    def archived(session: str) -> dict[tuple[str, str], str]:
        found = {}
        for turn in Archive(home).turns(session):
            for tool in (tool for message in turn.messages for tool in message.tools if tool.input):
                line = tool_line(ToolCall(tool.name, tool.input), (turn.project, turn.cwd), str)
                found[turn.id, read_call(line).given] = str(tool.input.get("command"))
        return found

    def whole(call: _DatedCall) -> str:
        name, given = call.line.name, call.line.given
        if role_of(name) == "edit":
            return f"{name} {given}"
        is_cut = _CUT.search(given) or any(given.count(quote) % 2 for quote in "'\"")
        return archived(call.session).get((call.id, given), given) if is_cut else given

    return whole


def error_met(error: str, hide: Callable[[str], str]) -> Failure:
    """Return what identifies the failure of a command that wrote this error. It is redacted first."""
    error = hide(error)
    reason = telling_line(error, has_failed=True)
    lines = [one_line(line, REASON_CHARACTERS) for line in error.split("\n")]
    met = failure_of(next((line for line in lines if reason.removesuffix(" …") in line), reason))
    said = [line for line in lines if len(lines) <= FEW_LINES or any(one.search(line) for one in REASONS)]
    return met._replace(others=tuple(one for one in map(failure_of, said[-MOST_LINES:]) if one.matches(one)))


def _uses(command: str, tool: str) -> bool:
    """Return whether a part of a command runs `tool`, also through another program: `npx playwright test`."""
    for part in _PARTS.split(command):
        before, found, _ = f" {re.sub(r'[^ ]*/', '', part)} ".partition(f" {tool} ")
        if found and not (before.strip() and is_step(part)) and _INSTALLS.isdisjoint(before.split()):
            return True
    return False
