"""Measure memory, disk, and the time of repeated work."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_LAUNCHER = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
done = subprocess.run(json.loads(sys.argv[1]), input=sys.stdin.buffer.read(), capture_output=True)
seconds = time.perf_counter() - started
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = usage.ru_utime + usage.ru_stime
said = [done.stdout.decode(), done.stderr.decode()]
print(json.dumps([done.returncode, seconds, cpu, usage.ru_maxrss, *said]))
"""
"""On Linux a process starts with its parent's peak memory, so a small process starts it."""


def megabytes(maximum: int) -> float:
    """Convert `ru_maxrss` to MB. It counts kilobytes, but bytes on macOS."""
    return maximum / (1e6 if sys.platform == "darwin" else 1e3)


def own_peak() -> float:
    """Return this process's peak memory so far, in MB."""
    return megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def written(*, to_disk: bool = False) -> float:
    """Return the megabytes that this process has written so far; 0 where the system does not count them.

    That is all that it gave to the system: temporary files, and a page as often as it is written. `to_disk`
    counts what the system had to bring to a disk.
    """
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    counts = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    if to_disk:
        return (counts["write_bytes"] - counts["cancelled_write_bytes"]) / 1e6
    return counts["wchar"] / 1e6


def disk(path: Path) -> float:
    """Return the size of a file, or of all files below a directory, in MB."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and 95th percentile in ms."""
    return {
        "p50_ms": statistics.median(seconds) * 1000,
        "p95_ms": statistics.quantiles(seconds, n=20, method="inclusive")[-1] * 1000,
    }


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the seconds and the result of `function`."""
    started = time.perf_counter()
    value = function(*arguments)
    return time.perf_counter() - started, value


class Finished:
    """A finished process: seconds, CPU seconds, peak memory in MB, and output."""

    def __init__(self, seconds: float, cpu: float, peak: float, output: str) -> None:
        self.seconds = seconds
        self.cpu = cpu
        self.peak = peak
        self.output = output


def run(
    command: Sequence[str],
    *,
    given: str = "",
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run one whole process. Raise `RuntimeError` with its output if it fails."""
    launched = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCHER, json.dumps(list(command))],
        input=given.encode(),
        stdout=subprocess.PIPE,
        cwd=cwd,
        env=environment,
        check=True,
    )
    status, seconds, cpu, peak, output, errors = json.loads(launched.stdout)
    if status:
        raise RuntimeError(f"{' '.join(command)}: exit {status}: {errors[-2000:]}")
    return Finished(seconds, cpu, megabytes(peak), output)
