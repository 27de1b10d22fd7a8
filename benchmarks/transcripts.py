"""Generate transcripts of any size in Claude Code's layout, the same for the same seed.

Lengths are those of real sessions (a public one of 1.5 MB with 152 tool calls): half of the tool results
are below 900 characters, a tenth above 5,000, the longest about 40,000. Each result appears twice in its
line, the second time as `toolUseResult`. A turn is a prompt, some ten calls with a word in between, and an
answer.
"""

from __future__ import annotations

import datetime
import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthetic import Vocabulary

FIRST_DAY = datetime.datetime(2026, 1, 5, 8, tzinfo=datetime.timezone.utc)
SESSION_MEGABYTES = (0.02, 0.2, 0.6, 1.5, 4.0, 12.0)
POOL_CHARACTERS = 2_000_000
"""Length of the running text that everything is cut from. Generating word by word would dominate the
measurement.
"""


class SyntheticTranscripts:
    """Sessions of one user in `projects` working directories below `/home/synthetic`."""

    def __init__(self, seed: int = 0, projects: int = 5) -> None:
        self._chance = random.Random(f"transcripts {seed}")
        self._projects = [f"/home/synthetic/project-{number}" for number in range(projects)]
        self._pool = self._running_text(Vocabulary(seed))
        self._sessions = 0

    def write(self, directory: Path, megabytes: float) -> list[Path]:
        """Write sessions below `directory`, laid out as Claude Code's `projects`, until they reach the
        size.
        """
        written, left = [], megabytes
        while left > 0:
            size = min(left, self._chance.choice(SESSION_MEGABYTES))
            written.append(self.write_session(directory, size))
            left -= size
        return written

    def write_session(self, directory: Path, megabytes: float) -> Path:
        """Write one session of that size."""
        cwd = self._chance.choice(self._projects)
        session = self._identifier()
        path = directory / cwd.replace("/", "-") / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._sessions += 1
        time = FIRST_DAY + datetime.timedelta(hours=7 * self._sessions)
        with path.open("w", encoding="utf-8") as file:
            while file.tell() < megabytes * 1e6:
                for entry in self._turn():
                    time += datetime.timedelta(seconds=20)
                    common = {
                        "uuid": self._identifier(),
                        "parentUuid": self._identifier(),
                        "sessionId": session,
                        "cwd": cwd,
                        "gitBranch": "main",
                        "version": "2.1.197",
                        "isSidechain": False,
                        "userType": "external",
                        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                    }
                    file.write(json.dumps({**common, **entry}) + "\n")
        return path

    def _turn(self) -> Iterator[dict[str, Any]]:
        prompt = self._text(self._length(200, 1.3, 5000))
        yield _spoken("user", prompt, promptId=self._identifier(), origin={"kind": "human"})
        yield {"type": "attachment", "attachment": {"type": "hook_success"}}
        for number in range(self._chance.randint(1, 20)):
            if number % 2:
                yield _spoken("assistant", [_said(self._text(self._length(250, 0.8, 2000)))])
            yield from self._call()
        yield _spoken("assistant", [_said(self._text(self._length(900, 0.9, 9000)))])

    def _call(self) -> Iterator[dict[str, Any]]:
        identifier = f"toolu_{self._chance.getrandbits(96):024x}"
        if self._chance.random() < 0.3:
            name, given = "Edit", {"file_path": self._path(), "old_string": self._text(300)}
            given["new_string"] = self._text(self._length(400, 1.0, 4000))
        else:
            name, given = "Bash", {"command": self._text(self._length(90, 0.8, 1400))}
        block = {"type": "tool_use", "id": identifier, "name": name, "input": given}
        yield _spoken("assistant", [block])
        output = self._text(self._length(850, 1.4, 40_000))
        result = {"type": "tool_result", "tool_use_id": identifier, "content": output}
        yield _spoken("user", [result], toolUseResult={"stdout": output, "stderr": ""})

    def _running_text(self, vocabulary: Vocabulary) -> str:
        """Return lines of prose, code, listings, and hashes. Few letters are not ASCII, as in real text."""
        parts: list[str] = []
        length = 0
        while length < POOL_CHARACTERS:
            words = vocabulary.words(self._chance, self._chance.randint(3, 14))
            kind = self._chance.random()
            if kind < 0.4:
                line = f"    {vocabulary.identifier(self._chance)} = {'_'.join(words[:3])}({words[0]!r})"
            elif kind < 0.5:
                line = (
                    f"{self._chance.getrandbits(160):040x}  {vocabulary.identifier(self._chance)}"
                )
            else:
                line = " ".join(words).capitalize() + self._chance.choice(".:;,—")
            parts.append(line)
            length += len(line) + 1
        return "\n".join(parts)

    def _length(self, median: int, spread: float, longest: int) -> int:
        return min(longest, int(median * self._chance.lognormvariate(0.0, spread)) + 1)

    def _text(self, length: int) -> str:
        start = self._chance.randrange(len(self._pool) - length)
        return self._pool[start : start + length]

    def _path(self) -> str:
        return f"src/module_{self._chance.randrange(200)}.py"

    def _identifier(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))


def _spoken(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}, **fields}


def _said(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
