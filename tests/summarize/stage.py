"""A memory home with turns to summarize, a fake clock, and a model with scripted answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.summary_queue import SummaryQueue
from memkit.conversation.turn import Message, ToolCall, ToolUse, Turn
from memkit.journal.day_summaries import turns_of
from memkit.journal.digest import make_digest
from memkit.journal.journal import Journal
from memkit.llm import ModelError, Reply, Task, TokenUsage
from memkit.llm.calls import Calls, calls_lock
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize.summarizer import Summarizer, SummaryReport
from tests.builders import entries

START = datetime(2026, 11, 20, 9, 0)
SESSION = "fd0aee29"
PLAIN = {"provider": "anthropic", "wait_minutes": 0, "daily_tokens": 200_000}
"""No waiting for a full call, and a budget that few tests reach."""

LONG_TURN = ("words " * 120, "words " * 250)
"""A prompt and an answer that a model sees as about 550 tokens."""


Answer = Callable[[Task], dict[str, Any]] | dict[str, Any] | ModelError


def segments_in(task: Task) -> list[list[int]]:
    """The numbers of the turns that a model is shown, by segment."""
    found: list[list[int]] = []
    for turn, segment in re.findall(r'<turn number="(\d+)"|<(segment) number=', task.material):
        if segment:
            found.append([])
        else:
            found[-1].append(int(turn))
    return found


def bullet_for_each(task: Task) -> dict[str, Any]:
    """Answer with one bullet per turn, and no more than memkit keeps of a segment."""
    said = "The person asked for something."
    return {
        "segments": [
            {"number": number, "title": "", "bullets": [bullet(said, [n]) for n in turns[:6]]}
            for number, turns in enumerate(segments_in(task), start=1)
        ]
    }


def summary(*bullets: Any, number: Any = 1, title: Any = "") -> dict[str, Any]:
    return {"segments": [{"number": number, "title": title, "bullets": list(bullets)}]}


@dataclass
class ScriptedProvider:
    """Answers with `answer` or raises it, gives each claim the `verdict`, and records its tasks and usage."""

    answer: Answer = bullet_for_each
    verdict: str = "supported"
    name: str = "anthropic"
    model: str = "claude-haiku-4-5"
    tasks: list[Task] = field(default_factory=list)
    used: list[TokenUsage] = field(default_factory=list)

    def ask(self, task: Task) -> Reply:
        self.tasks.append(task)
        if isinstance(self.answer, ModelError):
            raise self.answer
        usage = TokenUsage(len(task.instructions + task.material) // 4, 200)
        self.used.append(usage)
        value = self.answer(task) if callable(self.answer) else self.answer
        if numbers := re.findall(r'<claim number="(\d+)"', task.material):
            verdicts = [{"number": int(number), "verdict": self.verdict} for number in numbers]
            value = {"verdicts": verdicts, **value}
        return Reply(value, usage, self.model)


class SummaryStage:
    """One project; `now` is the current time for memkit."""

    def __init__(self, root: Path, **summarize: Any) -> None:
        self.home = Home(str(root / "home"))
        self.project = Project(str(root / "project"))
        Path(self.project.root).mkdir(parents=True, exist_ok=True)
        self.settings = Settings(summarize=SummarizeSettings(**{**PLAIN, **summarize}))
        self.provider = ScriptedProvider()
        self.now = START
        self.journal = Journal(self.project)

    def add_turn(
        self, minutes: float, text: str = "What is it?", answer: str = "It is that.", **fields: Any
    ) -> str:
        """Add a turn that began some minutes after the start, and return its id; see `add`."""
        session = fields.pop("session", SESSION)
        is_live = fields.pop("is_live", True)
        turn, archived = self.turn(minutes, text, answer, session=session, **fields)
        self.add({session: [(turn, archived)]}, is_live=is_live)
        return turn.id

    def add_turns(self, turns: Iterable[tuple[str, str]]) -> None:
        """Add turns of one session, one minute apart, at once."""
        made = [
            self.turn(number, text, answer, session=SESSION, name=f"{number:08x}")
            for number, (text, answer) in enumerate(turns)
        ]
        self.add({SESSION: made})

    def turn(
        self, minutes: float, text: str, answer: str, *, session: str, name: str = "", lasts: float = 0,
        compacted: bool = False, calls: Sequence[ToolCall] = (),
    ) -> tuple[Turn, ArchivedTurn]:  # fmt: skip
        began = (START + timedelta(minutes=minutes)).astimezone()
        root = self.project.root
        cwd = root if calls else ""
        turn = Turn(
            id=name or f"{len(self.turns()):08x}", session=session, prompt=text, answer=answer, time=began, start=0,
            end=0, tools=list(calls), cwd=cwd,
        )  # fmt: skip
        ended = began + timedelta(minutes=lasts)
        said = [Message("user", began, text, (), turn.id)]
        for call in calls:
            result = ToolUse(call.name, result=call.result or "", is_error=call.is_error)
            said.append(Message("assistant", began, "", (ToolUse(call.name, call.input),), turn.id))
            said.append(Message("tool", began, "", (result,), turn.id))
        if lasts:
            said.append(Message("tool", ended, "", (ToolUse("Bash", {}, "ok"),), turn.id))
        said.append(Message("assistant", ended, answer, (), turn.id))
        return turn, ArchivedTurn(
            id=turn.id, messages=tuple(said), time=began, finished=ended, project=root, cwd=cwd, compacted=compacted,
        )  # fmt: skip

    def add(self, sessions: dict[str, list[tuple[Turn, ArchivedTurn]]], *, is_live: bool = True) -> None:
        """Put turns into journal and archive, and, if they are live, into the queue."""
        digests = [
            make_digest(turn, self.project.root, str) for turns in sessions.values() for turn, _ in turns
        ]
        self.journal.write(digests)
        for session, turns in sessions.items():
            Archive(self.home).append(session, [archived for _, archived in turns])
            last = turns[-1][0].time
            assert last is not None
            if is_live:
                days = {digest.day for digest in digests}
                SummaryQueue(self.home).add(self.project.root, session, days, last.timestamp())

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", self.project.root, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def turns(self) -> list[str]:
        return re.findall(r"<!-- turn:(\w+) -->", self.text)

    @property
    def summarizer(self) -> Summarizer:
        calls = Calls(self.home, lambda settings: self.provider, lambda: self.now.timestamp())
        # Without an embedder: these tests are not about wording.
        return Summarizer(self.home, lambda project: self.settings, calls, lambda _: (None, ""))

    def run(self, minutes: float) -> SummaryReport:
        """Run a round of summaries some minutes after the start."""
        self.now = START + timedelta(minutes=minutes)
        report = SummaryReport()
        with calls_lock(self.home):
            self.summarizer.run(report, lambda: False)
        return report

    @property
    def text(self) -> str:
        return "\n".join(entries(path.read_text()) for path in sorted(Path(self.project.memory).glob("*.md")))

    @property
    def summarized(self) -> int:
        """How many turns have a summary."""
        days = [self.journal.day(day) for day in self.journal.days()]
        turns = [turn for day in days for one in day.sessions() for turn in turns_of(day, one)]
        return sum(turn.is_summarized for turn in turns)

    @property
    def bullets(self) -> list[str]:
        return [line for line in self.text.splitlines() if "grip:" in line]

    def change(self, **summarize: Any) -> None:
        before = msgspec.structs.asdict(self.settings.summarize)
        self.settings = Settings(summarize=SummarizeSettings(**{**before, **summarize}))


def bullet(text: str, turns: Iterable[Any], kind: str = "finding") -> dict[str, Any]:
    return {"text": text, "kind": kind, "turns": list(turns)}
