"""Failures that are the same, what was run after one when it did not come back, and what worked of a tool.

All comes from the tool calls of turns, as the day files have them:

    **Did** Bash `pytest -q` → failed: ModuleNotFoundError: No module named yaml
            Bash `pip install pyyaml` → Successfully installed pyyaml-6.0.2
            Bash `pytest -q` → 12 passed

The message alone tells whether two failures are the same: their words without numbers, paths, times, and IDs.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memkit import anchors
from memkit.agents.claude_code.tools import SHELL
from memkit.agents.tools import role_of
from memkit.archive.archive import Archive
from memkit.conversation.turn import ToolCall
from memkit.errors import ArchiveError
from memkit.files import MOST_BYTES
from memkit.hook.entries import OwnEntries, days, did_words, heading_words, read_days, sections_of
from memkit.journal.tool_lines import (
    COUNTED,
    FAILED,
    LOOKS,
    WRAPS,
    CallLine,
    read_call,
    telling_line,
    tool_line,
)
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import one_line

logger = logging.getLogger(__name__)

ALIKE = 0.8
"""The least share of the words of two messages that both have."""

LEAST_WORDS = 2
"""The least number of telling words in both. "1 failed, 2 passed" and "Exit code 1" have none."""

STEPS = 2
"""The most steps to show between a failure and the call that got past it: the last ones."""

COMMAND_CHARACTERS = 60
REASON_CHARACTERS = 300
"""memkit writes less; what a stranger wrote can be of any length."""

SHOWN_CHARACTERS = 90

_PREFIX = re.compile(
    r"\A(?:cd\s[^;&|]+(?:&&|;)\s*|(?:export\s+)?[A-Za-z_]\w*=\S*\s+(?:&&\s*)?|(?:time|sudo|env|npx|uvx)\s+"
    r"|(?:uv|poetry|pipenv|bundle)\s+(?:run|exec)\s+(?:-\S+\s+)*|timeout\s+\S+\s+)"
)
_MODULE = re.compile(r"\A(?:\S*/)?python[\d.]*\s+(?:-\S\s+)*-m\s+")
_PROGRAM = re.compile(r"(?:[^\s/]*/)*([\w.+-]+)")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_SCRIPTS = frozenset({"compose", "run", "exec", "run-script"})
_MAIN = frozenset({"bash", "node", "python", "ruby", "sh"})
"""Programs that run the file they name."""

_TEST = re.compile(r"\S+::\S+|https?://\S+")
_PATH = re.compile(r"(?:[\w.~@-]*/)+[\w.@+-]*|(?<![\w.])[\w-]+\.[A-Za-z]{1,5}\b(?![.(])")
_HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{7,})\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_NAMES = re.compile(
    r"""(?<!\w)['"`‘“]([\w.@:-]{1,80})['"`’”](?!\w)|\b([A-Z]{1,3}\d{3,5})\b(?![.\w-])"""
    r"""|(?<![\w-])(--[a-z][\w-]+)|([\w.-]+)[=~>]=\d"""
)
"""What tells failures of the same words apart: quoted names, codes such as E0432, options, and packages."""

_NO_SUBJECT = frozenset(
    """actual and any are assert assertionerror bash but can cannot code command could did directory does error
    errors eval exist exists exit exited expected failed failure failures fatal file files for found from got has
    line not passed process received returned status such test tests that the was with zsh""".split()
)
_EDITS = re.compile(r"\bsed\s+(?:-\S+\s+)*-i")
_FAULT = re.compile(r"(?:error|fatal|panic)\b[: \[]|[\w.]*(?:Error|Exception)\b:", re.IGNORECASE)
_PARTS = re.compile(r"&&|\|\|?|[;\n]")
_INSTALLS = frozenset({"add", "install", "remove", "uninstall"})


@dataclass(frozen=True, slots=True)
class Failure:
    """What identifies a failure: the words of its message, and the names in it.

    `reason` is the message as it reads; `file` is the one it names, or "".
    """

    reason: str
    words: tuple[str, ...]
    names: frozenset[str]
    file: str

    @property
    def tells(self) -> bool:
        """Whether the message says anything about the cause."""
        return len(_telling(self.words)) >= LEAST_WORDS and not WRAPS.search(self.reason)

    def matches(self, other: Failure) -> bool:
        """Return whether two failures are the same. Of a message that was cut, the other may have more."""
        ours, theirs = self.words, other.words
        if self.reason.endswith("…"):
            theirs = theirs[: len(ours)]
        if other.reason.endswith("…"):
            ours = ours[: len(theirs)]
        both = set(ours) & set(theirs)
        is_other_file = bool(self.file and other.file) and self.file != other.file
        if len(_telling(both)) < LEAST_WORDS + is_other_file or WRAPS.search(other.reason):
            return False
        is_named = self.names <= other.names or other.names <= self.names
        return is_named and len(both) >= ALIKE * len({*ours, *theirs})


def _telling(words: Iterable[str]) -> set[str]:
    return {word for word in words if len(word) > 2} - _NO_SUBJECT


def failure_of(call: CallLine) -> Failure:
    """Return what identifies the failure of a shell's call."""
    reason = one_line(call.reason, REASON_CHARACTERS)
    said = _TEST.sub(" ", reason)
    files = [match.rstrip("/").rpartition("/")[2] for match in _PATH.findall(said)]
    said = _HEX.sub(" ", _PATH.sub(" ", said))
    names = {name.lower() for found in _NAMES.findall(said) for name in found if name.strip("0123456789.:-")}
    return Failure(reason, tuple(_WORDS.findall(said.lower())), frozenset(names), next(filter(None, files), ""))


def family(command: str) -> str:
    """Return the program and subcommand that `command` runs first, such as `git push` or `npm run build`."""
    command, count = command.strip(), 1
    while count:
        command, count = _PREFIX.subn("", command, count=1)
        command = command.lstrip()
    command = _MODULE.sub("", command, count=1)
    words = command.split()
    if not words:
        return ""
    program = _PROGRAM.match(words[0])
    name = re.sub(r"^(python|node|ruby)[\d.]+$", r"\1", program[1] if program else words[0])
    rest = [word for word in words[1:4] if not word.startswith("-")]
    if name in _MAIN:
        return " ".join([name, *(one.rpartition("/")[2] for one in rest[:1])])
    if not rest or not _SUBCOMMAND.fullmatch(rest[0]):
        return name
    return " ".join([name, *rest[: 2 if rest[0] in _SCRIPTS else 1]])


class Way(NamedTuple):
    """A failure among the calls of a session, by number, and the call that passed later.

    `last` is None if the failure was not solved there.
    """

    calls: Sequence[CallLine]
    at: int
    last: int | None

    @property
    def steps(self) -> list[CallLine]:
        """The edits and commands in between that worked; of an unsolved failure, all that followed."""
        return [one for one in self.calls[self.at + 1 : self.last] if _is_step(one)]

    @property
    def text(self) -> str:
        """The failure and what became of it, in one line."""
        failed = self.calls[self.at]
        shown = list(dict.fromkeys(_shown(step) for step in self.steps))[-STEPS:]
        steps, command = ", then ".join(shown), _shown(failed)
        reason = one_line(failed.reason, SHOWN_CHARACTERS).rstrip(" .:;")
        if self.last is None:
            then = f" (then {steps}; not run again)" if steps else ""
            return f"{command} failed the same way: {reason}; not solved{then}"
        passed = self.calls[self.last]
        again = "it passed" if passed.given == failed.given else f"{_shown(passed)} passed"
        return f"{command} failed: {reason}; {again} {f'after {steps}' if steps else 'when it was run again'}"


def way_past(calls: Sequence[CallLine], met: Failure) -> Way | None:
    """Return how the calls of a session got past the last failure like `met` that they got past.

    If they got past none, return the last one; None if they did not meet it.
    """
    numbers = [n for n, one in enumerate(calls) if is_failure(one) and met.matches(failure_of(one))]
    end = len(calls)
    for at in reversed(numbers):
        wanted = family(calls[at].given)
        for last in range(at + 1, end):
            if has_passed(calls[last]) and family(calls[last].given) == wanted:
                return Way(calls, at, last)
        end = at
    return Way(calls, numbers[-1], None) if numbers else None


def is_failure(call: CallLine) -> bool:
    """Return whether a shell's call failed and said why."""
    return role_of(call.name) == "shell" and bool(call.reason)


def has_passed(call: CallLine) -> bool:
    """Return whether a command worked. Behind a pipe, a failure ends without an error."""
    if role_of(call.name) != "shell" or call.has_failed or call.outcome == "no result":
        return False
    return not COUNTED.search(call.outcome) and not _FAULT.match(call.outcome)


def _is_step(call: CallLine) -> bool:
    is_look = family(call.given).split(" ")[0] in LOOKS and not _EDITS.search(call.given)
    is_command = role_of(call.name) == "shell" and not is_look
    return not call.has_failed and (is_command or role_of(call.name) == "edit")


def _shown(call: CallLine) -> str:
    shown = one_line(call.given, COMMAND_CHARACTERS)
    return f"{call.name} {shown}" if role_of(call.name) == "edit" else f"`{shown.replace('`', chr(39))}`"


class _Call(NamedTuple):
    line: CallLine
    day: str
    session: str
    turn: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What was run after a failure: the steps, and the command that passed; "" if it was not solved.

    `id` is the turn that failed, `text` all of it in one line.
    """

    id: str
    date: str
    session: str
    command: str
    error: str
    steps: tuple[str, ...]
    passed: str
    text: str


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command that worked, how often, and the turn of the last time."""

    command: str
    count: int
    date: str
    session: str
    id: str


class RunCommands:
    """The commands in a project's memory that this home wrote. It needs no index."""

    def __init__(self, project: Project, home: Home) -> None:
        self._project = project
        self._home = home
        self._archived = functools.cache(self._read_archive)

    def fixes(self, error: str, hide: Callable[[str], str]) -> list[Fix]:
        """Return what was run after this error, newest first, the unsolved ones last. `hide` redacts."""
        met = error_met(error, hide)
        found = []
        for calls in self._sessions() if met.tells else ():
            way = way_past([one.line for one in calls], met)
            if way is None:
                continue
            at, end = calls[way.at], len(calls) if way.last is None else way.last + 1
            lines = [self._whole(one) if way.at <= n < end else one.line for n, one in enumerate(calls)]
            way = Way(lines, way.at, way.last)
            steps = (f"{one.name} {one.given}" if role_of(one.name) == "edit" else one.given for one in way.steps)
            passed = "" if way.last is None else lines[way.last].given
            failed = lines[way.at]
            found.append(
                Fix(at.turn, at.day, at.session, failed.given, failed.reason, tuple(dict.fromkeys(steps)), passed, way.text)
            )
        return sorted(found, key=lambda one: not one.passed)

    def how(self, tool: str) -> list[Invocation]:
        """Return the commands with `tool` that worked, the most frequent first."""
        found: dict[str, list[_Call]] = {}
        for calls in self._sessions():
            for one in calls:
                if has_passed(one.line) and _uses(one.line.given, tool):
                    found.setdefault(self._whole(one).given, []).append(one)
        # The sessions came newest first.
        shown = [
            Invocation(given, len(calls), calls[0].day, calls[0].session, calls[0].turn)
            for given, calls in found.items()
        ]
        return sorted(shown, key=lambda one: -one.count)

    def _sessions(self) -> list[list[_Call]]:
        """Return the calls of each session, the last active one first."""
        own, found = OwnEntries(self._home, self._project.root), dict[str, list[_Call]]()
        for day, text in reversed(list(read_days(self._project, days(self._project), MOST_BYTES))):
            for heading, _, turns in sections_of(text):
                session = anchors.parse(heading).get("session", "")
                for line, body in turns:
                    if did_words(heading_words(line), body) not in own:
                        continue
                    turn, lines = anchors.parse(line).get("turn", ""), read_parts(f"{line}\n{body}").tools
                    calls = [_Call(read_call(one), day, session, turn) for one in lines]
                    found[session] = [*found.pop(session, []), *calls]
        return list(reversed(found.values()))

    def _whole(self, call: _Call) -> CallLine:
        """Return a call with all of its command, if the archive has it."""
        if not call.line.given.endswith("…"):
            return call.line
        whole = self._archived(call.session).get(call.line.given, call.line.given)
        return call.line._replace(given=whole)

    def _read_archive(self, session: str) -> dict[str, str]:
        """Return the commands of a session by what a digest shows of them."""
        found = {}
        try:
            turns = Archive(self._home).turns(session)
        except (ArchiveError, OSError) as error:
            logger.warning("the commands of session %s stay cut: %s", session, error)
            turns = []
        for turn in turns:
            for tool in (tool for message in turn.messages for tool in message.tools):
                command = tool.input.get("command")
                if isinstance(command, str):
                    line = tool_line(ToolCall(tool.name, tool.input), (turn.project, turn.cwd), str)
                    found[read_call(line).given] = command
        return found


def error_met(error: str, hide: Callable[[str], str]) -> Failure:
    """Return what identifies the failure of a command that wrote this error. It is redacted first."""
    error = hide(error)
    reason = telling_line(error, has_failed=True)
    # A digest cuts the line, and paths move the place of the cut.
    lines = (one_line(line, REASON_CHARACTERS) for line in error.split("\n"))
    whole = next((line for line in lines if line.startswith(reason.removesuffix(" …"))), reason)
    return failure_of(CallLine(SHELL, "", f"{FAILED}{whole}"))


def _uses(command: str, tool: str) -> bool:
    """Return whether a part of a command runs `tool`, also through another program: `npx playwright test`."""
    for part in _PARTS.split(command):
        words = part.split()
        names = [word.rpartition("/")[2] for word in words]
        if tool in names and family(part).split(" ")[0] not in LOOKS:
            before = names[: names.index(tool)]
            if _INSTALLS.isdisjoint(before):
                return True
    return False
