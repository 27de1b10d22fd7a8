"""Render a turn or a user's note as Markdown, without a model. The same turn always gives the same text.

### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->
**Did** Read deploy/gateway.yaml · Edit deploy/gateway.yaml ×2 · Bash `pytest -q` → 12 passed

**Answered** 7443, because …

The heading is the prompt. Where that does not fit or says nothing, `**Asked** …` comes first.

A note that the user had memkit write is a section of its own in the day file:

## 14:30 Note: The gateway moves to 7444 on Monday <!-- note:ab12cd34 -->
Tags: gateway, deploy
Metadata: {"ticket": "OPS-12"}
"""

from __future__ import annotations

import json
import re
import textwrap
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memkit import anchors
from memkit.agents.tools import role_of
from memkit.conversation.turn import Turn, turn_id
from memkit.conversation.values import MAX_DEPTH, redacted
from memkit.errors import MemkitError
from memkit.journal.markup import (
    FENCED,
    LEAST_GAP,
    cut_middle,
    gap,
    is_cut_of,
    one_line,
    printable,
    safe_block,
    short_id,
)
from memkit.journal.outcomes import tells_result
from memkit.journal.titles import TITLE_CHARACTERS, title_of
from memkit.journal.tool_lines import relative, tools_part
from memkit.journal.turn_parts import COMPACTION_TITLE, NO_TITLE, read_parts
from memkit.privacy.redact import MARK
from memkit.state import parse_json
from memkit.text import encodable

PROMPT_CHARACTERS = 2000
PASTE_CHARACTERS = 300
"""Of a prompt of more than `PASTE_LINES` lines and no fence: most of it is usually a log, diff, or review."""

PASTE_LINES = 12
ANSWER_CHARACTERS = 4000
REPORT_CHARACTERS, DECIDING_CHARACTERS = 320, 1000
"""Of an answer after edits, which repeats what the tool calls show; with the sentences that decide."""

NOTE_CHARACTERS = 20_000
TAG_CHARACTERS = 60
METADATA_CHARACTERS = 4000
_TAGS, _METADATA = "Tags: ", "Metadata: "
COMPACTION_CHARACTERS = 8000
_OWN_LINE = re.compile(r" {4}|\t| {0,3}(?:`{3}|~{3}|>|\||[-*+]\s|\d{1,9}[.)]\s)")
_FORGED = re.compile(r"\n\*\*(Asked|Did|Answered|Interrupted)\*\*")
"""A label inside a text. It gets other marks for bold, or another speaker's words would begin there."""

_AS_BOLD = r"\n__\1__"


_UNIT_END = re.compile(
    r"(?P<announces>^ *#{1,6} [^\n]*\n+|(?<=[:*])\s*\n+)"
    r"|(?<=[^\d][.!?…])[\"')\]]*\s+(?=[^a-z\s])|(?<=[。！？])|\n+",
    re.MULTILINE,
)
"""The end of a sentence, list item, or row. What a heading or a colon announces belongs to it."""

_REASON = re.compile(r"\b(?:decision|decided|because|instead of|never|must)\b", re.IGNORECASE)
_BOLD_OPENING = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*|__)")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_DECIDES, _BOLD, _OTHER, _REPEATED = 1, 2, 3, 4

OPENING_CHARACTERS = 40
"""Always keep the sentences that begin here: the first one may be only "Perfect!"."""

LONGEST_ANSWER = 100_000
"""No sentence of an answer is kept for its words beyond these characters."""


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
        said = _prose("**Answered**", cut_middle(redact(one.text), COMPACTION_CHARACTERS, hint), redact)
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
    roots = root, turn.cwd
    prompt, answer = (_near(redact(one), roots, redact) for one in (turn.prompt, turn.answer))
    minute = when.strftime("%H:%M")
    hint = f"`memkit transcript --turn {turn.id}`"
    is_paste = prompt.count("\n") >= PASTE_LINES and "```" not in prompt
    limit = PASTE_CHARACTERS if is_paste else PROMPT_CHARACTERS
    asked = _prose("**Asked**", cut_middle(prompt, limit, hint), redact) if prompt else ""
    did = tools_part(turn.tools, roots, redact)
    answered = "**Interrupted**" if turn.interrupted else ""
    if answer:
        done = [call for call in turn.tools if call.result and not call.is_error]
        has_edited = any(role_of(call.name) == "edit" for call in done)
        limits = (REPORT_CHARACTERS, DECIDING_CHARACTERS) if has_edited else (ANSWER_CHARACTERS,) * 2
        shown = shorten_answer(answer, *limits, "" if hint in asked else hint, did)
        answered = _prose("**Answered**", shown, redact)
    # Without a prompt, `read_parts` recognizes the title of an answer by making it again.
    said = answered.removeprefix("**Answered**") if answer else ""
    title = title_of(prompt, answer if prompt else said)
    title = redact(title) or NO_TITLE
    branch = redact(turn.branch)
    heading = f"### {minute} {title} {anchors.render(turn=turn.id, branch=branch)}"
    parts = [part for part in (did, answered) if part]
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


def shorten_answer(text: str, limit: int, most: int, hint: str, tools: str) -> str:
    """Shorten an answer to about `limit` characters, and to `most` if it decides more than that.

    Leave out whole sentences, list items, and blocks of code. Keep those that decide or give a reason, the
    first and the last one, and the first that tells a result, then bold openings, then the others from both
    ends. Sentences that name only what the lines of the `tools` show come last. Each gap has at least
    `LEAST_GAP` characters. The last one states how many are missing, with the `hint`.
    """
    if len(text) < limit + LEAST_GAP:
        return text
    ranked = []
    is_told = False
    for start, end in _units(text[:LONGEST_ANSWER]):
        is_lead = not is_told and tells_result(text[start:end])
        is_told |= is_lead
        if end - start <= most:
            is_end = is_lead or start < OPENING_CHARACTERS or end == len(text)
            rank = 0 if is_end else _rank(text[start:end], tools)
            ranked.append((rank, min(start, 2 * (len(text) - end)), start, end))
    kept, left = [(0, 0), (len(text), len(text))], len(text)
    for rank, _, start, end in sorted(ranked):
        place = bisect(kept, (start, end))
        before, after = kept[place - 1][1], kept[place][0]
        start = before if start - before < LEAST_GAP else start
        end = after if after - end < LEAST_GAP else end
        room = (most if rank <= _BOLD else limit) - (len(text) - left)
        if 0 < end - start <= room:
            kept.insert(place, (start, end))
            left -= end - start
    if not left:
        return text
    if len(text) - left < limit // 2 and all(rank != _DECIDES for rank, *_ in ranked):
        return cut_middle(text, limit, hint)  # most of it is one long block
    parts, at = [""], 0
    for start, end in kept:
        if start > at:
            parts.append("")
        parts[-1] += text[start:end]
        at = end
    parts = [textwrap.dedent(part.strip("\n")).rstrip() for part in parts]
    marks = ["[…]"] * (len(parts) - 2) + [gap(left, hint), ""]
    return "\n\n".join(one for pair in zip(parts, marks, strict=True) for one in pair if one)


def _units(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence, list item, row, and block of code: all of `text`."""
    at = 0
    for fence in [*FENCED.finditer(text), None]:
        for match in _UNIT_END.finditer(text, at, fence.start() if fence else len(text)):
            if not match["announces"] or match.end() - at > LEAST_GAP:
                yield at, match.end()
                at = match.end()
        end = fence.end() if fence else len(text)
        if at < end:
            yield at, end
            at = end


def _rank(unit: str, tools: str) -> int:
    if not FENCED.search(unit) and (_REASON.search(unit)):
        return _DECIDES
    names = _CODE_SPAN.findall(unit)
    if names and all(name in tools for name in names):
        return _REPEATED
    return _BOLD if _BOLD_OPENING.match(unit) else _OTHER


def _near(text: str, roots: Sequence[str], redact: Callable[[str], str]) -> str:
    shown = relative(text, roots)
    return text if shown == text else redact(shown)


def with_whole(section: str, prompt: str, answer: str, roots: Sequence[str] = ()) -> str:
    """Return a turn's section with its whole prompt and answer where it shows them cut, and unedited.

    Even so, they have at most `PROMPT_CHARACTERS` and `ANSWER_CHARACTERS`.
    """
    parts = read_parts(section)
    for shown, whole, limit in (
        (parts.prompt, prompt, PROMPT_CHARACTERS),
        (parts.answer, answer, ANSWER_CHARACTERS),
    ):
        whole = relative(whole, roots)
        if is_cut_of(shown, whole):
            text = _FORGED.sub(_AS_BOLD, "\n" + cut_middle(printable(whole), limit, ""))
            section = section.replace(shown, text.strip(), 1)
    return section


@dataclass(frozen=True, slots=True)
class Note:
    """A note ready for the journal, or one that it has (then `is_new` is False).

    The same text in the same minute has the same `id`. `day` is the local date (ISO). `minute` is the local
    time (`HH:MM`) that begins its heading. `section` is the Markdown from the heading on.
    """

    id: str
    day: str
    minute: str
    section: str
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class NoteText:
    """The redacted content of a note. `block` is its text, `metadata` a JSON object on one line, or ""."""

    title: str
    block: str
    tags: tuple[str, ...]
    metadata: str

    def id_at(self, day: str, minute: str) -> str:
        """Return the id of a note with this text, written on an ISO day at `HH:MM`."""
        # No tag has a newline.
        return short_id(day, minute, self.block, *self.tags, *[f"\n{self.metadata}"] * bool(self.metadata))

    def note(self, now: datetime) -> Note:
        """Return the note as it is written at a time."""
        when = local_time(now)
        day, minute = when.date().isoformat(), when.strftime("%H:%M")
        name = self.id_at(day, minute)
        return Note(name, day, minute, self.section(name, minute))

    def section(self, name: str, minute: str) -> str:
        """Return the Markdown of a note with this text, an ID, and a time (`HH:MM`)."""
        lines = [f"## {minute} Note: {self.title} {anchors.render(note=name)}"]
        if self.block != self.title:
            lines.append(self.block)
        ends = [f"{_TAGS}{', '.join(self.tags)}"] * bool(self.tags)
        ends += [f"{_METADATA}{self.metadata}"] * bool(self.metadata)
        if ends:
            lines += [""] * (self.block != self.title) + ends
        return "\n".join(lines)


def note_text(
    text: str, tags: Sequence[str], redact: Callable[[str], str], metadata: Mapping[str, Any] | None = None
) -> NoteText:
    """Return the redacted content of a note. `metadata` is any JSON object.

    Raise `MemkitError` if nothing of the text is left, or anything is too long or nested too deep.
    """
    if len(text) > NOTE_CHARACTERS:
        raise MemkitError(
            f"a note has at most {NOTE_CHARACTERS:,} characters; put the text into a Markdown file, and add "
            "that with `memkit index FILE`"
        )
    block = _safe(redact(encodable(text)), redact)
    title = redact(one_line(block, TITLE_CHARACTERS))
    if not MARK.sub("", block).strip():
        raise MemkitError("there is no text to remember")
    if block != title:
        block = _without_ends(block)
    named = [redact(one_line(redact(encodable(tag)), TAG_CHARACTERS)) for tag in tags]
    line = _metadata_line(metadata, redact) if metadata else ""
    return NoteText(title, block, tuple(dict.fromkeys(filter(None, named))), line)


def _without_ends(block: str) -> str:
    """Escape lines at the end of a note's text that `read_note` would take for tags or metadata."""
    lines = block.split("\n")
    for number in reversed(range(len(lines))):
        if not lines[number].startswith((_TAGS, _METADATA)):
            break
        lines[number] = lines[number].replace(":", "\\:", 1)
    return "\n".join(lines)


def _metadata_line(metadata: Mapping[str, Any], redact: Callable[[str], str]) -> str:
    if _is_deeper(metadata, MAX_DEPTH):
        raise MemkitError(f"the metadata of a note has at most {MAX_DEPTH} levels")
    try:
        line = json.dumps(
            redacted(dict(metadata), redact), ensure_ascii=False, sort_keys=True, allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise MemkitError(f"the metadata of a note must be a JSON object: {error}") from error
    if len(line) > METADATA_CHARACTERS:
        raise MemkitError(f"the metadata of a note has at most {METADATA_CHARACTERS:,} characters as JSON")
    # Nothing in it can end the line, or begin a comment and so an anchor.
    return printable(encodable(line)).replace("\n", " ").replace("<", "\\u003c")


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, (Mapping, list)):
        return False
    held = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deeper(one, levels - 1) for one in held)


def read_note(section: str) -> tuple[list[str], dict[str, Any]]:
    """Return the tags and the metadata of a note's section, as the user may have edited them."""
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    for line in section.rstrip().split("\n")[:0:-1]:
        if line.startswith(_METADATA) and not (metadata or tags):
            try:
                found = parse_json(line.removeprefix(_METADATA))
                json.dumps(found, allow_nan=False)  # a reader of JSON may know no NaN
            except ValueError:
                break
            metadata = found if isinstance(found, dict) else {}
        elif line.startswith(_TAGS) and not tags:
            tags = [tag for one in line.removeprefix(_TAGS).split(",") if (tag := one.strip())]
        else:
            break
    return tags, metadata


def local_time(time: datetime | None) -> datetime:
    """Return `time` in this machine's time zone. A turn without a time gets the epoch."""
    return (time or datetime.fromtimestamp(0).astimezone()).astimezone()


def _prose(label: str, text: str, redact: Callable[[str], str]) -> str:
    text = text.lstrip("\r\n")
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
