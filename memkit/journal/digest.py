"""Render a turn or a user's note as Markdown, without a model. The same turn always gives the same text.

### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->
**Did** Read deploy/gateway.yaml · Edit deploy/gateway.yaml ×2 · Bash `pytest -q` → 12 passed

**Answered** 7443, because …

The heading is the prompt. Where that does not fit or says nothing, `**Asked** …` comes first.

A note that the user had memkit write is a section of its own in the day file:

## 14:30 Note: The gateway moves to 7444 on Monday <!-- note:ab12cd34 -->
Tags: gateway, deploy
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memkit import anchors
from memkit.claude_code.turn import ToolCall, Turn, turn_id
from memkit.errors import MemkitError
from memkit.journal.markup import cut_middle, one_line, printable, safe_block, short_id
from memkit.journal.outcomes import COMMITTED, is_step, telling_line, telling_lines
from memkit.journal.titles import TITLE_CHARACTERS, title_of

PROMPT_CHARACTERS = 2000
PASTE_CHARACTERS = 300
"""Of a prompt of more than `PASTE_LINES` lines and no fence: most of it is usually a log, diff, or review."""

PASTE_LINES = 12
ANSWER_CHARACTERS = 4000
REPORT_CHARACTERS = 320
"""Of an answer after edits: it reports what the tool calls and the files show."""

MAX_TOOLS = 30
INPUT_CHARACTERS = 100
MOST_PATH_CHARACTERS = 4096
NOTE_CHARACTERS = 20_000
TAG_CHARACTERS = 60
NO_TITLE = "(no text)"
COMPACTION_TITLE = "Claude Code's own summary of the session so far"
COMPACTION_CHARACTERS = 8000
INLINE_CHARACTERS = 200
"""Tool calls longer than this together become a list."""

_MAIN_INPUT = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "skill",
    "description", "prompt", "subject", "name",
)  # fmt: skip
EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
FILE_TOOLS = EDITORS | {"Read", "LS"}
"""Tools whose main input is a path, shown without backticks."""

_QUIET = FILE_TOOLS | {"Glob", "Grep"}
_AGENTS = frozenset({"Agent", "Task"})
_ADDED = re.compile(r"\Agit add [^&|;<>`$]* && (?=git )")
_BACKTICKS = re.compile(r"`+")
_OWN_LINE = re.compile(r" {4}|\t| {0,3}(?:`{3}|~{3}|>|\||[-*+]\s|\d{1,9}[.)]\s)")
_FORGED = re.compile(r"\n\*\*(Asked|Did|Answered|Interrupted)\*\*")
"""A label inside a text. It gets other marks for bold, or another speaker's words would begin there."""

_AS_BOLD = r"\n__\1__"
_COUNT = re.compile(r"(?P<call>(?:(?! → ).)*?) ×(?P<count>\d{1,4})(?P<outcome> → .*)?\Z")
MORE = re.compile(r"… and (\d{1,9}) more\Z")
"""The last line of a digest that does not show all tool calls."""

_FAILED = "failed: "
_REVERSED_DIRECTORY = re.compile(r"[\w.@+~…/-]*")
_NO_NAME = re.compile(r"[^\w.:/-]+|^[\W_]+")
_TAG = re.compile(
    r"</?tool_use_error>|<tools-used-before-summary>(?:(?!<tools-used-).)*?</tools-used-before-summary>"
    r"|\[Subagent hand-back\][^\n]*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Digest:
    """A turn ready for the journal.

    `day` is its local date (ISO). `minute` is the local time (`HH:MM`) that begins its heading. `section` is
    the Markdown from the heading on, without a final newline.
    """

    turn: str
    session: str
    branch: str
    day: str
    minute: str
    title: str
    section: str


def compaction_digests(turn: Turn, redact: Callable[[str], str]) -> list[Digest]:
    """Return the summaries that Claude Code wrote when it compacted, each like a turn without a prompt."""
    hint = f"`memkit transcript --turn {turn.id}`"
    branch = redact(turn.branch)
    found = []
    for one in turn.compactions:
        when, name = local_time(one.time or turn.time), turn_id(turn.session, "", one.uuid, one.text)
        minute = when.strftime("%H:%M")
        heading = f"### {minute} {COMPACTION_TITLE} {anchors.render(turn=name, branch=branch)}"
        said = _prose("**Answered**", redact(one.text), COMPACTION_CHARACTERS, hint, redact)
        section = f"{heading}\n{said}".rstrip()
        day, session = when.date().isoformat(), anchors.safe(turn.session)
        found.append(Digest(name, session, anchors.safe(branch), day, minute, COMPACTION_TITLE, section))
    return found


def make_digest(turn: Turn, root: str, redact: Callable[[str], str]) -> Digest:
    """Return the digest of `turn`.

    All text passes through `redact` first, and again after each change to it: folding spaces, removing tags,
    or cutting can join what was separate. Paths below `root` or the turn's directory are shown as relative.
    """
    when = local_time(turn.time)
    prompt, answer = redact(turn.prompt), redact(turn.answer)
    minute = when.strftime("%H:%M")
    hint = f"`memkit transcript --turn {turn.id}`"
    is_paste = prompt.count("\n") >= PASTE_LINES and "```" not in prompt
    limit = PASTE_CHARACTERS if is_paste else PROMPT_CHARACTERS
    asked = _prose("**Asked**", prompt, limit, hint, redact) if prompt else ""
    answered = "**Interrupted**" if turn.interrupted else ""
    if answer:
        has_edited = any(call.name in EDITORS and call.result and not call.is_error for call in turn.tools)
        limit = REPORT_CHARACTERS if has_edited else ANSWER_CHARACTERS
        answered = _prose("**Answered**", answer, limit, "" if hint in asked else hint, redact)
    # Without a prompt, `read_parts` recognizes the title of an answer by making it again.
    said = answered.removeprefix("**Answered**") if answer else ""
    title = title_of(prompt, answer if prompt else said)
    title = redact(title) or NO_TITLE
    branch = redact(turn.branch)
    heading = f"### {minute} {title} {anchors.render(turn=turn.id, branch=branch)}"
    parts = [part for part in (_tools(turn.tools, (root, turn.cwd), redact), answered) if part]
    section = "\n".join([heading, "\n\n".join(parts)])
    if title != prompt or not parts or read_parts(section).prompt != prompt:
        section = "\n".join([heading, "\n\n".join(filter(None, [asked, *parts]))])
    return Digest(
        turn=turn.id,
        session=anchors.safe(turn.session),
        branch=anchors.safe(branch),
        day=when.date().isoformat(),
        minute=minute,
        title=title,
        section=section.rstrip(),
    )


@dataclass(frozen=True, slots=True)
class Note:
    """A note ready for the journal.

    The same text in the same minute has the same `id`. `day` is the local date (ISO). `minute` is the local
    time (`HH:MM`) that begins its heading. `section` is the Markdown from the heading on.
    """

    id: str
    day: str
    minute: str
    section: str


def make_note(
    text: str, tags: Sequence[str], now: datetime, redact: Callable[[str], str]
) -> Note:
    """Return a note of `text`, redacted. Raise `MemkitError` if the text is empty or too long."""
    if len(text) > NOTE_CHARACTERS:
        raise MemkitError(
            f"a note has at most {NOTE_CHARACTERS:,} characters; put the text into a Markdown file, and add "
            "that with `memkit index FILE`"
        )
    block = _safe(redact(text), redact)
    title = redact(one_line(block, TITLE_CHARACTERS))
    if not title:
        raise MemkitError("there is no text to remember")
    named = [redact(one_line(redact(tag), TAG_CHARACTERS)) for tag in tags]
    named = list(dict.fromkeys(filter(None, named)))
    when = local_time(now)
    day, minute = when.date().isoformat(), when.strftime("%H:%M")
    name = short_id(day, minute, block, *named)
    lines = [f"## {minute} Note: {title} {anchors.render(note=name)}"]
    if block != title:
        lines.append(block)
    if named:
        lines += [""] * (block != title) + [f"Tags: {', '.join(named)}"]
    return Note(name, day, minute, "\n".join(lines))


def local_time(time: datetime | None) -> datetime:
    """Return `time` in this machine's time zone. A turn without a time gets the epoch."""
    return (time or datetime.fromtimestamp(0).astimezone()).astimezone()


def _prose(
    label: str, text: str, limit: int, hint: str, redact: Callable[[str], str]
) -> str:
    text = cut_middle(text, limit, hint).lstrip("\r\n")
    # A fence, list, table, quote, or indented code must begin a line, so it cannot follow the label.
    if _OWN_LINE.match(text):
        block = f"\n\n{_safe(text, redact)}"
        return f"{label}{_FORGED.sub(_AS_BOLD, block)}"
    # Escaped together with the label, which changes how the line parses.
    return _FORGED.sub(_AS_BOLD, _safe(f"{label} {text}", redact))


def _safe(text: str, redact: Callable[[str], str]) -> str:
    safe = safe_block(text)  # escaping can join what was separate
    redacted = redact(safe)
    return safe if redacted == safe else safe_block(redacted)


def _tools(calls: list[ToolCall], roots: Sequence[str], redact: Callable[[str], str]) -> str:
    """Return one line per tool call, equal ones together. Only the first `MAX_TOOLS` lines are shown."""
    if any(call.name in EDITORS for call in calls):
        calls = [call for call in calls if not _is_step(call)]
    lines = _merged(_telling([_shown(call, roots, redact) for call in calls]))
    shown = [_with_count(*line) for line in lines[:MAX_TOOLS]]
    if len(lines) > MAX_TOOLS:
        shown.append(f"… and {sum(line[2] for line in lines[MAX_TOOLS:])} more")
    if not shown:
        return ""
    inline = " · ".join(shown)
    if len(inline) <= INLINE_CHARACTERS and inline.count(" · ") == len(shown) - 1:
        return f"**Did** {inline}"
    return "**Did**\n\n" + "\n".join(f"- {line}" for line in shown)


def _is_step(call: ToolCall) -> bool:
    """Return whether a call of a turn with edits only looked or staged, and its result is not one line."""
    command = call.input.get("command")
    if call.name != "Bash" or call.is_error or not isinstance(command, str) or not is_step(command):
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
        if name in EDITORS:
            edits[path] = number
    for number, (call, outcome) in enumerate(calls):
        name, _, path = call.removeprefix("↳ ").partition(" ")
        is_step = name == "Read" or (name in EDITORS and outcome)
        if call and not (is_step and edits.get(path, -1) > number):
            yield call, outcome


def _merged(calls: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Merge each call with the last one of the same input if that had the same outcome.

    A call that failed, passed, and failed again is three lines: their order matters.
    """
    lines: list[tuple[str, str, int]] = []
    last: dict[str, int] = {}
    for call, outcome in calls:
        place = last.get(call)
        if place is not None and lines[place][1] == outcome:
            lines[place] = call, outcome, lines[place][2] + 1
        else:
            last[call] = len(lines)
            lines.append((call, outcome, 1))
    return lines


def _shown(call: ToolCall, roots: Sequence[str], redact: Callable[[str], str]) -> tuple[str, str]:
    """Return the name and main input of a call, and its outcome; "" for a call that says nothing."""
    values = (call.input.get(name) for name in _MAIN_INPUT)
    given = next((value for value in values if isinstance(value, str) and value.strip()), "")
    for root in roots:
        if root and given.startswith(root + os.sep):
            given = os.path.relpath(given, root)
    if call.name in FILE_TOOLS:
        shown = redact(_path(one_line(redact(given), MOST_PATH_CHARACTERS)))
    else:
        shown = redact(one_line(_ADDED.sub("", redact(given)), INPUT_CHARACTERS))
        shown = _code(shown) if shown else ""
    agent = "↳ " if call.by_agent else ""
    name = _NO_NAME.sub("_", redact(call.name))[:60] or "tool"
    outcome = redact(_outcome(call, redact))
    commit = COMMITTED.match(outcome)
    if commit and commit[1].removesuffix(" …") in shown:
        outcome = outcome[: commit.start(1)].rstrip()
    if not shown and not outcome and call.result and call.name not in _QUIET:
        return "", ""  # "TodoWrite → Todos have been modified successfully"
    return f"{agent}{name} {shown}".rstrip(), outcome


def _path(path: str) -> str:
    """Shorten a path from its start: its end names the file."""
    if len(path) <= INPUT_CHARACTERS:
        return path
    tail = path[-INPUT_CHARACTERS:]
    return f"…{tail[max(0, tail.find('/')):]}"


def _code(text: str) -> str:
    """Return `text` as inline code, whatever backticks it contains."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    if not longest:
        return f"`{text}`"
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


def _outcome(call: ToolCall, redact: Callable[[str], str]) -> str:
    if call.result is None:
        return "no result"
    is_quiet = call.name in _QUIET or call.is_recall
    if is_quiet and not call.is_error:
        return ""
    result = _TAG.sub("", printable(redact(call.result)))
    line = telling_line(result, has_failed=call.is_error, first=call.name in _AGENTS)
    if call.is_error:
        return f"{_FAILED}{line}" if line else "failed"
    return line


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


class DigestText(NamedTuple):
    """The words and file calls of a turn. A digest shows only the first `digest.MAX_TOOLS` tools."""

    words: int
    calls: list[FileCall]


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
    """Return the prompt that a heading is, or "" if its words are those of the answer."""
    match = _HEADING.match(anchors.strip(heading))
    title = match[1].strip() if match else ""
    # Earlier versions took the first line of the answer as it was.
    of_answer = (NO_TITLE, COMPACTION_TITLE, title_of("", answer), one_line(answer, TITLE_CHARACTERS))
    return "" if title in of_answer else title


def read_turn(section: str) -> DigestText:
    """Read the section of a turn, including its heading."""
    parts = read_parts(section)
    words = len(parts.prompt.split()) + len(parts.answer.split())
    calls = []
    for line in parts.tools:
        one, count = split_count(line)
        calls += [call] * count if (call := _file_call(one)) is not None else []
    return DigestText(words, calls)


class CallLine(NamedTuple):
    """A tool call as a digest shows it: the tool, its main input, and its outcome, both maybe cut."""

    name: str
    given: str
    outcome: str

    @property
    def has_failed(self) -> bool:
        """Whether the tool reported an error."""
        return self.outcome == "failed" or self.outcome.startswith(_FAILED)

    @property
    def reason(self) -> str:
        """The line that told why it failed, or ""."""
        return self.outcome.removeprefix(_FAILED) if self.outcome.startswith(_FAILED) else ""


def read_call(line: str) -> CallLine:
    """Read the line of a tool call, without the number of equal calls."""
    name, _, rest = split_count(line)[0].removeprefix("↳ ").partition(" ")
    given, _, outcome = rest.partition(" → ")
    marks = len(given) - len(given.lstrip("`"))
    is_code = 0 < 2 * marks < len(given) and given.endswith("`" * marks)
    return CallLine(name, given[marks:-marks].strip() if is_code else given, outcome)


def _file_call(line: str) -> FileCall | None:
    name, _, rest = line.removeprefix("↳ ").partition(" ")
    path, outcome, _ = rest.partition(" → ")
    if name not in FILE_TOOLS or not path or path.startswith("→ "):
        return None
    # The digest shows no outcome for a file call that succeeded.
    return FileCall(path, name not in ("Read", "LS") and not outcome)
