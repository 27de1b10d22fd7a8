"""Measure how fast the service answers, what it costs when idle, and how soon it finds a change.

    python benchmarks/service.py [--chunks 10000] [--runs 40] [--write] [--json]
    python benchmarks/service.py --load DIRECTORY [--requests 5000]

Whole processes alternate with `python3 -c pass`, so that a busy machine slows both. `--write` puts the
figures into docs/benchmarks.md. `--load` measures many clients alone, on a memory made by `growth.py`, and
prints JSON. Needs the model in MEMKIT_HOME (any `memkit search` fetches it).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import psutil  # noqa: E402
import report  # noqa: E402
import resources  # noqa: E402
from processes import Shell  # noqa: E402
from scale import child  # noqa: E402
from scale_report import Bar  # noqa: E402
from synthetic import SyntheticMemory  # noqa: E402

import hooks  # noqa: E402
from memkit.embedding import load_embedder  # noqa: E402
from memkit.errors import MemkitError  # noqa: E402
from memkit.hook.entries import note_own  # noqa: E402
from memkit.ipc.client import request  # noqa: E402
from memkit.journal.extracts import extract_line  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.settings import EmbeddingSettings  # noqa: E402

CLIENTS = 64
REQUESTS = 5000
IDLE_SECONDS = 60.0
SAVES = 5
FILES = 500
PATIENCE_SECONDS = 120.0

NOTE = (
    "Text: a synthetic memory (benchmarks/synthetic.py) with random vectors; questions and what is added "
    "get the model's. A whole `memkit` process is two starts of an interpreter. While the clients ask, a "
    "turn is added and indexed again and again."
)


class Service:
    """The service of the memory below `place`, started as a user starts it."""

    def __init__(self, place: Path) -> None:
        self.shell = Shell(place)
        self.shell.environment["MEMKIT_SERVICE_ENABLED"] = "true"
        self.home = Home(self.shell.environment["MEMKIT_HOME"])
        self.memory = self.shell.project / ".memkit" / "memory"

    def __enter__(self) -> Service:
        status = json.loads(self.shell.memkit("service", "start", "--json").output)
        self.process = psutil.Process(status["pid"])
        self.shell.memkit("search", "gateway")
        return self

    def __exit__(self, *exception: object) -> None:
        self.shell.memkit("service", "stop")

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Return its reply."""
        own = {"root": str(self.shell.project), **arguments}
        return request(self.home, operation, own, PATIENCE_SECONDS)

    def search(self, query: str, k: int = 5) -> list[dict[str, Any]]:
        """Return its results, whatever their relevance."""
        wanted = {"query": query, "k": k, "minimum": 0.0}
        results: list[dict[str, Any]] = self.ask("search", request=wanted, search={})["results"]
        return results

    @property
    def megabytes(self) -> float:
        """Return its memory in MB."""
        return float(self.process.memory_info().rss / 1e6)

    @property
    def cpu_seconds(self) -> float:
        """Return its CPU seconds so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


QUESTIONS = tuple(
    form.format(subject)
    for form in (
        "Which port does the {} use now?",
        "Why does the nightly build of the {} fail on macOS?",
        "How are the signing keys of the {} rotated?",
        "Who is on call for the {} this week?",
        "Where is the retry limit of the {} configured?",
    )
    for subject in (
        "staging gateway", "installer", "release pipeline", "billing database", "message queue",
        "search cluster", "invoice export", "login page",
    )
)  # fmt: skip
"""Prompts with an answer in the memory, for pointers. Random vectors would not give any.

An entry is shown twice a week at most, so there are many.
"""


POINTED = {"hook": "prompt_submit.py", "failure": "tool_failure.py", "edit": "pre_tool_use.py"}
"""The hooks that give pointers, and their scripts."""


def remember(service: Service) -> None:
    """Add a day that answers `QUESTIONS`, with the model's vectors."""
    turns = "".join(
        f"\n### 10:{number:02} {question} <!-- turn:{number:08x} -->\n"
        f"**Asked** {question}\n\n**Answered** It was settled: {question.lower()}\n"
        for number, question in enumerate(QUESTIONS)
    )
    decided = extract_line("Decided: the ledger keeps its region.", ["0000ffff"])
    path = service.memory / "2026-11-20.md"
    text = (
        f"# 2026-11-20\n\n## 10:00 Work <!-- session:5e55aaaa extract:0000ffff -->\n\n{decided}\n{turns}"
        "\n### 10:59 Fix the ledger <!-- turn:0000ffff -->\n**Did** Bash `bin/report` → failed: "
        "KeyError: no column region in ledger · Edit src/ledger.py · Bash `bin/report` → 3 rows\n\n"
        "**Answered** It works.\n"
    )
    note_own(service.home, str(service.shell.project), "", text)
    path.write_text(text, "utf-8")
    service.ask("index")


def processes(service: Service, questions: list[str], runs: int) -> dict[str, Any]:
    """Measure a warm search and the prompt hook, alternating with the bare interpreter."""
    shell = service.shell
    python = hooks.interpreter("python3")
    seconds: dict[str, list[float]] = {"bare": [], "search": [], **{name: [] for name in POINTED}}
    pointed = dict.fromkeys(POINTED, 0)
    for number in range(runs):
        question = questions[number % len(questions)]
        event = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": f"{number:08x}-6b1e-4a55-9a34-d6f1a5c9e001",
            "cwd": str(shell.project),
            "prompt_id": f"{number:08x}-2b7f-4c58-8c39-92a1b5c4d002",
            "prompt": QUESTIONS[number % len(QUESTIONS)],
        }
        ledger = {"file_path": str(shell.project / "src" / "ledger.py")}
        events = {
            "hook": event,
            "failure": {
                **event, "tool_name": "Bash", "tool_input": {"command": "bin/report"},
                "error": "Exit code 1\nKeyError: no column region in ledger",
            },
            "edit": {**event, "tool_name": "Edit", "tool_input": ledger},
        }  # fmt: skip
        started = time.perf_counter()
        subprocess.run([python, "-c", "pass"], env=shell.environment, check=True)
        seconds["bare"].append(time.perf_counter() - started)
        seconds["search"].append(shell.memkit("search", question).seconds)
        for name, script in POINTED.items():
            started = time.perf_counter()
            done = subprocess.run(
                [python, str(REPOSITORY / "hooks" / script)],
                input=json.dumps(events[name]).encode(),
                capture_output=True,
                env=shell.environment,
                cwd=shell.project,
                check=True,
            )
            seconds[name].append(time.perf_counter() - started)
            pointed[name] += b"Earlier work on this" in done.stdout
    return {
        **{name: resources.percentiles(values) for name, values in seconds.items()},
        "runs": runs,
        "pointed": pointed,
    }


@contextmanager
def meanwhile(function: Callable[[], Any]) -> Iterator[list[int]]:
    """Run `function` repeatedly in a thread. Yield a list that grows by one entry each time."""
    done, times = threading.Event(), list[int]()

    def run() -> None:
        while not done.is_set():
            function()
            times.append(len(times))

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(run)
        try:
            yield times
        finally:
            done.set()
        future.result()


def load(service: Service, questions: list[str], requests: int) -> dict[str, Any]:
    """Measure many clients at once while the index changes."""
    newest = max(service.memory.iterdir())

    def change() -> None:
        with newest.open("a", encoding="utf-8") as file:
            file.write(f"\n### 23:58 Another question\n**Asked** {time.time_ns()}\n")
        service.ask("index")

    def one(number: int) -> float | str:
        started = time.perf_counter()
        try:
            service.search(questions[number % len(questions)])
        except MemkitError as error:
            return str(error)
        return time.perf_counter() - started

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(one, range(CLIENTS * 4)))
        before, started = service.megabytes, time.perf_counter()
        with meanwhile(change) as passes:
            found = list(clients.map(one, range(requests)))
        seconds, after = time.perf_counter() - started, service.megabytes
    took = [value for value in found if isinstance(value, float)]
    return {
        "errors": [value for value in found if isinstance(value, str)],
        "p50_ms": statistics.median(took) * 1000,
        "p99_ms": statistics.quantiles(took, n=100)[-1] * 1000,
        "a_second": len(took) / seconds,
        "passes": len(passes),
        "before_mb": before,
        "after_mb": after,
    }


def _found(service: Service, word: str, count: int = 1) -> float:
    """Return the seconds until a search finds `count` chunks with `word`."""
    started = time.perf_counter()
    while time.perf_counter() - started < PATIENCE_SECONDS:
        results = service.search(word, count)
        if sum(word in result["chunk"]["content"] for result in results) >= count:
            return time.perf_counter() - started
        time.sleep(0.05)
    raise RuntimeError(f"{word} is not found after {PATIENCE_SECONDS:.0f} s")


def saves(service: Service) -> list[float]:
    """Return the seconds from an editor's save until a search finds it."""
    path, found = service.memory / "notes.md", []
    for number in range(SAVES):
        new = path.with_name(".notes.md.swp")
        new.write_text(f"# Notes\n\nThe newest is saved{number}quagga.\n", encoding="utf-8")
        os.replace(new, path)
        found.append(_found(service, f"saved{number}quagga"))
    return found


def checkout(service: Service) -> dict[str, float]:
    """Return the seconds from a git checkout of `FILES` files until a search finds the last one."""
    project, word = service.shell.project, "checkedoutquagga"
    directory = service.memory / "branch"

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=memkit", "-c", "user.email=memkit@localhost"]
        command = ["git", *identity, "-c", "core.hooksPath=/dev/null", *arguments]
        subprocess.run(command, cwd=project, check=True, capture_output=True)

    git("init", "-q", "-b", "empty")
    git("commit", "-q", "--allow-empty", "-m", "empty")
    git("checkout", "-q", "-b", "full")
    texts = [f"# File {n}\n\nIt is the {word} number {n}, of all that came." for n in range(FILES)]
    directory.mkdir()
    for number, text in enumerate(texts):
        (directory / f"file-{number}.md").write_text(text, encoding="utf-8")
    git("add", "-f", str(directory))
    git("commit", "-q", "-m", "full")
    git("checkout", "-q", "empty")
    service.ask("index")
    embedder = load_embedder(service.home, EmbeddingSettings(download=False))
    encoder, _ = resources.timed(embedder.embed, texts)
    git("checkout", "-q", "full")
    found = _found(service, word, FILES)
    again = service.ask("index")
    return {"encoder_seconds": encoder, "seconds": found, "embedded_again": again["embedded"]}


def idle(service: Service) -> dict[str, float]:
    """Measure memory and CPU without requests."""
    time.sleep(5.0)  # its last work: it closes the index some seconds later
    before = service.cpu_seconds
    time.sleep(IDLE_SECONDS)
    return {
        "cpu_seconds": service.cpu_seconds - before,
        "megabytes": service.megabytes,
        "torch": sum("torch" in one.path for one in service.process.memory_maps()),
    }


def measure(chunks: int, runs: int) -> dict[str, Any]:
    """Return all figures."""
    with tempfile.TemporaryDirectory(prefix="memkit-service-") as name:
        place = Path(name).resolve()
        built = child("growth", "--chunks", chunks, "--place", place)
        questions = SyntheticMemory().questions(built["days"], 50)
        with Service(place) as service:
            figures: dict[str, Any] = {"chunks": built["chunks"]}
            figures["idle"] = idle(service)
            remember(service)
            figures["processes"] = processes(service, questions, runs)
            figures["saves"] = saves(service)
            figures["checkout"] = checkout(service)
            figures["load"] = load(service, questions, REQUESTS)
    with tempfile.TemporaryDirectory(prefix="memkit-bench-") as name:
        stage = hooks.Stage(Path(name).resolve(), hooks.interpreter("python3"))
        figures["hooks"] = hooks.measure(stage, runs)
    return figures


def bars(figures: dict[str, Any]) -> Iterator[Bar]:
    """Return the limits of the design, section 9."""
    found, loaded, switched = figures["processes"], figures["load"], figures["checkout"]
    limits = {"search": (150.0, 250.0), **dict.fromkeys(POINTED, (60.0, 120.0))}
    titles = {
        "search": "memkit search, whole process",
        "hook": "prompt hook with pointers",
        "failure": "hook of a failed command with a pointer",
        "edit": "hook of an edit with a pointer",
    }
    for name, (median, high) in limits.items():
        yield Bar(f"{titles[name]}, p50", found[name]["p50_ms"], median, "ms")
        yield Bar(f"{titles[name]}, p95", found[name]["p95_ms"], high, "ms")
    yield Bar(f"{CLIENTS} clients, {REQUESTS:,} requests: errors", len(loaded["errors"]), 0, "")
    yield Bar("… p99", loaded["p99_ms"], 1000, "ms")
    yield Bar("… memory afterwards", loaded["after_mb"], 450, "MB")
    yield Bar("memory of the service", figures["idle"]["megabytes"], 450, "MB")
    yield Bar("torch in it", figures["idle"]["torch"], 0, "")
    yield Bar("saved file searchable", statistics.median(figures["saves"]), 3.0, "s")
    limit = 15.0 + switched["encoder_seconds"]
    yield Bar(f"{FILES} files of a checkout searchable", switched["seconds"], limit, "s")
    yield Bar("… embedded again by another pass", switched["embedded_again"], 0, "")
    for row in figures["hooks"]:
        yield Bar(f"hook {row['hook']}, no service, in starts", row["ratio"], hooks.MAX_RATIO, "×")


def markdown(figures: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    found, loaded = figures["processes"], figures["load"]
    rows = [
        [
            bar.what,
            f"{bar.measured:.3g} {bar.unit}".strip(),
            f"≤ {bar.limit:.3g} {bar.unit}".strip(),
            "yes" if bar.is_held else "**no**",
        ]
        for bar in bars(figures)
    ]
    bare = found["bare"]
    return "\n\n".join(
        [
            "## The service",
            f"`python benchmarks/service.py --write`; {figures['machine']}; "
            f"{figures['chunks']:,} chunks, {found['runs']} runs.",
            NOTE,
            report.table(("what", "measured", "limit", "held"), rows),
            f"The bare interpreter took {bare['p50_ms']:.0f} ms (p95 {bare['p95_ms']:.0f}) in between. "
            f"{found['pointed']['hook']} of {found['runs']} prompts got pointers, "
            f"{found['pointed']['failure']} failures, {found['pointed']['edit']} edits. {CLIENTS} clients "
            f"got {loaded['a_second']:.0f} answers a second (p50 {loaded['p50_ms']:.0f} ms) next to "
            f"{loaded['passes']} passes of the index; memory went from {loaded['before_mb']:.0f} to "
            f"{loaded['after_mb']:.0f} MB. Idle for {IDLE_SECONDS:.0f} s it used "
            f"{figures['idle']['cpu_seconds']:.2f} s of a CPU.",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the service.")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--load", type=Path, metavar="DIRECTORY", help="measure many clients alone")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of many clients alone")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.load:
        with Service(arguments.load.resolve()) as service:
            days = len(list(service.memory.iterdir()))
            questions = SyntheticMemory().questions(days, 50)
            print(json.dumps(load(service, questions, arguments.requests)))
        return 0
    figures = {"machine": report.machine(), **measure(arguments.chunks, arguments.runs)}
    report.publish("service", figures, markdown(figures), as_json=arguments.json, write=arguments.write)
    return 0 if all(bar.is_held for bar in bars(figures)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
