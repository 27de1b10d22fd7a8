"""A turn as the archive keeps it: what was said and done, redacted, and long pieces cut in their middle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from memkit.claude_code.exchange import Message, messages_of, redacted_again
from memkit.claude_code.transcript import TranscriptEntry
from memkit.claude_code.turn import Turn

PIECE_CHARACTERS = 16_000
"""Kept of one text, of one string in a tool's input and of one result: both ends of a longer one."""

REDACTED_CHARACTERS = 1_000_000
"""Redacted of one piece (about a second); of a longer one only the start is kept."""


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """A turn as it is kept: its names, when and where it was, and its messages. All text is redacted.

    `compacted` says that the client summed the conversation up during it; such a turn is kept without
    messages if it is no memory. `commit` is "" for a turn that was imported, or captured by a memkit that
    did not keep it.
    """

    id: str
    messages: tuple[Message, ...]
    prompt_id: str = ""
    uuid: str = ""
    time: datetime | None = None
    finished: datetime | None = None
    project: str = ""
    cwd: str = ""
    branch: str = ""
    commit: str = ""
    compacted: bool = False


def make_archived_turn(
    turn: Turn,
    root: str,
    transcript: Path,
    redact: Callable[[str], str],
    hide: Callable[[TranscriptEntry], TranscriptEntry] | None = None,
) -> ArchivedTurn:
    """`turn`, which was read from `transcript` and belongs to the project at `root`, for the archive.

    `hide` is as for `Transcript`. Raises `TranscriptError`.
    """
    apply = bounded(redact)
    return ArchivedTurn(
        id=turn.id,
        messages=tuple(messages_of(turn, transcript, apply, hide)) if turn.is_memory else (),
        prompt_id=turn.prompt_id,
        uuid=turn.uuid,
        time=turn.time,
        finished=turn.finished,
        project=root,
        cwd=apply(turn.cwd),
        branch=apply(turn.branch),
        commit=turn.commit,
        compacted=turn.is_compacted,
    )


def redact_again(turn: ArchivedTurn, redact: Callable[[str], str]) -> ArchivedTurn:
    """`turn` as today's rules and patterns would have it."""
    return replace(
        turn,
        messages=tuple(redacted_again(message, redact) for message in turn.messages),
        cwd=redact(turn.cwd),
        branch=redact(turn.branch),
    )


def bounded(redact: Callable[[str], str]) -> Callable[[str], str]:
    """`redact`, and then the two ends of what is longer than `PIECE_CHARACTERS`.

    Redaction comes first, for it would not know the halves of a key that was cut in two.
    """

    def apply(text: str) -> str:
        if len(text) > REDACTED_CHARACTERS:
            # What stands at the cut may be half of a key.
            start = redact(re.sub(r"\S{1,1000}\Z", "", text[:REDACTED_CHARACTERS]))
            left = len(text) - min(len(start), PIECE_CHARACTERS)
            return f"{start[:PIECE_CHARACTERS]}\n{_gap(left)}"
        text = redact(text)
        left = len(text) - PIECE_CHARACTERS
        if left <= 0:
            return text
        half = PIECE_CHARACTERS // 2
        return f"{text[:half]}\n{_gap(left)}\n{text[-half:]}"

    return apply


def _gap(characters: int) -> str:
    return f"… ({characters:,} characters are not archived) …"
