"""Read turns with claims about them: true bullets and lies, written by hand.

The files are in `benchmarks/claims/`. `fit.txt` is for choosing the rules and limits of a check, `test.txt`
only for measuring it: do not read it while you work on the check. `sessions.txt` has longer sessions for the
evaluation of models.

    == topic
    Asked: a prompt
    Did: Bash `npm test` → failed: 3 failing · Edit src/a.ts
    Answered: an answer; " / " stands for a line break
    Paused: the minutes before the next turn (only in sessions.txt)
    + a true bullet
    ~ the same in other words (only in sessions.txt)
    - kind: a lie
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from memkit.conversation.turn import ToolCall, Turn
from memkit.journal.digest import make_digest

DIRECTORY = Path(__file__).resolve().parent / "claims"

KINDS = (
    "number", "name", "negation", "outcome", "swap", "cause", "time", "attribution", "fabrication", "order",
)  # fmt: skip
"""The kinds of lies. `time` is about before and after; `order` is a bullet that tells an assistant what to
do.
"""

FIRST = datetime(2026, 3, 16, 9, 0, tzinfo=timezone.utc)
MINUTES_PER_TURN = 4

_FAILED = "failed: "
_TOOL = re.compile(r"(?P<name>\w+) (?P<input>.*?)(?: → (?P<result>.*))?")
_INPUTS = {"Bash": "command", "Grep": "pattern", "Glob": "pattern", "WebFetch": "url"}


@dataclass(slots=True)
class Group:
    """Turns with true bullets, the same bullets in other words, and lies with their kinds."""

    topic: str
    turns: list[Turn] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    reworded: list[str] = field(default_factory=list)
    lies: list[tuple[str, str]] = field(default_factory=list)
    end: datetime = FIRST

    @property
    def texts(self) -> list[str]:
        """The digests of the turns."""
        return [make_digest(turn, "/", str).section for turn in self.turns]


def read(path: Path) -> list[Group]:
    """Return the groups of a file. Raise `ValueError` for a line that is none of the format."""
    groups: list[Group] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("== "):
            groups.append(Group(line[3:]))
        elif line and not (groups and _add(groups[-1], line)):
            raise ValueError(f"{path}, line {number}: not a line of a set of claims: {line[:60]!r}")
    return groups


def _add(group: Group, line: str) -> bool:
    """Add a line to a group. Return False if it has another form."""
    sign, _, text = line.partition(" ")
    if sign == "Asked:":
        session = str(uuid.uuid5(uuid.NAMESPACE_URL, group.topic))
        name = f"{len(group.turns) + 1:08x}"
        turn = Turn(id=name, session=session, prompt=text, time=group.end, start=0, end=0)
        group.turns.append(turn)
        group.end += timedelta(minutes=MINUTES_PER_TURN)
    elif sign == "Did:" and group.turns:
        calls = [_tool_call(part) for part in text.split(" · ")]
        group.turns[-1].tools = [call for call in calls if call is not None]
        return len(group.turns[-1].tools) == len(calls)
    elif sign == "Answered:" and group.turns:
        group.turns[-1].answer = text.replace(" / ", "\n")
    elif sign == "Paused:" and text.isdecimal():
        group.end += timedelta(minutes=int(text))
    elif sign == "+":
        group.true.append(text)
    elif sign == "~" and len(group.reworded) < len(group.true):
        group.reworded.append(text)
    elif sign == "-" and (kind := text.partition(": ")[0]) in KINDS:
        group.lies.append((kind, text.partition(": ")[2]))
    else:
        return False
    return True


def _tool_call(text: str) -> ToolCall | None:
    match = _TOOL.fullmatch(text)
    if match is None:
        return None
    name, result = match["name"], match["result"] or ""
    given = {_INPUTS.get(name, "file_path"): match["input"].strip("`")}
    is_error = result.startswith(_FAILED)
    return ToolCall(name, given, result.removeprefix(_FAILED), is_error)


def write_transcript(group: Group, directory: Path) -> Path:
    """Write the turns of a group as a session of Claude Code."""
    session = group.turns[0].session
    path = directory / f"{session}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, (time, role, content) in enumerate(_messages(group)):
            entry = {
                "type": role,
                "uuid": str(uuid.uuid5(uuid.UUID(session), str(number))),
                "sessionId": session,
                "timestamp": time.isoformat().replace("+00:00", "Z"),
                "isSidechain": False,
                "message": {"role": role, "content": content},
            }
            file.write(json.dumps(entry) + "\n")
    return path


def _messages(group: Group) -> Iterator[tuple[datetime, str, Any]]:
    for turn in group.turns:
        assert turn.time is not None
        yield turn.time, "user", turn.prompt
        for number, call in enumerate(turn.tools):
            time = turn.time + timedelta(seconds=5 * (number + 1))
            name = f"toolu_{turn.id}{number:04x}"
            use = {"type": "tool_use", "id": name, "name": call.name, "input": call.input}
            result = {
                "type": "tool_result",
                "tool_use_id": name,
                "content": call.result,
                "is_error": call.is_error,
            }
            yield time, "assistant", [use]
            yield time, "user", [result]
        if turn.answer:
            end = turn.time + timedelta(minutes=MINUTES_PER_TURN - 1)
            yield end, "assistant", [{"type": "text", "text": turn.answer}]
