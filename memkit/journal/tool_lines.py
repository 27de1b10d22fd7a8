"""A tool call as one line of a digest: write it, read it, and find the file that it names.

    Bash `pytest -q` → 12 passed
    Edit deploy/gateway.yaml ×2
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from memkit.agents.tools import role_of
from memkit.conversation.turn import NAMES_FILE, ToolCall
from memkit.conversation.values import redacted_result, shell_command
from memkit.hook.phrases import EMOJI
from memkit.journal.markup import one_line, printable
from memkit.journal.sentences import wording, wording_pattern

MAX_TOOLS = 30
INPUT_CHARACTERS = 100
MOST_PATH_CHARACTERS = 4096
INLINE_CHARACTERS = 200
"""Tool calls longer than this together become a list."""

_MAIN_INPUT = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "skill",
    "description", "prompt", "subject", "name",
)  # fmt: skip
_QUIET = NAMES_FILE | {"search"}
_HERE = re.compile(r"\"\$\(cat <<-?\s*(['\"]?)(\w+)\1\n\s*([^\n]+).*?\n\s*\2\n\s*\)\"", re.DOTALL)
"""A text that Claude Code gives a command: the subject of a commit, and more."""

_ADDED = re.compile(r"\Agit add [^&|;<>`$]* && (?=git )")
_BACKTICKS = re.compile(r"`+")
_COUNT = re.compile(r"(?P<call>(?:(?! → ).)*?) ×(?P<count>\d{1,4})(?P<outcome> → .*)?\Z")
MORE = re.compile(r"… and (\d{1,9}) more(?:; edited (.+))?\Z")
"""The last line of a digest that does not show all tool calls."""

_EDITED, _SEPARATOR = "; edited ", " · "
MOST_NAMES = 100
"""The most files that this line names."""

_FAILED = "failed: "
_REVERSED_DIRECTORY = re.compile(r"[\w.@+~…/-]*")
_NO_NAME = re.compile(r"[^\w.:/-]+|^[\W_]+")
_TAG = re.compile(
    r"</?tool_use_error>|<tools-used-before-summary>(?:(?!<tools-used-).)*?</tools-used-before-summary>"
    r"|\[Subagent hand-back\][^\n]*",
    re.DOTALL,
)

# The patterns below find the line of a result that tells how it went: a commit, an error, a count. They are
# ranked and name no program: test runners, linters, and package managers say much the same.

OUTCOME_CHARACTERS, FAILED_CHARACTERS = 90, 200
_FEW_LINES = 8
"""The last of more lines, such as of a listing, usually tells nothing."""

REASONS = (
    re.compile(r"(?:^|\s)(?:error|fatal)\b[: \[]|^\w*(?:Error|Exception)\b|^E ", re.IGNORECASE),
    wording_pattern("reasons", r"\b", r"\b"),
)
"""Patterns of the line that explains a failure. A line that matches the first pattern is preferred."""

COUNTED = re.compile(r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
COMMIT_LINE = re.compile(r"^\[[^\]\n]*\b[0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
PULL_URL = re.compile(r"https://[^\s\"'<>]{1,300}/(?:pull|merge_requests)/\d+")

LOOKS = frozenset(" ".join(wording("looking commands")).split())
"""Commands that only look. Their failure means nothing unless they were tried again."""

_GIT_LOOKS = ("git diff", "git log", "git show", "git status")
_STAGES = re.compile(r"git add [^&|;<>`$]*")
_LIST = re.compile(r"&&|[;&<>`$\n]")

_RESULTS = (
    COMMIT_LINE,
    PULL_URL,
    COUNTED,
    re.compile(r"^(?:error|fatal|panic)\b[: \[]|^\w*(?:Error|Exception): |^! \["),
    re.compile(r"^(?:[+*=-] ?)?(?:[0-9a-f]{6,}\.{2,3}[0-9a-f]{6,}|\[new \w+\]) +\S+ +-> "),
    wording_pattern("results"),
)
"""Patterns of the line that tells the result of a call that did not fail, the best first."""

_ACKNOWLEDGED, _ADVICE = wording_pattern("acknowledged"), wording_pattern("advice")
_SAME_NAME = re.compile(r" (\S+) -> \1$")
_ECHO = re.compile(r"^(?:\[[\w:.-]+\] )?[>$] \S")
_CODE, _SAID = re.compile(r"[;{}(\[,:]\s*$|·"), re.compile(r"^\W*(?:\S+ ){4,}\S*[a-z]:$")
_FAULT = re.compile(r"^(?:error|fatal|panic)\b[: \[]|^[\w.]*(?:Error|Exception):", re.IGNORECASE)
_RAISED = re.compile(r"(?:E +(?:\w+: )?)?(?:Caused by: )?[\w.]*(?:Error|Exception)(?=:|$| [\[(])")
_BLAMED = re.compile(
    r"^(?:\* What went wrong:\n(?:(?!\* ).*\n)* *>"
    r"|(?:Caused by:\n(?: .*\n|\n)*)*Caused by:\n(?: +\d+: .*\n)*) +(.+)",
    re.MULTILINE,
)
"""The last cause that Gradle or Rust names."""
WRAPS = wording_pattern("wrapped failures")
"""A line that only passes on that something failed, and tells no cause."""

_FRAME = re.compile("[\u2500-\u259f]+ ?")
_SENTENCE_END = re.compile(r"(?<=[^\s.][.!?])\s")
_SENTENCE_CHARACTERS = 90
"""An error is cut at the end of a sentence behind so many characters."""


def telling_line(result: str, *, has_failed: bool, first: bool = False) -> str:
    """Return the line of `result` that tells how the call went, or "".

    Without a known wording, that is the last line of a few, or the `first` one of a report by a sub-agent.
    """
    limit = FAILED_CHARACTERS if has_failed else OUTCOME_CHARACTERS
    lines = [line for line in telling_lines(result, limit) if not _ACKNOWLEDGED.search(line)]
    if not lines:
        return ""
    if has_failed:
        blamed = [one for one in _BLAMED.findall(result) if not WRAPS.search(one)]
        return _reason(telling_lines(blamed[0], limit) if blamed else lines)
    if first:
        return lines[0]
    for pattern in _RESULTS:
        found = [match for line in lines if (match := pattern.search(line))]
        if found:
            line = found[-1][0] if pattern is PULL_URL else found[-1].string
            return _SAME_NAME.sub(r" \1", line)
    if len(lines) > _FEW_LINES:
        return ""
    seen = Counter(lines)
    said = [line for line in lines if not _ADVICE.search(line)]
    once = [line for line in said if seen[line] == 1 and not _CODE.search(line)]
    return (once or said or lines)[-1]


def is_step(command: str) -> bool:
    """Return whether a command only looks, or only stages files, so that what follows from it tells more."""
    if _LIST.search(command):
        return False
    parts = [" ".join(part.split()) for part in command.split("|")]
    looks = (part.startswith(_GIT_LOOKS) or part.split(" ")[0] in LOOKS for part in parts)
    return all(looks) or _STAGES.fullmatch(parts[0]) is not None


def telling_lines(text: str, limit: int = OUTCOME_CHARACTERS) -> list[str]:
    """Return the lines with letters or digits, without those of a drawn frame if there are others."""
    lines = [line for line in printable(text).split("\n") if any(map(str.isalnum, line))]
    lines = [line for line in lines if not line.startswith("Exit code ")] or lines
    lines = [line for line in lines if not _FRAME.search(line.removeprefix("│ "))] or lines
    lines = [line for line in lines if not _ECHO.match(line)] or lines
    cleaned = (
        one_line(re.sub(f"{EMOJI.pattern} ?", "", _FRAME.sub("", line)), limit)
        for line in lines
    )
    return [line for line in cleaned if line]


def _reason(lines: list[str]) -> str:
    said = [line for line in lines if _SAID.search(line) or not _CODE.search(line)]
    told = [line for line in said if not _RESULTS[-1].search(line)] or lines
    causes = [line for line in told if not WRAPS.search(line)]
    raised = [line for line in causes if _RAISED.match(line)]
    wanted = (REASONS[0], COUNTED, REASONS[1])
    found = (line for some in (causes, told) for pattern in wanted for line in some if pattern.search(line))
    line = raised[-1] if raised else next(found, (causes or told)[0])  # of a chain, the last ended it
    end = _SENTENCE_END.search(line, _SENTENCE_CHARACTERS)
    return line[: end.start()] if end else line


def tools_part(calls: list[ToolCall], roots: Sequence[str], redact: Callable[[str], str]) -> str:
    """Return the calls of a turn, equal ones together, as one line or a list of at most `MAX_TOOLS`.

    A last line counts what has no room, and names the files that only those calls edited.
    """
    if any(role_of(call.name) == "edit" for call in calls):
        calls = [call for call in calls if not _is_step(call)]
    lines = _merged(_telling([_shown(call, roots, redact) for call in calls]))
    first = sorted(range(len(lines)), key=lambda number: _rank(lines[number][0]))
    kept, rest = sorted(first[:MAX_TOOLS]), sorted(first[MAX_TOOLS:])
    shown = [_with_count(*lines[n]) for n in kept]
    if rest:
        shown.append(redact(_rest([lines[n] for n in kept], [lines[n] for n in rest])))
    if not shown:
        return ""
    inline = " · ".join(shown)
    if len(inline) <= INLINE_CHARACTERS and inline.count(" · ") == len(shown) - 1:
        return f"**Did** {inline}"
    return "**Did**\n\n" + "\n".join(f"- {line}" for line in shown)


def _rank(call: str) -> int:
    """The session's own calls come first, and what sub-agents only looked at comes last."""
    if not call.startswith("↳ "):
        return 0
    name = call.removeprefix("↳ ").partition(" ")[0]
    return 2 if role_of(name) in ("read", "list", "search") else 1


def _rest(shown: Iterable[tuple[str, str, int]], rest: Sequence[tuple[str, str, int]]) -> str:
    count = f"… and {sum(number for _, _, number in rest)} more"
    known = set(_edited(shown))
    names = [path for path in dict.fromkeys(_edited(rest)) if path not in known and _SEPARATOR not in path]
    return f"{count}{_EDITED}{_SEPARATOR.join(names[:MOST_NAMES])}" if names else count


def _edited(lines: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    for call, outcome, _ in lines:
        found = _file_call(_with_count(call, outcome, 1))
        if found and found.is_edit:
            yield found.path


def _is_step(call: ToolCall) -> bool:
    command = call.input.get("command")
    if role_of(call.name) != "shell" or call.is_error or not isinstance(command, str) or not is_step(command):
        return False
    return len(telling_lines(call.result or "")) != 1


def tool_line(call: ToolCall, roots: Sequence[str], redact: Callable[[str], str]) -> str:
    """Return a tool call as the digest shows it: the name, the main input, and the outcome."""
    return _with_count(*_shown(call, roots, redact), 1)


def split_count(line: str) -> tuple[str, int]:
    """Return the line of one call, and how many equal calls `line` stands for."""
    match = _COUNT.match(line)
    return (match["call"] + (match["outcome"] or ""), int(match["count"])) if match else (line, 1)


def count_calls(line: str) -> int:
    """Return how many calls a line of a digest stands for."""
    more = MORE.match(line)
    return int(more[1]) if more else split_count(line)[1]


def _with_count(call: str, outcome: str, count: int) -> str:
    shown = f"{call} ×{count}" if count > 1 else call
    return f"{shown} → {outcome}" if outcome else shown


def _telling(calls: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the calls that say something: no read, and no failed edit, of a file that is edited later."""
    edits = {}
    for number, (call, _) in enumerate(calls):
        name, _, path = call.removeprefix("↳ ").partition(" ")
        if role_of(name) == "edit":
            edits[path] = number
    for number, (call, outcome) in enumerate(calls):
        name, _, path = call.removeprefix("↳ ").partition(" ")
        role = role_of(name)
        is_step = role == "read" or (role == "edit" and outcome)
        if call and not (is_step and edits.get(path, -1) > number):
            yield call, outcome


def _merged(calls: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """A call that failed, passed, and failed again is three lines. What follows a failure stays behind it."""
    lines: list[tuple[str, str, int]] = []
    last: dict[str, int] = {}
    failure = -1
    for call, outcome in calls:
        place = last.get(call, -1)
        is_near = place > failure or place == len(lines) - 1
        if place >= 0 and is_near and lines[place][1] == outcome:
            lines[place] = call, outcome, lines[place][2] + 1
        else:
            place = last[call] = len(lines)
            lines.append((call, outcome, 1))
        failure = place if outcome.startswith(_FAILED) else failure
    return lines


def _shown(call: ToolCall, roots: Sequence[str], redact: Callable[[str], str]) -> tuple[str, str]:
    values = (call.input.get(name) for name in _MAIN_INPUT)
    given = next((value for value in values if isinstance(value, str) and value.strip()), "")
    given = _HERE.sub(r'"\3"', relative(given, roots))
    if role_of(call.name) in NAMES_FILE:
        shown = redact(_path(one_line(redact(given), MOST_PATH_CHARACTERS)))
    else:
        shown = redact(one_line(_ADDED.sub("", redact(given)), INPUT_CHARACTERS))
        shown = _code(shown) if shown else ""
    agent = "↳ " if call.by_agent else ""
    name = _NO_NAME.sub("_", redact(call.name))[:60] or "tool"
    outcome = redact(relative(_outcome(call, redact), roots))
    commit = COMMIT_LINE.match(outcome)
    if commit and commit[1].removesuffix(" …") in shown:
        outcome = outcome[: commit.start(1)].rstrip()
    if not shown and not outcome and call.result and role_of(call.name) not in _QUIET:
        return "", ""  # "TodoWrite → Todos have been modified successfully"
    return f"{agent}{name} {shown}".rstrip(), outcome


def relative(text: str, roots: Sequence[str]) -> str:
    """Return `text` with paths below `roots` as relative, and without a `cd` to one of them in front."""
    for root in sorted({*roots} - {"", os.sep}, key=len, reverse=True):
        name = re.escape(root)
        text = re.sub(rf"\Acd (['\"]?){name}\1 *(?:&&|;) *", "", text)
        text = re.sub(rf"(?<![\w./~-]){name}/(?=[\w.@])", "", text)
    return text


def _path(path: str) -> str:
    """Shorten a path from its start: its end names the file."""
    if len(path) <= INPUT_CHARACTERS:
        return path
    tail = path[-INPUT_CHARACTERS:]
    return f"…{tail[max(0, tail.find('/')):]}"


def _code(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    if not longest:
        return f"`{text}`"
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


def _outcome(call: ToolCall, redact: Callable[[str], str]) -> str:
    if call.result is None:
        return "no result"
    role = role_of(call.name)
    is_quiet = role in _QUIET or call.is_recall
    if is_quiet and not call.is_error:
        return ""
    shown = redacted_result(shell_command(call.input), call.result, redact)
    result = _TAG.sub("", printable(shown))
    line = telling_line(result, has_failed=call.is_error, first=role == "agent")
    if call.is_error:
        return f"{_FAILED}{line}" if line else "failed"
    return line


class Call(NamedTuple):
    """A tool call: the tool, its main input, its outcome, and whether the tool reported an error.

    A digest may cut input and outcome; see `read_call`.
    """

    name: str
    given: str
    outcome: str
    has_failed: bool = False

    @property
    def reason(self) -> str:
        """The line that told why it failed, or ""."""
        return self.outcome if self.has_failed and self.outcome != "failed" else ""

    @property
    def has_passed(self) -> bool:
        """Whether it is a command that worked. Behind a pipe, a failure ends without an error."""
        is_over = role_of(self.name) == "shell" and not self.has_failed and self.outcome != "no result"
        return is_over and not COUNTED.search(self.outcome) and not _FAULT.search(self.outcome)


def read_call(line: str) -> Call:
    """Read the line of a tool call, without the number of equal calls."""
    name, _, rest = split_count(line)[0].removeprefix("↳ ").partition(" ")
    given, _, outcome = f" {rest}".partition(" → ")
    given = given.strip()
    marks = len(given) - len(given.lstrip("`"))
    if 0 < 2 * marks < len(given) and given.endswith("`" * marks):
        given = given[marks:-marks].strip()
    has_failed = outcome == "failed" or outcome.startswith(_FAILED)
    return Call(name, given, outcome.removeprefix(_FAILED), has_failed)


class FileCall(NamedTuple):
    """A tool call on a file: the path as the digest shows it, and whether the call edited the file."""

    path: str
    is_edit: bool

    def is_at(self, names: Collection[str], *, by_end: bool = False) -> bool:
        """Return whether the file has one of `names`, paths from the root; `by_end`, or their last parts.

        A digest shows an absolute path for a file outside of the root, and cuts the start of a long path.
        """
        path = self.path.strip("`").removeprefix("./")
        if path.startswith("…/") and any(f"/{name}".endswith(path[1:]) for name in names):
            return True
        may_end = by_end or os.path.isabs(path)
        return any(path == name or (may_end and path.endswith(f"/{name}")) for name in names)


def file_calls(line: str) -> list[FileCall]:
    """Return the calls on files that a line of a digest stands for."""
    if more := MORE.match(line):
        return [FileCall(path, True) for path in (more[2] or "").split(_SEPARATOR) if path]
    one, count = split_count(line)
    call = _file_call(one)
    return [call] * count if call else []


def _file_call(line: str) -> FileCall | None:
    call = read_call(line)
    role = role_of(call.name)
    if role not in NAMES_FILE or not call.given:
        return None
    # The digest shows no outcome for a file call that succeeded.
    return FileCall(call.given, role == "edit" and not call.outcome)


def names_file(text: str, names: Collection[str], *, by_end: bool = False) -> bool:
    """Return whether a path in `text` is one of `names`, see `FileCall.is_at`.

    "webapp.py" and "app.py.orig" do not name app.py.
    """
    for last in dict.fromkeys(name.rpartition("/")[2] for name in names):
        for match in re.finditer(rf"{re.escape(last)}(?![\w-]|\.\w)", text) if last else ():
            before = text[max(0, match.start() - MOST_PATH_CHARACTERS) : match.start()][::-1]
            directory = _REVERSED_DIRECTORY.match(before)
            path = f"{directory[0][::-1] if directory else ''}{last}"
            if FileCall(path, False).is_at(names, by_end=by_end):
                return True
    return False
