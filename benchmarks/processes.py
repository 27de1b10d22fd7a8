"""Measure whole `memkit …` processes on a memory made by `growth.py`.

All start through `bin/memkit` with `MEMKIT_PYTHON`, so each includes two interpreter starts. The bare
interpreter is measured in between, to give a ratio on slow or busy machines.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import resources

REPOSITORY = Path(__file__).resolve().parent.parent
RUNS = 9

BARS_SECONDS = {
    "--help": 0.1,
    "config": 0.1,
    "search": 1.5,
    "expand": 0.25,
    "transcript": 0.25,
    "index": 2.0,
}
"""Limits at 10,000 chunks (design, section 9); `index` has nothing to do."""

_UNCHANGED = """
import json, sys, time
from memkit.settings import load
from memkit.index.lock import index_lock
from memkit.index.sync import sync_project
from memkit.paths import Home
from memkit.hook.project import Project
home, project = Home.from_environment(), Project(sys.argv[1])
settings = load.load(home, project).settings
started = time.perf_counter()
with index_lock(home, 5.0):
    report = sync_project(project, home, settings)
print(json.dumps({
    "seconds": time.perf_counter() - started,
    "embedded": report.embedded + report.added + report.missing,
    "model_loaded": "onnxruntime" in sys.modules,
}))
"""


class Shell:
    """Runs memkit in the project below `place`, without the user's settings."""

    def __init__(self, place: Path) -> None:
        self.project = place / "project"
        # Without bytecode every start compiles memkit, which happens to users only once.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("MEMKIT_") and name != "PYTHONDONTWRITEBYTECODE"
        }
        own = {
            "MEMKIT_HOME": str(place / "home"),
            "MEMKIT_PYTHON": sys.executable,
            "MEMKIT_SERVICE_ENABLED": "false",  # benchmarks/service.py measures it
        }
        self.environment = {**kept, **own, "PYTHONPATH": str(REPOSITORY)}

    def python(self, *arguments: str) -> resources.Finished:
        """Run the interpreter in the project."""
        command = [sys.executable, *arguments]
        return resources.run(command, cwd=self.project, environment=self.environment)

    def memkit(self, *arguments: str, given: str = "") -> resources.Finished:
        """Run one command."""
        command = [sys.executable, str(REPOSITORY / "bin" / "memkit"), *arguments]
        return resources.run(command, given=given, cwd=self.project, environment=self.environment)


def measure(place: Path, questions: list[str]) -> dict[str, Any]:
    """Return seconds and memory of each command, and the work of indexing an unchanged tree."""
    shell = Shell(place)
    unchanged = json.loads(shell.python("-c", _UNCHANGED, str(shell.project)).output)
    found = json.loads(shell.memkit("search", "--json", questions[0]).output)["results"][0]
    commands = {
        "--help": ["--help"],
        "config": ["config"],
        "search": ["search", questions[0]],
        "expand": ["expand", found["id"]],
        "transcript": ["transcript", str(_transcript(place))],
        "index": ["index"],
    }
    bare: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        bare.append(shell.python("-c", "pass").seconds)
        for name, arguments in commands.items():
            seconds[name].append(shell.memkit(*arguments).seconds)
    batch = shell.memkit("search", "--batch", "-", given="\n".join(questions))
    return {
        "unchanged": unchanged,
        "bare_seconds": statistics.median(bare),
        "commands": {name: statistics.median(values) for name, values in seconds.items()},
        "search_peak_mb": batch.peak,
    }


def _transcript(place: Path) -> Path:
    """Return a transcript of usual length: 200 exchanges."""
    path = place / "f0e1d2c3-0000-4000-8000-000000000001.jsonl"
    lines = []
    for number in range(200):
        shared = {
            "sessionId": path.stem,
            "cwd": str(place / "project"),
            "timestamp": f"2026-11-20T10:{number // 60:02d}:{number % 60:02d}.000Z",
            "parentUuid": None,
        }
        asked = {"role": "user", "content": f"Question {number}: which port does the gateway use?"}
        text = f"Answer {number}: it listens on 7443, because 443 is taken. " * 10
        answered = {"role": "assistant", "content": [{"type": "text", "text": text}]}
        lines += [
            {**shared, "type": "user", "uuid": f"u{number}", "message": asked},
            {**shared, "type": "assistant", "uuid": f"a{number}", "message": answered},
        ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path
