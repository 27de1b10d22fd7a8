"""Measure `memkit serve` with many clients at once.

    python benchmarks/serving.py [--chunks 10000] [--clients 256] [--seconds 60] [--place DIRECTORY] [--write]

Each client has a connection of its own and asks again as soon as it has an answer, or when it may after a
429. First one client asks for the timeline and sessions, in turn with a bare Starlette route on the same
server. Then many search: all have one key with a high rate, then one with the usual rate. Needs the model
in MEMKIT_HOME (any `memkit search` fetches it). The memory that it made in `DIRECTORY` serves again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import psutil  # noqa: E402
import report  # noqa: E402
from processes import Shell  # noqa: E402
from scale import child  # noqa: E402
from scale_report import Bar  # noqa: E402
from synthetic import SyntheticMemory  # noqa: E402

from memkit.paths import Home  # noqa: E402
from memkit.serve.keys import Keys  # noqa: E402
from memkit.serve.server import RATE  # noqa: E402

MANY = 1_000_000
EXPECTED = frozenset((200, 429))
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")
_RETRY = re.compile(rb"\r\nretry-after: (\d+)\r\n")
MOST_PATIENCE = 2.0
"""The longest wait after a 429, in seconds. The server may ask for a minute."""

READING = ("/timeline", "/timeline/all/children", "/sessions")
READERS, ROUNDS, ROUND_SECONDS = 8, 5, 1.0
LEAST_SHARE = 0.2
"""The least rate of `READING`, as a share of that of a bare Starlette route in the same run."""

MOST_SEARCH_MS = 20.0


class Server:
    """`memkit serve` of the memory below `place`, with the background service."""

    def __init__(self, shell: Shell, rate: int) -> None:
        program = [sys.executable, str(REPOSITORY / "bin" / "memkit")]
        command = [*program, "serve", "--port", "0", "--rate", str(rate)]
        log = shell.project.parent / "serve.log"  # not a pipe, whose reader would take time of the CPUs
        with log.open("w") as file:
            self.process = subprocess.Popen(command, cwd=shell.project, env=shell.environment, stderr=file)
        while (found := re.search(r":(\d+);", log.read_text())) is None:
            if self.process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        self.port = int(found[1])

    @property
    def megabytes(self) -> float:
        """Return its memory in MB, with that of `bin/memkit` where it still runs."""
        own = psutil.Process(self.process.pid)
        return float(sum(one.memory_info().rss for one in (own, *own.children(recursive=True))) / 1e6)

    def stop(self) -> int:
        """End it, and return its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Bare:
    """A server of one Starlette route that does nothing, configured as memkit's."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--bare"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @staticmethod
    def run() -> None:
        """Print the port, and answer until a signal."""
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        from memkit.serve.running import listening, run

        async def answer(request: Any) -> JSONResponse:
            return JSONResponse({"status": "SERVING"})

        with listening("127.0.0.1", 0) as bound:
            print(bound.getsockname()[1], flush=True)
            run(Starlette(routes=[Route("/timeline", answer)]), bound, lambda: None)

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@contextmanager
def serving(shell: Shell, rate: int) -> Iterator[Server]:
    """Yield a server. Raise `RuntimeError` if it does not end well."""
    server = Server(shell, rate)
    try:
        yield server
    finally:
        status = server.stop()
    if status:
        raise RuntimeError(f"the server ended with {status}")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, float]:
    """Return the status, and the seconds to wait before the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    status, length = _STATUS.match(head), _LENGTH.search(head)
    assert status is not None and length is not None, head
    await reader.readexactly(int(length[1]))
    retry = _RETRY.search(head)
    return int(status[1]), min(float(retry[1]), MOST_PATIENCE) if retry else 0.0


async def _client(
    port: int, key: str, paths: list[str], first: int, end: float, found: list[tuple[int, float]],
    errors: Counter[str],
) -> None:  # fmt: skip
    number = first
    while time.perf_counter() < end:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            errors[f"connect: {type(error).__name__}"] += 1
            await asyncio.sleep(0.1)
            continue
        try:
            while time.perf_counter() < end:
                path = paths[number % len(paths)]
                number += 1
                started = time.perf_counter()
                lines = f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {key}"
                writer.write("\r\n".join([*lines, "", ""]).encode())
                status, pause = await _answer(reader)
                found.append((status, time.perf_counter() - started))
                await asyncio.sleep(pause)
        except (OSError, asyncio.IncompleteReadError) as error:
            errors[type(error).__name__] += 1
        finally:
            writer.close()


async def storm(port: int, key: str, paths: list[str], clients: int, seconds: float) -> dict[str, Any]:
    """Run `clients` clients for `seconds`. Return counts by status, errors, and latencies.

    Requests in progress at the end are completed and counted.
    """
    found: list[tuple[int, float]] = []
    errors: Counter[str] = Counter()
    started = time.perf_counter()
    await asyncio.gather(
        *(
            _client(port, key, paths, number * 7, started + seconds, found, errors)
            for number in range(clients)
        )
    )
    took = [one * 1000 for status, one in found if status == 200] or [0.0, 0.0]
    return {
        "statuses": dict(Counter(str(status) for status, _ in found)),
        "errors": dict(errors),
        "p50_ms": statistics.median(took),
        "p99_ms": statistics.quantiles(took, n=100, method="inclusive")[-1],
        "a_second": len(found) / (time.perf_counter() - started),
    }


def shares(port: int, key: str) -> dict[str, dict[str, float]]:
    """Return the rate of each path of `READING`, and its share of that of a bare route, asked in turn."""
    rates: dict[str, list[float]] = {path: [] for path in ("bare", *READING)}
    with Bare() as bare:
        for _ in range(ROUNDS):
            for path, found in rates.items():
                place = (bare.port, "/timeline") if path == "bare" else (port, path)
                asked = asyncio.run(storm(place[0], key, [place[1]], READERS, ROUND_SECONDS))
                if set(asked["statuses"]) != {"200"} or asked["errors"]:
                    raise RuntimeError(f"{path}: {asked}")
                found.append(asked["a_second"])
    middle = {path: statistics.median(found) for path, found in rates.items()}
    return {path: {"a_second": rate, "share": rate / middle["bare"]} for path, rate in middle.items()}


def measure(chunks: int, clients: int, seconds: float, place: Path) -> dict[str, Any]:
    """Return all figures of a memory below `place`, which is made if it is not there."""
    known = place / "built.json"
    if not known.exists():
        known.write_text(json.dumps(child("growth", "--chunks", chunks, "--place", place)))
    built = json.loads(known.read_text())
    shell = Shell(place)
    shell.environment["MEMKIT_SERVICE_ENABLED"] = "true"
    questions = SyntheticMemory().questions(built["days"], 50)
    paths = [f"/memory/search?query={quote(one)}&limit=5" for one in questions]
    _, key = Keys(Home(shell.environment["MEMKIT_HOME"])).create("benchmark", "read")
    shell.memkit("service", "start")
    figures: dict[str, Any] = {"chunks": built["chunks"], "clients": clients, "seconds": seconds}
    try:
        with serving(shell, MANY) as server:
            asyncio.run(storm(server.port, key, paths, 4, min(2.0, seconds)))
            figures["shares"] = shares(server.port, key)
            figures["alone"] = asyncio.run(storm(server.port, key, paths, 1, min(5.0, seconds)))
            figures["many"] = asyncio.run(storm(server.port, key, paths, clients, seconds))
            figures["megabytes"] = server.megabytes
        with serving(shell, RATE) as server:
            figures["limited"] = asyncio.run(storm(server.port, key, paths, clients, seconds))
    finally:
        shell.memkit("service", "stop")
    return figures


def bars(figures: dict[str, Any]) -> Iterator[Bar]:
    """Return the limits: no failure but 429, answers to some at least, and the speed of reading."""
    for path in READING:
        share = figures["shares"][path]["share"]
        yield Bar(f"{path}: share of the rate of a bare route", share, LEAST_SHARE, "", is_least=True)
    yield Bar("search, 1 client: p50", figures["alone"]["p50_ms"], MOST_SEARCH_MS, "ms")
    for name, title in (("many", "high rate"), ("limited", f"{RATE} requests a minute")):
        storm = figures[name]
        others = sum(count for status, count in storm["statuses"].items() if int(status) not in EXPECTED)
        failed = others + sum(storm["errors"].values())
        yield Bar(f"{figures['clients']} clients, {title}: failures other than 429", failed, 0, "")
        answered = storm["statuses"].get("200", 0)
        yield Bar(f"{figures['clients']} clients, {title}: answers", answered, 1, "", is_least=True)


def markdown(figures: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    rows = []
    for name, title in (
        ("alone", "1 client"),
        ("many", f"{figures['clients']} clients, high rate"),
        ("limited", f"{figures['clients']} clients, {RATE} requests a minute"),
    ):
        one = figures[name]
        counts = ", ".join(f"{count:,} × {status}" for status, count in sorted(one["statuses"].items()))
        failed = ", ".join(f"{count} × {error}" for error, count in one["errors"].items())
        latency = [f"{one['p50_ms']:,.0f} ms", f"{one['p99_ms']:,.0f} ms"]
        rows.append([title, counts, failed or "0", f"{one['a_second']:,.0f}", *latency])
    reading = ", ".join(f"`{path}` {figures['shares'][path]['share']:.2f}" for path in READING)
    header = ("", "answers", "failures", "a second", "p50 of 200", "p99 of 200")
    return "\n\n".join(
        [
            "## HTTP",
            f"`python benchmarks/serving.py --write`; {figures['machine']}; {figures['chunks']:,} chunks, "
            f"{figures['seconds']:.0f} s each.",
            "`GET /memory/search` through `memkit serve` and the background service. Each client asks again "
            "as soon as it has an answer, or after the `Retry-After` of a 429 (at most 2 s). With many, the "
            "latency is the time in the queue, which has 16 requests of a key at most. The clients run "
            "on the same CPUs.",
            report.table(header, rows),
            f"The rate of reading, as a share of that of a bare Starlette route in the same run: {reading}.",
            f"The server then held {figures['megabytes']:.0f} MB.",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the HTTP API.")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--place", type=Path, help="keep the memory there")
    parser.add_argument("--bare", action="store_true", help="only serve one route that does nothing")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.bare:
        Bare.run()
        return 0
    with tempfile.TemporaryDirectory(prefix="memkit-serving-") as name:
        place = (arguments.place or Path(name)).resolve()
        found = measure(arguments.chunks, arguments.clients, arguments.seconds, place)
    figures = {"machine": report.machine(), **found}
    report.publish("serving", figures, markdown(figures), as_json=arguments.json, write=arguments.write)
    return 0 if all(bar.is_held for bar in bars(figures)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
