"""Measure each hook as a whole process, alternating with `python3 -c pass`.

    python benchmarks/hooks.py [--runs 40] [--python python3] [--json]

Prints p50 and p95 of each hook and of the bare interpreter in milliseconds, and the ratio of the medians.
Hook and interpreter alternate, so that a busy machine slows both. The limit is a ratio of 3 and a p95 of
100 ms. Each hook also runs once under `python3 -S -E`, where only the standard library can be imported.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
HOOKS = {
    "SessionStart": "session_start.py",
    "UserPromptSubmit": "prompt_submit.py",
    "PreToolUse": "pre_tool_use.py",
    "PostToolUseFailure": "tool_failure.py",
    "SubagentStart": "subagent_start.py",
    "Stop": "stop.py",
    "StopFailure": "stop_failure.py",
    "PreCompact": "pre_compact.py",
    "SessionEnd": "session_end.py",
}
MAX_RATIO = 3.0


class Stage:
    """A temporary memory home, and a project with a month of memory.

    The workers that hooks start get an interpreter that does nothing (`MEMKIT_PYTHON`), so that the figures
    include the start of a worker but not its work.
    """

    def __init__(self, root: Path, python: str) -> None:
        self.python = python
        self.home = root / "home"
        self.project = root / "project"
        memory = self.project / ".memkit" / "memory"
        memory.mkdir(parents=True)
        self.home.mkdir()
        for day in range(1, 31):
            memory.joinpath(f"2026-09-{day:02d}.md").write_text(_day(day), encoding="utf-8")
        idle = root / "idle-python"
        idle.write_text("#!/bin/sh\nexit 0\n")
        idle.chmod(0o755)
        # Without bytecode every start compiles its imports, which happens to users only once.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.environment = {
            **{k: v for k, v in kept.items() if not k.startswith(("CLAUDE", "MEMKIT"))},
            "MEMKIT_HOME": str(self.home),
            "MEMKIT_PYTHON": str(idle),
        }

    def run(self, command: list[str], given: dict[str, Any] | None) -> tuple[float, bytes]:
        """Run one whole process. Return its milliseconds and its output."""
        started = time.perf_counter()
        done = subprocess.run(
            [self.python, *command],
            input=json.dumps(given).encode() if given else b"",
            capture_output=True,
            env=self.environment,
            cwd=self.project,
            check=True,
        )
        return (time.perf_counter() - started) * 1000, done.stdout

    def event(self, name: str) -> dict[str, Any]:
        """Return the event as Claude Code sends it."""
        return {
            "hook_event_name": name,
            "session_id": "0f9d3a52-6b1e-4a55-9a34-d6f1a5c9e001",
            "transcript_path": str(self.home / "none.jsonl"),
            "cwd": str(self.project),
            "tool_name": "Bash",
            "tool_input": {"command": "memkit search 'staging gateway'"},
            "error": "Exit code 1\nModuleNotFoundError: No module named 'yaml'",
            "prompt_id": "1d0e6c3a-2b7f-4c58-8c39-92a1b5c4d002",
            "prompt": "Which port does the staging gateway use?" * 10,
            "last_assistant_message": "It listens on 7443, because 443 is taken. " * 100,
        }

    def clear(self) -> None:
        """Remove the events of the last run."""
        shutil.rmtree(self.home / "spool", ignore_errors=True)


def _day(day: int) -> str:
    turns = "\n\n".join(
        f"### {hour:02d}:05 Question {hour} of the day <!-- turn:{day:04x}{hour:04x} -->\n"
        f"**Asked** Question {hour} of the day\n\n**Answered** {'An answer of some length. ' * 40}"
        for hour in range(8, 18)
    )
    return f"# 2026-09-{day:02d}\n\n## 08:05 Work <!-- session:{day} -->\n\n{turns}\n"


def measure(stage: Stage, runs: int) -> list[dict[str, Any]]:
    """Return one row per hook."""
    rows = []
    for event, script in HOOKS.items():
        path = str(REPOSITORY / "hooks" / script)
        given = stage.event(event)
        json.loads(stage.run(["-S", "-E", path], given)[1])  # third-party imports would fail here
        bare, hook = [], []
        for _ in range(runs):
            stage.clear()
            bare.append(stage.run(["-c", "pass"], None)[0])
            hook.append(stage.run(["-I", path], given)[0])
        errors = stage.home / "log" / "hooks.log"
        rows.append(
            {
                "hook": event,
                "bare_p50_ms": statistics.median(bare),
                "p50_ms": statistics.median(hook),
                "p95_ms": statistics.quantiles(hook, n=20)[-1],
                "bare_p95_ms": statistics.quantiles(bare, n=20)[-1],
                "ratio": statistics.median(hook) / statistics.median(bare),
                "errors": errors.read_text() if errors.exists() else "",
            }
        )
    return rows


def interpreter(name: str) -> str:
    """Return the interpreter itself. A version manager's shim would cost more than the hook."""
    command = [name, "-c", "import sys; print(sys.executable)"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the hooks against a bare interpreter.")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--python", default="python3", help="the interpreter the client would call")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memkit-bench-") as root:
        stage = Stage(Path(os.path.realpath(root)), interpreter(arguments.python))
        rows = measure(stage, arguments.runs)
    if arguments.json:
        print(json.dumps({"runs": arguments.runs, "hooks": rows}))
    else:
        print(f"{'hook':<18}{'python3 -c pass':>24}{'hook':>20}{'ratio':>8}")
        for row in rows:
            bare = f"p50 {row['bare_p50_ms']:.0f}, p95 {row['bare_p95_ms']:.0f} ms"
            own = f"p50 {row['p50_ms']:.0f}, p95 {row['p95_ms']:.0f} ms"
            print(f"{row['hook']:<18}{bare:>24}{own:>20}{row['ratio']:>8.2f}{row['errors']}")
    is_met = all(row["ratio"] <= MAX_RATIO and not row["errors"] for row in rows)
    if not is_met:
        print(f"over the bar: a ratio of at most {MAX_RATIO:.0f}, and no errors", file=sys.stderr)
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
