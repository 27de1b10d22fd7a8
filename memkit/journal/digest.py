"""Render a turn or a user's note as Markdown, without a model. The same turn always gives the same text.

### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->
**Asked** Which port does the staging gateway use?
**Did** Read deploy/gateway.yaml · Edit deploy/gateway.yaml · Bash `pytest -q` → 12 passed
**Answered** 7443, because …

A note that the user had memkit write is a section of its own in the day file:

## 14:30 Note: The gateway moves to 7444 on Monday <!-- note:ab12cd34 -->
The gateway moves to 7444 on Monday.

Tags: gateway, deploy
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memkit import anchors
from memkit.claude_code.turn import ToolCall, Turn
from memkit.errors import MemkitError
from memkit.journal.markup import cut_middle, one_line, printable, safe_block

PROMPT_CHARACTERS = 2000
ANSWER_CHARACTERS = 4000
MAX_TOOLS = 30
TITLE_CHARACTERS = 80
INPUT_CHARACTERS = 120
OUTCOME_CHARACTERS = 100
NOTE_CHARACTERS = 20_000
TAG_CHARACTERS = 60
INLINE_CHARACTERS = 200
"""Tool calls longer than this together become a list."""

_MAIN_INPUT = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "skill",
    "description", "prompt", "subject", "name",
)  # fmt: skip
FILE_TOOLS = frozenset({"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "LS"})
"""Tools whose main input is a path, shown without backticks."""

_QUIET = FILE_TOOLS | {"Glob", "Grep"}
_AGENTS = frozenset({"Agent", "Task"})
_BACKTICKS = re.compile(r"`+")
_OWN_LINE = re.compile(r" {4}|\t| {0,3}(?:`{3}|~{3}|>|\||[-*+]\s|\d{1,9}[.)]\s)")
_NO_NAME = re.compile(r"[^\w.:/-]+|^[\W_]+")
_TAG = re.compile(
    r"</?tool_use_error>|<tools-used-before-summary>.*?</tools-used-before-summary>"
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


def make_digest(turn: Turn, root: str, redact: Callable[[str], str]) -> Digest:
    """Return the digest of `turn`.

    All text passes through `redact` first, and again after each change to it: folding spaces, removing tags,
    or cutting can join what was separate. Paths below `root` or the turn's directory are shown as relative.
    """
    when = local_time(turn.time)
    prompt, answer = redact(turn.prompt), redact(turn.answer)
    title = redact(one_line(prompt or answer, TITLE_CHARACTERS)) or "(no text)"
    minute = when.strftime("%H:%M")
    parts = []
    if prompt:
        parts.append(_prose("**Asked**", prompt, PROMPT_CHARACTERS, turn.id, redact))
    if turn.tools:
        parts.append(f"**Did**{_tools(turn.tools, (root, turn.cwd), redact)}")
    if answer:
        parts.append(_prose("**Answered**", answer, ANSWER_CHARACTERS, turn.id, redact))
    elif turn.interrupted:
        parts.append("**Interrupted**")
    between = "\n\n" if any("\n" in part for part in parts) else "\n"
    branch = redact(turn.branch)
    heading = f"### {minute} {title} {anchors.render(turn=turn.id, branch=branch)}"
    return Digest(
        turn=turn.id,
        session=anchors.safe(turn.session),
        branch=anchors.safe(branch),
        day=when.date().isoformat(),
        minute=minute,
        title=title,
        section=f"{heading}\n{between.join(parts)}".rstrip(),
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
    key = "\0".join([day, minute, block, *named])
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    lines = [f"## {minute} Note: {title} {anchors.render(note=name)}", block]
    if named:
        lines += ["", f"Tags: {', '.join(named)}"]
    return Note(name, day, minute, "\n".join(lines))


def local_time(time: datetime | None) -> datetime:
    """Return `time` in this machine's time zone. A turn without a time gets the epoch."""
    return (time or datetime.fromtimestamp(0).astimezone()).astimezone()


def _prose(
    label: str, text: str, limit: int, turn: str, redact: Callable[[str], str]
) -> str:
    text = cut_middle(text, limit, f"`memkit transcript --turn {turn}`").lstrip("\r\n")
    # A fence, list, table, quote, or indented code must begin a line, so it cannot follow the label.
    if _OWN_LINE.match(text):
        return f"{label}\n\n{_safe(text, redact)}"
    # Escaped together with the label, which changes how the line parses.
    return _safe(f"{label} {text}", redact)


def _safe(text: str, redact: Callable[[str], str]) -> str:
    safe = safe_block(text)  # escaping can join what was separate
    redacted = redact(safe)
    return safe if redacted == safe else safe_block(redacted)


def _tools(calls: list[ToolCall], roots: Sequence[str], redact: Callable[[str], str]) -> str:
    """Return one line per tool call. Calls by subagents count, but only the first `MAX_TOOLS` are shown."""
    lines = [_tool_line(call, roots, redact) for call in calls[:MAX_TOOLS]]
    if len(calls) > MAX_TOOLS:
        lines.append(f"… and {len(calls) - MAX_TOOLS} more")
    inline = " · ".join(lines)
    if len(inline) <= INLINE_CHARACTERS:
        return f" {inline}"
    return "\n\n" + "\n".join(f"- {line}" for line in lines)


def _tool_line(call: ToolCall, roots: Sequence[str], redact: Callable[[str], str]) -> str:
    values = (call.input.get(name) for name in _MAIN_INPUT)
    given = next((value for value in values if isinstance(value, str) and value.strip()), "")
    for root in roots:
        if root and given.startswith(root + os.sep):
            given = os.path.relpath(given, root)
    shown = redact(one_line(redact(given), INPUT_CHARACTERS))
    if shown and call.name not in FILE_TOOLS:
        shown = _code(shown)
    agent = "↳ " if call.by_agent else ""
    name = _NO_NAME.sub("_", redact(call.name))[:60] or "tool"
    line = f"{agent}{name} {shown}".rstrip()
    outcome = redact(_outcome(call, redact))
    return f"{line} → {outcome}" if outcome else line


def _code(text: str) -> str:
    """Return `text` as inline code, whatever backticks it contains."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    if not longest:
        return f"`{text}`"
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"


def _outcome(call: ToolCall, redact: Callable[[str], str]) -> str:
    """Return the line of a result that tells how it went: the first of an error or report, otherwise the
    last.
    """
    if call.result is None:
        return "no result"
    lines = [
        line
        for line in _TAG.sub("", printable(redact(call.result))).split("\n")
        if any(letter.isalnum() for letter in line)
    ]
    if call.is_error:
        return f"failed: {one_line(lines[0], OUTCOME_CHARACTERS)}" if lines else "failed"
    if call.name in _QUIET or call.is_recall or not lines:
        return ""
    return one_line(lines[0 if call.name in _AGENTS else -1], OUTCOME_CHARACTERS)


_SAID = ("\n**Asked**", "\n**Answered**", "\n**Interrupted**")
_DID = re.compile(r"\n\*\*Did\*\*(?P<inline> .*)?(?:\n(?P<list>(?:\n- .*)+))?")


class FileCall(NamedTuple):
    """A tool call on a file: the path as the digest shows it, and whether the call edited the file."""

    path: str
    is_edit: bool


class DigestText(NamedTuple):
    """The words and file calls of a turn. A digest shows only the first `digest.MAX_TOOLS` tools."""

    words: int
    calls: list[FileCall]


def read_turn(section: str) -> DigestText:
    """Read the section of a turn, including its heading."""
    _, newline, text = section.partition("\n")
    text = newline + text
    did = _DID.search(text)
    said = text if did is None else text[: did.start()] + text[did.end() :]
    words = len(said.split()) - sum(map(said.count, _SAID))
    if did is None:
        return DigestText(words, [])
    inline = (did["inline"] or "").strip()
    lines = inline.split(" · ") if inline else (did["list"] or "").split("\n- ")
    return DigestText(words, [call for line in lines if (call := _file_call(line)) is not None])


def _file_call(line: str) -> FileCall | None:
    name, _, rest = line.removeprefix("↳ ").partition(" ")
    path, outcome, _ = rest.partition(" → ")
    if name not in FILE_TOOLS or not path or path.startswith("→ "):
        return None
    # The digest shows no outcome for a file call that succeeded.
    return FileCall(path, name not in ("Read", "LS") and not outcome)
