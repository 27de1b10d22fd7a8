"""Measure how fast old sessions are imported, and how much memory that takes.

    python benchmarks/importing.py [--megabytes 1000] [--write]
    python benchmarks/importing.py --days 2000,8000

Reads synthetic sessions (`transcripts.py`) of that total size into turns, counts them in a dry run, and
imports and indexes them without vectors, each in its own process. `benchmarks/throughput.py` measures
vectors. The limit is 40 MB/s read into turns. `--write` puts the figures into `docs/benchmarks.md`.

`--days` imports one day for each number of turns and prints how the time grows: the ratio of times divided
by the ratio of turns is 1 for linear growth.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import report
import resources
from transcripts import SyntheticTranscripts

REPOSITORY = Path(__file__).resolve().parent.parent
BAR_MEGABYTES_A_SECOND = 40.0

_READ = """
import sys
from pathlib import Path
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
paths = Path(sys.argv[1]).rglob("*.jsonl")
print(sum(1 for path in paths for _ in read_turns(Transcript(path))))
"""


def measure(root: Path, megabytes: float) -> dict[str, dict[str, float]]:
    """Return MB/s, MB per CPU second (which other work does not slow), and peak memory of each way, by
    name.
    """
    client = root / "claude"
    sources = SyntheticTranscripts().write(client / "projects", megabytes)
    size = sum(path.stat().st_size for path in sources) / 1e6
    project = root / "project"
    project.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "CLAUDE_CONFIG_DIR": str(client),
        "MEMKIT_HOME": str(root / "home"),
        "MEMKIT_SERVICE_ENABLED": "false",
        "MEMKIT_EMBEDDING_PROVIDER": "none",
    }
    memkit = [sys.executable, "-m", "memkit", "import", "--all", "--json"]
    commands = {
        "read into turns": [sys.executable, "-c", _READ, str(client)],
        "import --dry-run": [*memkit, "--dry-run"],
        "import, no vectors": memkit,
    }
    found = {}
    for name, command in commands.items():
        done = resources.run(command, cwd=project, environment=environment)
        found[name] = {
            "mb_per_second": size / done.seconds,
            "mb_per_cpu_second": size / done.cpu,
            "peak_mb": done.peak,
        }
        if name == "import, no vectors":
            found[name]["turns"] = json.loads(done.output)["turns"]
    found["import, no vectors"]["disk_mb"] = resources.disk(root / "home")
    return found


def long_days(root: Path, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Return, for each size, the CPU seconds to import one session whose turns are all on one day."""
    sys.path.insert(0, str(REPOSITORY))
    from memkit.capture.capture import Capture
    from memkit.paths import Home
    from memkit.projects.project import Project
    from memkit.settings.load import Settings

    found = []
    for size in sizes:
        place = root / str(size)
        project = Project(str(place / "project"))
        Path(project.root).mkdir(parents=True)
        transcript = place / "long-day.jsonl"
        _write_day(transcript, size)
        capture = Capture(Home(str(place / "home")), Settings())
        started = time.process_time()
        captured = capture.import_file(transcript, project)
        seconds = time.process_time() - started
        assert captured.written == size
        found.append({"turns": size, "cpu_seconds": seconds})
    return found


def _write_day(path: Path, turns: int) -> None:
    """Write a session with this number of turns between 12:00 and 12:30, local time."""
    noon = datetime.datetime(2026, 1, 5, 12).astimezone().astimezone(datetime.timezone.utc)
    with path.open("w", encoding="utf-8") as file:
        for number in range(turns):
            when = noon + datetime.timedelta(seconds=1800 * number / turns)
            answer = [{"type": "text", "text": f"Item {number} is in row {number * 13}. " * 3}]
            for role, content in (("user", f"In which row is item {number}?"), ("assistant", answer)):
                entry = {
                    "type": role,
                    "uuid": f"{role}-{number}",
                    "sessionId": "long-day",
                    "cwd": "/home/synthetic/project",
                    "timestamp": when.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                    "message": {"role": role, "content": content},
                }
                if role == "user":
                    entry |= {"promptId": f"prompt-{number}", "origin": {"kind": "human"}}
                file.write(json.dumps(entry) + "\n")


def section(megabytes: float, found: dict[str, dict[str, float]]) -> str:
    """Return the figures as Markdown."""
    rows = [
        [
            name,
            f"{one['mb_per_second']:.1f}",
            f"{one['mb_per_cpu_second']:.1f}",
            f"{one['peak_mb']:.0f}",
        ]
        for name, one in found.items()
    ]
    turns = found["import, no vectors"]["turns"]
    return "\n\n".join(
        (
            "## Importing",
            f"{megabytes:.0f} MB of synthetic sessions, {turns:.0f} turns; the bar is "
            f"{BAR_MEGABYTES_A_SECOND:.0f} MB/s read into turns. {report.machine()}.",
            report.table(["", "MB/s", "MB a CPU second", "most memory, MB"], rows),
            "Other work on the machine slows the seconds, not those of a CPU. Most of the import is the "
            "search for secrets. Vectors come on top and take far longer.",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the import of old sessions.")
    parser.add_argument("--megabytes", type=float, default=1000.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--days", metavar="N,N", help="import days with these numbers of turns instead")
    arguments = parser.parse_args()
    if arguments.days:
        with tempfile.TemporaryDirectory(prefix="memkit-importing-") as name:
            days = long_days(Path(name).resolve(), [int(one) for one in arguments.days.split(",")])
        first, last = days[0], days[-1]
        ratio = (last["cpu_seconds"] / first["cpu_seconds"]) / (last["turns"] / first["turns"])
        print(json.dumps({"days": days, "growth": round(ratio, 2)}))
        return
    with tempfile.TemporaryDirectory(prefix="memkit-importing-") as name:
        found = measure(Path(name).resolve(), arguments.megabytes)
    if arguments.write:
        report.replace_section("importing", section(arguments.megabytes, found))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
