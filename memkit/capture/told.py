"""What a hook event says of the turn it speaks of, and which of a transcript's turns that is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memkit.capture.sessions import Session
from memkit.claude_code.transcript import Transcript
from memkit.claude_code.turn import Turn, read_turns, turn_id


@dataclass(frozen=True, slots=True)
class Told:
    """An event's `record`, with the turn's final `message` as far as it tells one, redacted by `redact`."""

    record: dict[str, Any]
    message: str
    redact: Callable[[str], str]

    def find(self, session: Session, turns: Sequence[Turn]) -> Turn | None:
        """The turn of `turns` it speaks of: by prompt id, else by its message, else the one that lacks it."""
        prompt_id = self.record.get("prompt_id")
        if prompt_id and any(turn.prompt_id for turn in turns):
            # The last one: a bare `/clear` before the prompt can have the same id.
            return next(
                (
                    turn
                    for turn in reversed(turns)
                    if prompt_id in (turn.prompt_id, *turn.other_prompt_ids)
                    or (turn.lost_parent and self.message and self.is_shown_by(turn))
                ),
                None,
            )
        if prompt_id and self.turn_id in session.recent:
            return None  # what follows it, `/exit` for one, is not its turn
        said = " ".join(self.message.split())
        for turn in reversed(turns):
            if said and said == " ".join(self.redact(turn.answer).split()):
                return turn
        for turn in reversed(turns):
            if self.is_shown_by(turn):
                return turn
        if turns and (turns[-1].worked_since or not turns[-1].answer):
            return turns[-1]
        return None

    def was_read(self, session: Session, turns: Sequence[Turn]) -> bool:
        """Whether its turn was read before it came, and another followed: that turn is complete."""
        if not turns:
            return False
        if self.turn_id in session.recent:
            return True
        if not self.message or not session.offset or any(turn.prompt_id for turn in turns):
            return False
        # A transcript from before there were prompt ids: the message must tell.
        earlier = read_turns(Transcript(Path(session.transcript)))
        return any(turn.end <= session.offset and self.is_shown_by(turn) for turn in earlier)

    def is_shown_by(self, turn: Turn) -> bool:
        """Whether the turn's answer holds the message."""
        return shows(turn, self.message, self.redact)

    def as_turn(self, session: Session) -> Turn:
        """A turn the transcript never showed, from the events alone."""
        prompt_id = str(self.record.get("prompt_id", ""))
        when = datetime.fromtimestamp(float(self.record["time"]), timezone.utc)
        return Turn(
            id=self.turn_id,
            session=str(self.record["session"]),
            prompt=session.prompts.get(prompt_id, ""),
            time=when,
            start=session.offset,
            end=session.size,
            prompt_id=prompt_id,
            cwd=str(self.record.get("cwd", "")),
            branch=str(self.record.get("branch", "")),
            commit=str(self.record.get("commit", "")),
            answer=self.message,
            is_told=True,
        )

    @property
    def turn_id(self) -> str:
        """The id of its turn, as the transcript gives it if the event names the prompt."""
        said = hashlib.sha256(f"{self.record['time']}\0{self.message}".encode()).hexdigest()
        prompt_id = str(self.record.get("prompt_id", ""))
        return turn_id(str(self.record["session"]), prompt_id, "", said)


def shows(turn: Turn, message: str, redact: Callable[[str], str]) -> bool:
    """Whether the turn's answer holds `message`, which is redacted, so the answer is compared redacted."""
    return " ".join(message.split()) in " ".join(redact(turn.answer).split())
