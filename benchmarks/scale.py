"""Measure how memkit grows with its memory, and whether it meets the numbers of the design (section 9).

    python benchmarks/scale.py [--chunks 1000,10000,100000] [--own] [--write] [--json]

For each size: build, update of one file, stages of a search, memory, disk; the same text in plain
rank-bm25, bm25s, and SQLite FTS5; whole processes; up to 10,000 chunks, the service under load; and once the
speed of indexing next to the bare encoder. `--own` leaves the other engines out.
`--write` puts the figures into docs/benchmarks.md and draws docs/scale.png. Needs the model in MEMKIT_HOME
(any `memkit search` fetches it) and the dependency group `benchmarks`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import processes  # noqa: E402
import report  # noqa: E402
import resources  # noqa: E402
import scale_report  # noqa: E402
from synthetic import SyntheticMemory  # noqa: E402

ENGINES = ("memkit", "rank-bm25", "bm25s", "fts5")
THROUGHPUT_CHUNKS = 512
TURNS = 200
REQUESTS = 5000


def child(script: str, *arguments: object) -> dict[str, Any]:
    """Run a script of this directory in its own process, and return its output."""
    path = REPOSITORY / "benchmarks" / f"{script}.py"
    command = [sys.executable, str(path), *map(str, arguments)]
    figures: dict[str, Any] = json.loads(resources.run(command, environment=os.environ).output)
    return figures


def measure(chunks: int, engines: Sequence[str]) -> dict[str, Any]:
    """Return all figures for one size."""
    with tempfile.TemporaryDirectory(prefix="memkit-scale-") as name:
        place = Path(name).resolve()
        figures = child("growth", "--chunks", chunks, "--place", place, "--turns", TURNS)
        memory, days = place / "project" / ".memkit" / "memory", figures["days"]
        figures["engines"] = [
            child("rivals", "--engine", engine, "--memory", memory, "--days", days)
            for engine in engines
        ]
        questions = SyntheticMemory().questions(days, 50)
        figures["processes"] = processes.measure(place, questions)
        if chunks <= scale_report.BAR_CHUNKS:
            figures["load"] = child("service", "--load", place, "--requests", REQUESTS)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how memkit grows with its memory.")
    parser.add_argument("--chunks", default="1000,10000,100000", metavar="N,N,…")
    parser.add_argument("--own", action="store_true", help="memkit alone")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sizes = []
    for chunks in map(int, arguments.chunks.split(",")):
        print(f"measuring {chunks:,} chunks …", file=sys.stderr)
        sizes.append(measure(chunks, ENGINES[:1] if arguments.own else ENGINES))
    figures = {
        "machine": report.machine(),
        "sizes": sizes,
        "throughput": child("throughput", "--chunks", THROUGHPUT_CHUNKS),
    }
    if arguments.json:
        print(json.dumps(figures))
    else:
        scale_report.show(figures)
    if arguments.write:
        report.replace_section("scale", scale_report.markdown(figures))
        scale_report.draw(figures, report.DOCUMENT.parent / scale_report.PICTURE)
    return 0 if all(bar.is_held for bar in scale_report.bars(figures)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
