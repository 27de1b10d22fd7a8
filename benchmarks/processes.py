"""Measure whole `memkit …` processes, on a memory made by `growth.py` or on one of many years.

    python benchmarks/processes.py [--days N] [--place DIRECTORY] [--write] [--json]

It makes a memory of N days, without vectors, or takes the one it made in `DIRECTORY`. Then it measures
the commands whose cost must not follow the memory: seconds, and peak memory. `--write` puts the figures into
docs/benchmarks.md.

All start through `bin/memkit` with `MEMKIT_PYTHON`, so each includes two interpreter starts. The bare
interpreter is measured in between, to give a ratio on slow or busy machines.
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
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import report  # noqa: E402
import resources  # noqa: E402
from synthetic import SyntheticMemory, write_home  # noqa: E402

from memkit.capture.sessions import LiveSessions  # noqa: E402
from memkit.hook.tally import full_tally  # noqa: E402
from memkit.ipc import spool  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.processes import is_locked  # noqa: E402
from memkit.projects.project import Project  # noqa: E402

RUNS = 9

DAYS = 3000
TURNS_A_SESSION = (3, 9)
"""About 21 turns a day: 63,000 in 3,000 days."""

STATES = 300
"""Sessions with a state file: those of about three months."""

YEARS_RUNS = 3

YEARS_BARS: dict[str, tuple[float | None, float | None]] = {
    "status": (0.5, None),
    "projects": (0.5, None),
    "stats": (0.5, None),
    "remember": (0.5, 300.0),
    "captured turn": (0.5, 300.0),
    "doctor": (3.0, None),
    "doctor --deep": (None, None),
    "forget": (3.0, None),
    "Markdown of a turn during a pass": (0.5, 300.0),
}
"""Limits in seconds and MB for whole processes on a memory of many years, in the order in which they run."""

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
from memkit.index import index_lock
from memkit.index import sync_project
from memkit.paths import Home
from memkit.projects.project import Project
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


def _transcript(
    place: Path,
    session: str = "f0e1d2c3-0000-4000-8000-000000000001",
    exchanges: int = 200,
    began: datetime = datetime(2026, 11, 20, 10, tzinfo=timezone.utc),
) -> Path:
    """Return a transcript, by default of usual length, with an exchange each second."""
    path = place / f"{session}.jsonl"
    lines = []
    for number in range(exchanges):
        shared = {
            "sessionId": path.stem,
            "cwd": str(place / "project"),
            "timestamp": f"{began + timedelta(seconds=number):%Y-%m-%dT%H:%M:%S}.000Z",
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


class Years(Shell):
    """A memory of many years below `place`, without vectors."""

    def __init__(self, place: Path, days: int) -> None:
        super().__init__(place)
        self.session, self.turns, self.began = str(uuid.uuid4()), 0, datetime.now(timezone.utc)
        self.home = Home(self.environment["MEMKIT_HOME"])
        memory = SyntheticMemory(turns_a_session=TURNS_A_SESSION)
        # A segment of a session that has ended would get its extract at once.
        LiveSessions(self.home).begin(self.session, str(self.project), os.getpid())
        if not self.project.exists():
            write_home(memory, self.project, self.home.root, days, STATES)
            Path(self.home.root, "config.toml").write_text('[embedding]\nprovider = "none"\n', "utf-8")
            self.memkit("index")
            self.memkit("timeline")  # an import makes it, too
            self.memkit(*self.capture())  # the first one also records what of the memory is the home's own
        self.sizes = full_tally(self.home, Project(str(self.project)))._asdict()
        self.newest = self.project / ".memkit" / "memory" / memory.day(days - 1)[0]

    def turn(self) -> str:
        """Return the ID of the last turn that was there at first: earlier runs have forgotten some."""
        days = (one for one in self.newest.parent.glob("20*.md") if one.name <= self.newest.name)
        newest = max(days).read_text(encoding="utf-8")
        return newest.rpartition("<!-- turn:")[2].split(" ")[0]

    def capture(self) -> list[str]:
        """Spool the end of the next turn of a live session; return the command that captures it."""
        self.turns += 1
        path = _transcript(self.project.parent, self.session, self.turns, self.began)
        event = {"event": "Stop", "session": path.stem, "cwd": str(self.project), "time": time.time()}
        spool.put(self.home, {**event, "transcript": str(path)})
        return ["work"]

    def measure(self, name: str) -> resources.Finished:
        """Run one of `YEARS_BARS` as a whole process."""
        if name == "Markdown of a turn during a pass":
            return self.capture_during_pass()
        arguments = {
            "captured turn": self.capture,
            "forget": lambda: ["forget", "--yes", self.turn()],
            "remember": lambda: ["remember", f"The port of note {time.time_ns()} is 7443."],
        }
        command = arguments[name]() if name in arguments else name.split()
        return self.memkit(*command)

    def capture_during_pass(self) -> resources.Finished:
        """Capture a turn while another process builds the whole index."""
        shutil.rmtree(self.home.index)
        command = [sys.executable, str(REPOSITORY / "bin" / "memkit"), "index"]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=self.project, env=self.environment, **quiet) as building:
            while not is_locked(self.home.index_lock) and building.poll() is None:
                time.sleep(0.01)
            captured = self.memkit(*self.capture())
        days = self.newest.parent.glob("20*.md")
        if f"Question {self.turns - 1}:" not in max(days).read_text(encoding="utf-8"):
            raise RuntimeError("the turn is not in its day file")
        return captured


def measure_years(days: int, runs: int, place: Path | None = None) -> dict[str, Any]:
    """Return the figures of `YEARS_BARS` on a memory of `days` days, without the service."""
    with tempfile.TemporaryDirectory(prefix="memkit-years-") as name:
        years = Years((place or Path(name)).resolve(), days)
        bare, found = [], dict[str, list[resources.Finished]]()
        for command in YEARS_BARS:
            for _ in range(runs if any(YEARS_BARS[command]) else 1):
                bare.append(years.python("-c", "pass").seconds)
                found.setdefault(command, []).append(years.measure(command))
        return {
            **years.sizes,
            "machine": report.machine(),
            "load": os.getloadavg()[0],
            "bare_seconds": statistics.median(bare),
            "commands": {
                one: {
                    "seconds": statistics.median(run.seconds for run in done),
                    "cpu_seconds": statistics.median(run.cpu for run in done),
                    "peak_mb": max(run.peak for run in done),
                }
                for one, done in found.items()
            },
        }


def years_markdown(figures: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    rows = []
    for name, found in figures["commands"].items():
        limits = YEARS_BARS[name]
        pairs = zip((found["seconds"], found["peak_mb"]), limits, strict=True)
        is_held = all(limit is None or value <= limit for value, limit in pairs)
        shown = [f"≤ {limit:g} {unit}" for limit, unit in zip(limits, ("s", "MB"), strict=True) if limit]
        held = ("yes" if is_held else "**no**") if shown else ""
        numbers = [f"{found[one]:.2f}" for one in ("seconds", "cpu_seconds")]
        rows.append([name, *numbers, f"{found['peak_mb']:.0f}", ", ".join(shown), held])
    return "\n\n".join(
        [
            "### A memory of many years",
            f"`python benchmarks/processes.py --write`; {figures['machine']}, load {figures['load']:.1f}; "
            f"{figures['turns']:,} turns of {figures['sessions']:,} sessions on {figures['days']:,} days, "
            "without vectors and without the service. Whole processes, each of two interpreter starts; the "
            f"bare interpreter took {figures['bare_seconds'] * 1000:.0f} ms.",
            report.table(("command", "s", "CPU, s", "peak, MB", "limit", "held"), rows),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the commands on a memory of many years.")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--runs", type=int, default=YEARS_RUNS)
    parser.add_argument("--place", type=Path, metavar="DIRECTORY", help="keep the memory there")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure_years(arguments.days, arguments.runs, arguments.place)
    report.publish("years", figures, years_markdown(figures), as_json=arguments.json, write=arguments.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
