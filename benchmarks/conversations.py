"""Read conversations with questions in the format of LoCoMo or LongMemEval, and play them to memkit."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from memkit.conversation.turn import turn_id
from memkit.journal.journal import Journal
from memkit.summarize.bullets import MAX_TURNS, Bullet

_EVIDENCE = re.compile(r"D(\d+):0*(\d+)")
_DATE_FORMATS = (
    "%I:%M %p on %d %B, %Y", "%d %B, %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d", "%Y/%m/%d (%a) %H:%M",
)  # fmt: skip
_NAMESPACE = uuid.UUID("5f0c0e0a-7c0f-4d57-9c64-0d1b3f6a2b11")

LONGMEMEVAL_S = "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442"
"""The SHA-256 of LongMemEval-S (Wu et al., ICLR 2025). Figures of another file do not compare."""

LONGMEMEVAL_KINDS = (
    "single-session-user", "single-session-assistant", "single-session-preference", "multi-session",
    "temporal-reasoning", "knowledge-update",
)  # fmt: skip
"""The kinds of its questions; the category of a question is its place here, from 1."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message. `id` is `D<session>:<number>`."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Observation:
    """A sentence about a session, and the ids of the utterances that prove it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Session:
    """One dated session of a conversation."""

    number: int
    time: datetime
    utterances: list[Utterance]
    observations: list[Observation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the utterances that hold its answer, and the data set's number for its kind."""

    text: str
    evidence: frozenset[str]
    category: int


@dataclass(slots=True)
class Conversation:
    """One conversation of a data set."""

    name: str
    sessions: list[Session]
    questions: list[Question] = field(default_factory=list)

    @property
    def person(self) -> str:
        """The speaker who becomes the user, by default the first; the other one becomes the assistant."""
        first = [session.utterances[0].speaker for session in self.sessions]
        return "user" if "user" in first else first[0]

    @property
    def utterances(self) -> dict[str, Utterance]:
        return {one.id: one for session in self.sessions for one in session.utterances}


def load(path: Path) -> list[Conversation]:
    """Read all conversations of a file. Questions without evidence are left out.

    Raise `ValueError` for a file in the format of LongMemEval that is not LongMemEval-S.
    """
    data = path.read_bytes()
    values = json.loads(data)
    if values and "haystack_sessions" in values[0]:
        if (found := hashlib.sha256(data).hexdigest()) != LONGMEMEVAL_S:
            raise ValueError(f"{path} is not LongMemEval-S: its SHA-256 is {found}")
        return [_haystack(value) for value in values if not value["question_id"].endswith("_abs")]
    return [_conversation(value, number) for number, value in enumerate(values)]


def _haystack(value: dict[str, Any]) -> Conversation:
    """Return a question of LongMemEval with the sessions to search; their order is that of time.

    The evidence is the messages that hold the answer, or all messages of its sessions if none is named.
    """
    dated = [
        (parse_date(str(when), number), name, said)
        for number, (when, name, said) in enumerate(
            zip(
                value["haystack_dates"],
                value["haystack_session_ids"],
                value["haystack_sessions"],
                strict=True,
            )
        )
    ]
    sessions, named, all_of = [], set(), set()
    for index, (when, name, said) in enumerate(sorted(dated, key=lambda one: one[0]), start=1):
        messages = [
            Utterance(f"D{index}:{number}", str(one["role"]), str(one["content"]))
            for number, one in enumerate(said, start=1)
        ]
        if messages:
            sessions.append(Session(index, when, messages))
        if name in value["answer_session_ids"]:
            all_of.update(one.id for one in messages)
            named.update(one.id for one, raw in zip(messages, said, strict=True) if raw.get("has_answer"))
    evidence = frozenset(named or all_of)
    category = LONGMEMEVAL_KINDS.index(value["question_type"]) + 1
    question = Question(str(value["question"]), evidence, category)
    return Conversation(value["question_id"], sessions, [question] if evidence else [])


def _conversation(value: dict[str, Any], number: int) -> Conversation:
    raw = value["conversation"]
    sessions = []
    for key in raw:
        match = re.fullmatch(r"session_(\d+)", key)
        if match and isinstance(raw[key], list):
            index = int(match[1])
            when = parse_date(str(raw.get(f"session_{index}_date_time", "")), index)
            said = [_utterance(one) for one in raw[key]]
            noted = value.get("observation", {}).get(f"session_{index}_observation", {})
            sessions.append(Session(index, when, said, _observations(noted)))
    conversation = Conversation(
        str(value.get("sample_id", number)), sorted(sessions, key=lambda one: one.number)
    )
    known = conversation.utterances
    for one in value["qa"]:
        found = _evidence(one.get("evidence", "")) & known.keys()
        if found:
            conversation.questions.append(Question(one["question"], found, int(one["category"])))
    return conversation


def _evidence(value: Any) -> frozenset[str]:
    """Return the ids of utterances in a string or list of any form."""
    return frozenset(f"D{a}:{int(b)}" for a, b in _EVIDENCE.findall(str(value)))


def _observations(by_speaker: dict[str, list[Any]]) -> list[Observation]:
    pairs = [pair for said in by_speaker.values() for pair in said]
    return [Observation(str(text), _evidence(proof)) for text, proof in pairs]


def _utterance(value: dict[str, Any]) -> Utterance:
    text = str(value.get("text", ""))
    if value.get("blip_caption"):
        text = f"{text} [image: {value['blip_caption']}]".strip()
    match = _EVIDENCE.fullmatch(value["dia_id"])
    name = f"D{match[1]}:{int(match[2])}" if match else str(value["dia_id"])
    return Utterance(name, str(value["speaker"]), text)


def parse_date(text: str, number: int) -> datetime:
    """Return the date of a session. Sessions without a date are one day apart from 2024-01-01."""
    for pattern in _DATE_FORMATS:
        try:
            return datetime.strptime(text.strip(), pattern).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    return datetime(2024, 1, 1, 9, tzinfo=timezone.utc) + timedelta(days=number)


def session_id(conversation: Conversation, session: Session) -> str:
    """Return the ID that a session gets as a Claude Code session."""
    return str(uuid.uuid5(_NAMESPACE, f"{conversation.name}/{session.number}"))


def _entry_id(conversation: Conversation, utterance: Utterance) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{conversation.name}/{utterance.id}"))


def write_bullets(conversation: Conversation, journal: Journal) -> dict[str, frozenset[str]]:
    """Write the observations on a session above its turns, as the bullets of a summary.

    Return the utterances that prove each bullet, by the id of its citation.
    """
    proofs = {}
    for day in journal.days():
        content = journal.day(day)
        for session in conversation.sessions:
            turns = dict(_turns(conversation, session))
            written = {turn for turn in turns.values() if content.find_turn(turn)}
            bullets = []
            for one in session.observations:
                named = tuple(turns[name] for name in sorted(one.evidence & turns.keys()))
                own = tuple(turn for turn in dict.fromkeys(named) if turn in written)[:MAX_TURNS]
                if own:
                    bullets.append(
                        Bullet(text=one.text, kind="finding", turns=own, is_verified=True)
                    )
                    proofs[bullets[-1].grip] = one.evidence
            if bullets:
                journal.summarize(day, list(written), [bullet.line for bullet in bullets])
    return proofs


def _turns(conversation: Conversation, session: Session) -> Iterator[tuple[str, str]]:
    """Yield each utterance of a session with the turn that it becomes a part of."""
    turn = ""
    for one in session.utterances:
        if one.speaker == conversation.person:
            turn = turn_id("", "", _entry_id(conversation, one), "")
        if turn:
            yield one.id, turn


def write_transcripts(conversation: Conversation, directory: Path) -> list[Path]:
    """Write each session as a transcript: the first speaker is the user, the other one the assistant."""
    paths = []
    for session in conversation.sessions:
        name = session_id(conversation, session)
        path = directory / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for entry in _entries(conversation, session, name):
                file.write(json.dumps(entry) + "\n")
        paths.append(path)
    return paths


def _entries(conversation: Conversation, session: Session, name: str) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(session.utterances):
        when = session.time + timedelta(seconds=20 * number)
        is_person = one.speaker == conversation.person
        # Claude Code has no names, so the other speaker's name is part of the text.
        text = f"{one.speaker}: {one.text}"
        content: Any = text if is_person else [{"type": "text", "text": text}]
        yield {
            "type": "user" if is_person else "assistant",
            "uuid": _entry_id(conversation, one),
            "sessionId": name,
            "timestamp": when.isoformat().replace("+00:00", "Z"),
            "isSidechain": False,
            "message": {"role": "user" if is_person else "assistant", "content": content},
        }
