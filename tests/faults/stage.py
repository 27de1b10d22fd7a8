"""What the fault tests share: clients that work at once, their hooks, and the processes they leave."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memkit.index.manifest import MANIFEST
from memkit.index.reader import ChunkReader
from memkit.ipc import unindexed
from memkit.journal.day_file import DayFile
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from tests.ci import AT_NIGHT

REPOSITORY = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 240.0

QUICK = {} if AT_NIGHT else {"MEMKIT_EMBEDDING_PROVIDER": "none"}
"""Variables for processes: only at night each of them loads the model."""


def wait_for(condition: Callable[[], Any], what: str) -> None:
    """Return as soon as `condition` is true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def session_id(session: int) -> str:
    return f"{session:08x}-1111-4222-8333-444455556666"


def prompt_id(session: int, turn: int) -> str:
    return f"{session:08x}-{turn:04x}-4aaa-8bbb-ccccddddeeee"


def text(session: int, turn: int) -> tuple[str, str]:
    """The question and the answer of a turn."""
    return (f"Question s{session}t{turn} of this storm?", f"Answer s{session}t{turn} is {session * turn}.")


def entries(session: int, turn: int) -> str:
    """A turn as the client writes it."""
    question, answer = text(session, turn)
    common = {
        "sessionId": session_id(session),
        "timestamp": f"2026-03-{1 + session % 2:02d}T{8 + turn // 60:02d}:{turn % 60:02d}:00.000Z",
        "isSidechain": False,
    }
    asked = {
        **common,
        "type": "user",
        "uuid": f"{session:08x}-{turn:04x}-4000-8000-000000000001",
        "promptId": prompt_id(session, turn),
        "message": {"role": "user", "content": question},
    }
    answered = {
        **common,
        "type": "assistant",
        "uuid": f"{session:08x}-{turn:04x}-4000-8000-000000000002",
        "message": {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    }
    return json.dumps(asked) + "\n" + json.dumps(answered) + "\n"


class Stage:
    """A project and a memory home of its own; `variables` are set for every process."""

    def __init__(self, root: Path, models: str, **variables: str) -> None:
        self.root = root.resolve()
        self.project = self.root / "project"
        self.project.mkdir()
        self.home = Home(str(self.root / "home"))
        Path(self.home.root).mkdir()
        Path(self.home.models).symlink_to(models)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "MEMKIT"))}
        self.variables = {"MEMKIT_HOME": self.home.root, "MEMKIT_PYTHON": sys.executable, **variables}
        self.environment = {**inherited, **self.variables}

    def transcript(self, session: int) -> Path:
        return self.root / f"{session_id(session)}.jsonl"

    def event(self, session: int, turn: int) -> dict[str, str]:
        """What the client tells every hook of a turn."""
        return {
            "session_id": session_id(session),
            "transcript_path": str(self.transcript(session)),
            "cwd": str(self.project),
            "prompt_id": prompt_id(session, turn),
        }

    def stopped(self, session: int, turn: int) -> dict[str, str]:
        """What the client tells the hook at the end of a turn."""
        return {**self.event(session, turn), "last_assistant_message": text(session, turn)[1]}

    def hook(self, script: str, event: dict[str, str]) -> None:
        """Run a hook as the client does."""
        done = subprocess.run(
            [sys.executable, str(REPOSITORY / "hooks" / f"{script}.py")], input=json.dumps(event).encode(),
            env=self.environment, capture_output=True, check=True,
        )  # fmt: skip
        assert isinstance(json.loads(done.stdout), dict)

    def memkit(self, *arguments: str) -> dict[str, Any]:
        """What a command prints."""
        done = subprocess.run(
            [sys.executable, str(REPOSITORY / "bin" / "memkit"), *arguments, "--json"], env=self.environment,
            cwd=self.project, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        value = json.loads(done.stdout)
        assert isinstance(value, dict)
        return value

    def processes(self) -> Iterator[int]:
        """The live processes of this memory home, but for this one."""
        mark = f"MEMKIT_HOME={self.home.root}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    variables = (entry / "environ").read_bytes().split(b"\0")
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                except OSError:
                    continue
                if mark in variables and state != "Z":
                    yield int(entry.name)

    def processes_with(self, word: str) -> list[int]:
        """Those that have `word` on their command line."""
        found = []
        for pid in self.processes():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in words:
                found.append(pid)
        return found

    def chunks(self) -> list[dict[str, Any]]:
        """Everything in the index."""
        (manifest,) = Path(self.home.index, "snapshots").glob(f"*/{MANIFEST}")
        return [dataclasses.asdict(chunk) for chunk in ChunkReader(manifest.parent).chunks()]

    def check_nothing_waits(self) -> None:
        """All that was told is in the journal, all of the journal in the index."""
        wait_for(lambda: not unindexed.roots(self.home), "the last index pass")
        status = self.memkit("status")
        assert (status["waiting"], status["failed"], status["hook_errors"]) == (0, [], 0)
        assert not list(Path(self.home.spool, "claimed").iterdir())
        assert status["index"]["in_step"]
        assert QUICK or status["index"]["missing"] == 0

    def check_turns(self, sessions: int, turns: int) -> None:
        """Every turn is in the journal exactly once, and in the index exactly once."""
        days = (self.project / ".memkit" / "memory").glob("20*.md")
        sections = [
            (section.pairs["turn"], read_parts(content.text(section)))
            for content in (DayFile(path.read_text()) for path in days)
            for section in content.sections
            if "turn" in section.pairs
        ]
        anchors = Counter(turn for turn, _ in sections)
        assert len(anchors) == sessions * turns
        assert set(anchors.values()) == {1}
        asked = Counter(parts.prompt for _, parts in sections)
        answered = Counter(parts.answer for _, parts in sections)
        told = [text(session, turn) for session in range(sessions) for turn in range(turns)]
        assert asked == Counter(question for question, _ in told)
        assert answered == Counter(answer for _, answer in told)
        indexed = Counter(
            turn for chunk in self.chunks() if chunk["kind"] == "turn" for turn in chunk["turns"]
        )
        assert indexed == anchors
