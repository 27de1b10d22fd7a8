"""A turn as the archive keeps it: redacted, with long pieces cut in the middle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from memkit.agents.exchange import messages_of
from memkit.conversation.entry import Hide
from memkit.conversation.turn import INTERRUPTED, Message, Turn
from memkit.conversation.values import redacted_again

PIECE_CHARACTERS = 16_000
"""The most characters kept of a text, a tool's string, or a result. A longer one keeps both ends."""

REDACTED_CHARACTERS = 1_000_000
"""The most characters of one piece to redact (about a second). A longer piece keeps only its start."""


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """A turn in the archive: IDs, times, places, and redacted messages.

    `compacted` means that the agent compacted the conversation during the turn. Such a turn is kept without
    messages if it is not worth remembering. `commit` is "" for imported turns, and `machine` for the turns of
    this machine.
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
    machine: str = ""

    @property
    def words(self) -> tuple[str, str]:
        """The prompt and the answer: text between tool calls is narration, the last text is the answer."""
        prompt, answer, has_worked = "", "", False
        for one in self.messages:
            if one.role == "user" and INTERRUPTED.match(one.text):
                continue
            if one.text and one.role == "user":
                prompt = f"{prompt}\n\n{one.text}".lstrip()
            elif one.text:
                answer = f"{answer}\n\n{one.text}" if answer and not has_worked else one.text
                has_worked = False
            has_worked = has_worked or bool(one.tools)
        return prompt, answer


def make_archived_turn(
    turn: Turn, root: str, transcript: Path, redact: Callable[[str], str], hide: Hide | None = None
) -> ArchivedTurn:
    """Return `turn`, read from `transcript`, for the archive of the project at `root`.

    `hide` is as for `SessionFile`. Raise `TranscriptError`.
    """
    apply = bounded(redact)
    messages = tuple(messages_of(turn, transcript, apply, hide)) if turn.is_memory else ()
    return ArchivedTurn(
        turn.id, messages, turn.prompt_id, turn.uuid, turn.time, turn.finished, project=root,
        cwd=apply(turn.cwd), branch=apply(turn.branch), commit=turn.commit, compacted=turn.is_compacted,
    )  # fmt: skip


def redact_again(turn: ArchivedTurn, redact: Callable[[str], str]) -> ArchivedTurn:
    """Redact `turn` by today's rules and patterns."""
    messages = tuple(redacted_again(message, redact) for message in turn.messages)
    return replace(turn, messages=messages, cwd=redact(turn.cwd), branch=redact(turn.branch))


def bounded(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that redacts, then keeps the two ends of text longer than `PIECE_CHARACTERS`.

    Redaction comes first: it would not recognize the halves of a key.
    """

    def apply(text: str) -> str:
        if len(text) > REDACTED_CHARACTERS:
            # The word at the cut may be half of a key.
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
