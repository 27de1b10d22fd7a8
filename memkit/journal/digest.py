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

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memkit import anchors
from memkit.claude_code.turn import Turn, turn_id
from memkit.errors import MemkitError
from memkit.journal.markup import cut_middle, one_line, safe_block, short_id
from memkit.journal.titles import TITLE_CHARACTERS, title_of
from memkit.journal.tool_lines import EDITORS, tools_part
from memkit.journal.turn_parts import COMPACTION_TITLE, NO_TITLE, read_parts

PROMPT_CHARACTERS = 2000
PASTE_CHARACTERS = 300
"""Of a prompt of more than `PASTE_LINES` lines and no fence: most of it is usually a log, diff, or review."""

PASTE_LINES = 12
ANSWER_CHARACTERS = 4000
REPORT_CHARACTERS = 320
"""Of an answer after edits: it reports what the tool calls and the files show."""

NOTE_CHARACTERS = 20_000
TAG_CHARACTERS = 60
COMPACTION_CHARACTERS = 8000
_OWN_LINE = re.compile(r" {4}|\t| {0,3}(?:`{3}|~{3}|>|\||[-*+]\s|\d{1,9}[.)]\s)")
_FORGED = re.compile(r"\n\*\*(Asked|Did|Answered|Interrupted)\*\*")
"""A label inside a text. It gets other marks for bold, or another speaker's words would begin there."""

_AS_BOLD = r"\n__\1__"


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
    parts = [part for part in (tools_part(turn.tools, (root, turn.cwd), redact), answered) if part]
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
