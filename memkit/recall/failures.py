"""How an earlier turn got past an error: from its tool calls, as the day file has them.

    **Did** Bash `pytest -q` → failed: ModuleNotFoundError: No module named yaml
            Bash `pip install pyyaml` → Successfully installed pyyaml-6.0.2
            Bash `pytest -q` → 12 passed

Two failures are the same if their commands are of one family (`pytest`, `npm run build`), their messages have
the same words without numbers, paths, and hashes, and neither names another file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memkit.agents.tools import role_of
from memkit.journal.outcomes import COUNTED, LOOKS
from memkit.journal.tool_lines import CallLine
from memkit.text import one_line

LEAST_WORDS = 2
"""A message with fewer telling words ("1 failed, 2 passed", "Exit code 1") says nothing about the cause."""

STEPS = 2
"""The most steps to show between a failure and the call that got past it: the last ones."""

COMMAND_CHARACTERS = 60
REASON_CHARACTERS = 90

_PREFIX = re.compile(
    r"\A(?:cd\s[^;&|]+(?:&&|;)\s*|(?:export\s+)?[A-Za-z_]\w*=\S*\s+(?:&&\s*)?|(?:time|sudo|env|npx|uvx)\s+"
    r"|(?:uv|poetry|pipenv|bundle)\s+(?:run|exec)\s+(?:-\S+\s+)*|timeout\s+\S+\s+)"
)
_MODULE = re.compile(r"\A(?:\S*/)?python[\d.]*\s+(?:-\S\s+)*-m\s+")
_PROGRAM = re.compile(r"(?:[^\s/]*/)*([\w.+-]+)")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_SCRIPTS = frozenset({"run", "exec", "run-script"})
_MAIN = frozenset({"bash", "node", "python", "ruby", "sh"})
"""Programs that run the file they name."""

_PATH = re.compile(r"(?:[\w.~-]*/)+[\w.@+-]*|\b[\w-]+\.[A-Za-z]{1,5}\b(?!\()")
_HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{7,})\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{3,}")
_NO_SUBJECT = frozenset(
    """and assert assertionerror cannot code command could error errors exit exited failed failure failures
    fatal for from line not passed process returned status test tests the with""".split()
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What identifies a failure. `reason` is the message as it reads; `file` is the one it names, or ""."""

    reason: str
    message: str
    family: str
    file: str

    @property
    def tells(self) -> bool:
        """Whether the message says anything about the cause."""
        words = set(_WORDS.findall(self.message)) - _NO_SUBJECT
        return len(words) >= LEAST_WORDS

    def matches(self, other: Signature) -> bool:
        """Return whether two failures are the same."""
        is_same = (self.message, self.family) == (other.message, other.family)
        return is_same and (self.file == other.file or not (self.file and other.file))


REASON_CHARACTERS = 300
"""memkit writes less; what a stranger wrote can be of any length."""


def signature(call: CallLine) -> Signature:
    """Return the signature of a shell's call that failed."""
    reason = one_line(call.reason, REASON_CHARACTERS)
    files = [match.rstrip("/").rpartition("/")[2] for match in _PATH.findall(reason)]
    message = _HEX.sub(" ", _PATH.sub(" ", reason.lower()))
    message = " ".join(re.findall(r"[^\W\d_]+", message))
    return Signature(reason, message, family(call.given), next(filter(None, files), ""))


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


def way_past(calls: Sequence[CallLine], met: Signature) -> str:
    """Return how `calls` got past the failure `met`, in one line, or "" if they did not meet or pass it."""
    for number, call in enumerate(calls):
        if role_of(call.name) != "shell" or not call.reason or not met.matches(signature(call)):
            continue
        for last, later in enumerate(calls[number + 1 :], number + 1):
            is_same = role_of(later.name) == "shell" and family(later.given) == met.family
            # Behind a pipe, a failure ends without an error.
            has_passed = not later.has_failed and later.outcome != "no result"
            if is_same and has_passed and not COUNTED.search(later.outcome):
                return _told(call, calls[number + 1 : last], later)
    return ""



def _told(failed: CallLine, between: Sequence[CallLine], passed: CallLine) -> str:
    steps = list(dict.fromkeys(step for call in between if (step := _step(call))))[-STEPS:]
    how = f" after {', then '.join(steps)}" if steps else ""
    again = "it passed" if passed.given == failed.given else f"{_code(passed.given)} passed"
    reason = one_line(failed.reason, REASON_CHARACTERS).rstrip(" .:;")
    return f"{_code(failed.given)} failed: {reason}; {again}{how or ' when it was run again'}"


def _step(call: CallLine) -> str:
    if call.has_failed:
        return ""
    if role_of(call.name) == "edit":
        return f"{call.name} {one_line(call.given, COMMAND_CHARACTERS)}"
    if role_of(call.name) != "shell" or family(call.given).split(" ")[0] in LOOKS:
        return ""
    return _code(call.given)


def _code(command: str) -> str:
    return f"`{one_line(command, COMMAND_CHARACTERS).replace('`', chr(39))}`"
