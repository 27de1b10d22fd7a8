"""Measure `memkit sync` on 60,000 turns: the first run of two machines, and idle ones, a process each.

    python benchmarks/sync.py [--days N] [--kind folder|git] [--json] [--write]

Limits: a first run takes at most 60 s plus the transfer (the place is on this disk), an idle one 2 s. The
index of what came is another matter, and has a line of its own.
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
_STEPS = ("first, sending", "first, taking", "its index", "idle, sender", "idle, taker", "after a new day")
_SYNC = """
import os
from memkit.maintenance.sync import sync
from memkit.paths import Home
from memkit.settings.load import load
home = Home(os.environ["MEMKIT_HOME"])
assert not sync(home, lambda project: load(home).settings, print).problems
"""


def _run(home: Path, root: Path, place: str, *arguments: str) -> tuple[float, float]:
    """Run a command, or a sync without one; return the seconds it took, and those of a processor."""
    environment = {**os.environ, "MEMKIT_HOME": str(home), "MEMKIT_SERVICE_ENABLED": "false"}
    environment |= {"MEMKIT_EMBEDDING_PROVIDER": "none", "HOME": str(home), "MEMKIT_SYNC_PLACE": place}
    environment["PYTHONPATH"] = str(REPOSITORY)
    began, before = time.monotonic(), os.times()
    command = ["-m", "memkit", *arguments, "--json"] if arguments else ["-c", _SYNC]
    subprocess.run([sys.executable, *command], cwd=root, env=environment, check=True, capture_output=True)
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
    machines = [(home, root, f"{kind} {there}") for home, root in zip(homes, roots, strict=True)]
    for machine in machines:  # memkit knows the project
        _run(*machine, "remember", f"a first note in {machine[1]}")
        _run(*machine, "index")
    seconds = [_run(*machine) for machine in machines]
    assert len(list((roots[1] / ".memkit" / "memory").glob("*.md"))) == days + 2
    seconds.append(_run(*machines[1], "index"))
    for machine in machines:  # the other's note; which archives are not one's own
        _run(*machine, "sync")
    seconds += [_run(*machine, "sync") for machine in machines]
    day = sorted((roots[0] / ".memkit" / "memory").glob("*.md"))[-1]
    day.write_text(day.read_text(encoding="utf-8") + "\nAnd more.\n", encoding="utf-8")
    both = [_run(*machine, "sync") for machine in machines]
    seconds.append((both[0][0] + both[1][0], both[0][1] + both[1][1]))
    return {"turns": found["turns"], "sessions": found["sessions"], **dict(zip(_STEPS, seconds, strict=True))}


def section(found: dict[str, Any], kind: str) -> str:
    limits = [FIRST_SECONDS, FIRST_SECONDS, 0, IDLE_SECONDS, IDLE_SECONDS, 2 * IDLE_SECONDS]
    rows = []
    for name, most in zip(_STEPS, limits, strict=True):
        seconds, processor = found[name]
        rows.append([name, f"{seconds:.1f}", f"{processor:.1f}", f"≤ {most:.0f}" if most else "–"])
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
