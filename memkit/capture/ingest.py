"""Capture sessions of other agents, one message at a time.

A user's message begins a turn, and later messages continue it. The archive holds the messages of a turn so
far, so no other file is needed. The turn then follows the usual path: exclusion, redaction, journal, archive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from memkit import anchors
from memkit.agents.omitted import asks_memory
from memkit.agents.registry import REPORTED
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn, bounded
from memkit.capture.capture import Capture
from memkit.conversation.turn import INTERRUPTED, Message, ToolCall, ToolUse, Turn, excerpt, turn_id
from memkit.conversation.values import clean
from memkit.errors import MemkitError
from memkit.paths import Home
from memkit.privacy.redact import leaves_open, without_private
from memkit.projects.project import Project
from memkit.settings.load import Settings

ROLES = ("user", "assistant", "tool")

MOST_MESSAGES = 500
"""Of a turn. Each message writes its turn again, so the next one begins another turn."""

EARLY = timedelta(days=1)
"""The most that the clock of another machine may be ahead. A later day would stay the newest one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class Event:
    """A message of another agent's session.

    `role` is one of `ROLES`. The text of the role `tool` is the result of the tool that `tool` names.
    """

    session: str
    role: str
    text: str
    time: datetime | None = None
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of `ingest`: the ids of the message's session and turn.

    `is_new` is False if the message was already stored. `is_remembered` is False if its turn is private,
    skipped, excluded, or forgotten.
    """

    session: str
    turn: str
    is_new: bool
    is_remembered: bool = True


def ingest(home: Home, project: Project, settings: Settings, event: Event) -> Ingested:
    """Remember a message. The caller holds the capture lock. Raise `MemkitError`."""
    time = (event.time or datetime.now(timezone.utc)).astimezone(timezone.utc)
    capture = Capture(home, settings)
    _check(event, capture, time)
    session = capture.sessions.load(f"{REPORTED}{event.session}")
    if session.project and Project.at_root(session.project, home).root != project.root:
        raise MemkitError(f"the session {event.session} is one of another project; give it another name")
    # The text may be new to Claude Code's provider, so only a provider that the user chose may summarize it.
    session.project, session.elsewhere = project.root, True
    known = {turn.id: turn for turn in Archive(home).turns(anchors.safe(session.id))}
    message = _message(event, time, capture)
    if event.role == "user":
        name = turn_id(session.id, "", "", f"{time}\0{message.text}")
        if name in known or name in session.recent:
            return Ingested(session.id, name, is_new=False, is_remembered=name in known)
        turn = turn_of(session.id, ArchivedTurn(name, (message,), time=time))
        turn.is_private = leaves_open(event.text)  # the message has no private parts any more
    else:
        for one in known.values():
            if any(replace(message, turn=said.turn) == said for said in one.messages):
                return Ingested(session.id, one.id, is_new=False)
        if session.recent and session.recent[-1] not in known:
            # An answer to a message that was left out may repeat it.
            return Ingested(session.id, session.recent[-1], is_new=False, is_remembered=False)
        before = known[session.recent[-1]] if session.recent else None
        if before is None or len(before.messages) >= MOST_MESSAGES:
            name = turn_id(session.id, "", "", f"{time}\0{message.text}\0{len(known)}")
            grown = ArchivedTurn(name, (message,), time=time)
        else:
            messages = sorted([*before.messages, message], key=lambda one: one.time or time)
            grown = ArchivedTurn(before.id, tuple(messages), time=before.time)
        turn = turn_of(session.id, grown)
    outcome = capture.take(turn, session, project)
    return Ingested(session.id, turn.id, is_new=bool(outcome.turns), is_remembered=bool(outcome.turns))


def _check(event: Event, capture: Capture, time: datetime) -> None:
    # Different names must stay different in the archive. The name is written into the Markdown.
    if not _NAME.fullmatch(event.session) or anchors.safe(event.session) != event.session:
        raise MemkitError(
            "the name of a session has 1 to 80 letters, digits, dots, underscores, and single hyphens"
        )
    if capture.redact(event.session) != event.session:
        raise MemkitError("the name of the session looks like a secret; choose another one")
    if time > datetime.now(timezone.utc) + EARLY:
        raise MemkitError("the time of the message is in the future")
    if event.role not in ROLES:
        raise MemkitError(f"there is no role {event.role!r}; there are {', '.join(ROLES)}")
    if bool(event.tool) != (event.role == "tool"):
        raise MemkitError("name the tool in `tool` if the role is tool, and only then")
    if not clean(event.text).strip():
        raise MemkitError("there is no text to remember")
    if not capture.settings.archive.enabled:
        raise MemkitError(
            "archive.enabled is false, and a session that comes message by message is put together there; "
            "you can turn it on with `memkit config set archive.enabled true`"
        )


def _message(event: Event, time: datetime, capture: Capture) -> Message:
    apply = bounded(capture.redact)
    said = clean(event.text)
    if event.role == "tool":
        return Message("tool", time, "", (ToolUse(apply(clean(event.tool)), result=apply(said)),), "")
    return Message(event.role, time, apply(without_private(said)), (), "")


def turn_of(session: str, held: ArchivedTurn) -> Turn:
    """Return an archived turn as if it had been read from a transcript."""
    messages = tuple(replace(one, turn=held.id) for one in held.messages)
    turn = Turn(
        held.id, session, "", held.time, 0, 0, held.prompt_id, held.uuid, held.cwd, held.branch, held.commit,
        is_compacted=held.compacted, messages=messages,
    )  # fmt: skip
    for one in messages:
        turn.finished = one.time or turn.finished
        _add_calls(turn.tools, one)
        turn.worked_since = bool(one.tools)
        turn.interrupted |= one.role == "user" and bool(INTERRUPTED.match(one.text))
    turn.prompt, turn.answer = held.words
    turn.finished = held.finished or turn.finished
    return turn


def _add_calls(calls: list[ToolCall], message: Message) -> None:
    for one in message.tools:
        begun = (call for call in calls if call.name == one.name and call.result is None)
        call = None if one.result is None else next(begun, None)
        if call is None:
            call = ToolCall(one.name, one.input, is_recall=asks_memory(one.name, one.input))
            calls.append(call)
        if one.result is not None:
            call.result, call.is_error = excerpt(one.result), one.is_error
