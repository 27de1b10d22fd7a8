"""A note that the user had memkit write: a section of its own in the day file.

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
    if len(text) > MAX_CHARACTERS:
        raise MemkitError(
            f"a note has at most {MAX_CHARACTERS:,} characters; put this into a markdown file of its own "
            "and `memkit index` that"
        )
    block = safe_block(redact(text))
    redacted = redact(block)  # escaping can join what was separate
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
