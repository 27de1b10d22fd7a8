"""Measure `memkit sync` on 60,000 turns: the first run of two machines, and idle ones, a process each.

    python benchmarks/sync.py [--days N] [--kind folder|git] [--json] [--write]

Limits: a first run takes at most 60 s plus the transfer (the place is on this disk), an idle one 2 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

import report  # noqa: E402
from synthetic import SyntheticMemory, write_home  # noqa: E402

DAYS = 1930
FIRST_SECONDS, IDLE_SECONDS = 60.0, 2.0
_STEPS = ("first, sending", "first, taking", "idle, sender", "idle, taker", "after a new day")


def _run(home: Path, root: Path, *arguments: str) -> tuple[float, float]:
    """Run a command; return the seconds it took, and those of a processor."""
    environment = {**os.environ, "MEMKIT_HOME": str(home), "MEMKIT_SERVICE_ENABLED": "false"}
    environment |= {"MEMKIT_EMBEDDING_PROVIDER": "none", "HOME": str(home)}
    began, before = time.monotonic(), os.times()
    command = [sys.executable, "-m", "memkit", *arguments, "--json"]
    environment["PYTHONPATH"] = str(REPOSITORY)
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
    now = os.times()
    used = now.children_user + now.children_system - before.children_user - before.children_system
    return time.monotonic() - began, used


def measure(place: Path, days: int, kind: str) -> dict[str, Any]:
    roots = [place / name / "shop" for name in ("laptop", "desk")]
    homes = [place / name / "home" for name in ("laptop", "desk")]
    there = place / "place"
    for root, home in zip(roots, homes, strict=True):
        root.mkdir(parents=True)
        home.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    there.mkdir()
    if kind == "git":
        subprocess.run(["git", "init", "-q", "--bare", str(there)], check=True)
    found = write_home(SyntheticMemory(7), roots[0], str(homes[0]), days, 1)
    _run(homes[1], roots[1], "remember", "a first note")
    _run(homes[1], roots[1], "index")  # the other machine knows the project
    _run(homes[1], roots[1], "sync", kind, str(there), "--yes")
    seconds = [_run(homes[0], roots[0], "sync", kind, str(there), "--yes"), _run(homes[1], roots[1], "sync")]
    assert len(list((roots[1] / ".memkit" / "memory").glob("*.md"))) == days + 1
    for home, root in zip(homes, roots, strict=True):  # the other's note; which archives are not one's own
        _run(home, root, "sync")
    seconds += [_run(home, root, "sync") for home, root in zip(homes, roots, strict=True)]
    day = sorted((roots[0] / ".memkit" / "memory").glob("*.md"))[-1]
    day.write_text(day.read_text(encoding="utf-8") + "\nAnd more.\n", encoding="utf-8")
    both = [_run(home, root, "sync") for home, root in zip(homes, roots, strict=True)]
    seconds.append((both[0][0] + both[1][0], both[0][1] + both[1][1]))
    return {"turns": found["turns"], "sessions": found["sessions"], **dict(zip(_STEPS, seconds, strict=True))}


def section(found: dict[str, Any], kind: str) -> str:
    limits = [FIRST_SECONDS, FIRST_SECONDS, IDLE_SECONDS, IDLE_SECONDS, 2 * IDLE_SECONDS]
    rows = []
    for name, most in zip(_STEPS, limits, strict=True):
        seconds, processor = found[name]
        rows.append([name, f"{seconds:.1f}", f"{processor:.1f}", f"≤ {most:.0f}"])
    text = (
        f"{found['turns']:,} turns in {found['sessions']:,} sessions, through a {kind} on the same disk; "
        f"two machines, a process each. {report.machine()}."
    )
    return "\n\n".join(("## Sync", text, report.table(["", "seconds", "of a processor", "limit"], rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure `memkit sync`.")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--kind", choices=["folder", "git"], default="folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memkit-sync-") as name:
        found = measure(Path(name).resolve(), arguments.days, arguments.kind)
    text = section(found, arguments.kind)
    report.publish("sync", found, text, as_json=arguments.json, write=arguments.write)


if __name__ == "__main__":
    main()
