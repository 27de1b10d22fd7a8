"""A note that somebody had memkit write: a section of its own in the day file.

    ## 14:30 Note: The gateway moves to 7444 on Monday <!-- note:ab12cd34 -->
    The gateway moves to 7444 on Monday.

    Tags: gateway, deploy
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memkit import anchors
from memkit.errors import MemkitError
from memkit.journal.digest import TITLE_CHARACTERS, local_time
from memkit.journal.markup import one_line, safe_block

MAX_CHARACTERS = 20_000
MAX_TAG_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Note:
    """A note ready for the journal.

    `id` is the same for the same text in the same minute; `day` is the local date (ISO), `minute` the local
    time (`HH:MM`) that begins its heading, `section` the markdown from the heading on.
    """

    id: str
    day: str
    minute: str
    section: str


def make_note(
    text: str, tags: Sequence[str], now: datetime, redact: Callable[[str], str]
) -> Note:
    """A note of `text`, which passes `redact` first. Raises `MemkitError` if there is nothing to write."""
    if len(text) > MAX_CHARACTERS:
        raise MemkitError(
            f"a note has at most {MAX_CHARACTERS:,} characters; put this into a markdown file of its own "
            "and `memkit index` that"
        )
    block = safe_block(redact(text))
    redacted = redact(block)  # making it safe can join what was apart
    block = block if redacted == block else safe_block(redacted)
    title = redact(one_line(block, TITLE_CHARACTERS))
    if not title:
        raise MemkitError("there is no text to remember")
    named = [redact(one_line(redact(tag), MAX_TAG_CHARACTERS)) for tag in tags]
    named = list(dict.fromkeys(filter(None, named)))
    when = local_time(now)
    day, minute = when.date().isoformat(), when.strftime("%H:%M")
    key = "\0".join([day, minute, block, *named])
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    lines = [f"## {minute} Note: {title} {anchors.render(note=name)}", block]
    if named:
        lines += ["", f"Tags: {', '.join(named)}"]
    return Note(name, day, minute, "\n".join(lines))
