"""Measure the page of `memkit serve --open` in Chromium, which draws without a GPU.

    python benchmarks/page.py [--chunks 100000] [--place DIRECTORY] [--write] [--json]

`--place` reuses a memory that growth.py made. Needs the model in MEMKIT_HOME (any `memkit search` fetches
it), and chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import report  # noqa: E402
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright  # noqa: E402
from processes import Shell  # noqa: E402
from scale import child  # noqa: E402
from scale_report import Bar  # noqa: E402
from synthetic import SyntheticMemory  # noqa: E402

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"
]  # fmt: skip
RUNS = 5
LINK = re.compile(r"open (http://\S+/)#token=(\S+)")

WATCH = """
window.measured = {keys: [], answers: []};
addEventListener("keydown", () => measured.keys.push(performance.now()), true);
const ask = fetch;
window.fetch = async (...given) => {
  const response = await ask(...given);
  if (/memory\\/search/.test(given[0])) {
    const read = response.json.bind(response);
    response.json = async () => {
      const value = await read();
      // The second frame begins when the first one, with the results, has been drawn.
      requestAnimationFrame(() => requestAnimationFrame(() => measured.answers.push(performance.now())));
      return value;
    };
  }
  return response;
};
"""
"""Notes the times (ms) of keys, and of answers as they are seen."""


@contextmanager
def serving(shell: Shell) -> Iterator[tuple[str, str]]:
    """Yield the address of `memkit serve --open`, and what the page keeps in its storage."""
    program = [sys.executable, str(REPOSITORY / "bin" / "memkit"), "serve", "--open", "--port", "0"]
    environment = {**shell.environment, "BROWSER": "true"}
    process = subprocess.Popen(program, cwd=shell.project, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    rest = None
    try:
        lines = [process.stderr.readline(), process.stderr.readline()]
        found = LINK.search("".join(lines))
        if found is None:
            raise RuntimeError("".join(lines))
        rest = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        body = json.dumps({"token": found[2]}).encode()
        _wait_for(f"{found[1]}health")
        asked = urllib.request.Request(f"{found[1]}page/key", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            yield found[1], answer.read().decode()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        if rest is not None:
            rest.wait(60)


def _wait_for(address: str) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(address, timeout=10).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@contextmanager
def tab(browser: Browser, access: str) -> Iterator[tuple[BrowserContext, Page]]:
    """Yield a new tab that has the key."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(f"localStorage.setItem('memkit.access', {access!r})")
    context.add_init_script(WATCH)
    try:
        yield context, context.new_page()
    finally:
        context.close()


def first_paint(browser: Browser, address: str, access: str) -> dict[str, float]:
    """Return ms from the request of the page to the first text, and to the first sessions, in a new tab."""
    with tab(browser, access) as (_, page):
        page.goto(address)
        page.locator("main .row").first.wait_for(timeout=60_000)
        rows = page.evaluate("new Promise((done) => requestAnimationFrame(() => done(performance.now())))")
        text = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return {"text": float(text), "rows": float(rows)}


def typing(browser: Browser, address: str, access: str, questions: list[str]) -> list[float]:
    """Type questions, and return ms from each key to its results on the screen.

    Each key waits for the results of the one before it. A key that asks for nothing new is left out.
    """
    found = []
    with tab(browser, access) as (_, page):
        page.goto(address)
        field = page.get_by_role("searchbox")
        field.wait_for()
        for question in questions:
            field.fill("")
            for letter in question[:24]:
                before = page.evaluate("measured.answers.length")
                field.press_sequentially(letter)
                took = page.evaluate(
                    """async (before) => {
                        const end = performance.now() + 3000;
                        while (measured.answers.length === before && performance.now() < end)
                            await new Promise((done) => setTimeout(done, 5));
                        if (measured.answers.length === before) return null;
                        return measured.answers.at(-1) - measured.keys.at(-1);
                    }""",
                    before,
                )
                if took is not None:
                    found.append(float(took))
    return found


def measure(chunks: int, place: Path | None = None) -> dict[str, Any]:
    """Return all figures."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("benchmarks/page.py needs chromium")
    with tempfile.TemporaryDirectory(prefix="memkit-page-") as name:
        if place is None:
            place = Path(name).resolve()
            chunks = child("growth", "--chunks", chunks, "--place", place)["chunks"]
        shell = Shell(place)
        shell.environment["MEMKIT_SERVICE_ENABLED"] = "true"
        days = len(list((place / "project" / ".memkit" / "memory").glob("*-*-*.md")))
        questions = SyntheticMemory().questions(days, 6)
        shell.memkit("service", "start")
        try:
            with serving(shell) as (address, access), sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
                first_paint(browser, address, access)  # the timeline is read, and kept from then on
                paints = [first_paint(browser, address, access) for _ in range(RUNS)]
                typing(browser, address, access, questions[:1])
                keys = typing(browser, address, access, questions[1:])
                browser.close()
        finally:
            shell.memkit("service", "stop")
    return {
        "chunks": chunks,
        "paint_ms": {each: statistics.median(one[each] for one in paints) for each in ("text", "rows")},
        "keys": {
            "count": len(keys),
            "p50_ms": statistics.median(keys),
            "p95_ms": statistics.quantiles(keys, n=20, method="inclusive")[-1],
        },
        "load": os.getloadavg()[0],
    }


def bars(figures: dict[str, Any]) -> Iterator[Bar]:
    """Return the limits of the page."""
    yield Bar("first paint with the newest sessions", figures["paint_ms"]["rows"], 1000, "ms")
    yield Bar("a key to its results, median", figures["keys"]["p50_ms"], 150, "ms")


def markdown(figures: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    paint, keys = figures["paint_ms"], figures["keys"]
    return "\n\n".join(
        [
            "## The page",
            f"`python benchmarks/page.py --write`; {figures['machine']}; {figures['chunks']:,} chunks; "
            f"Chromium without a GPU on the same CPUs, load {figures['load']:.0f} at the end.",
            f"The first text is shown after {paint['text']:.0f} ms, the newest sessions after "
            f"{paint['rows']:.0f} ms (median of {RUNS} new tabs). From a key in the search field to its "
            f"results on the screen: {keys['p50_ms']:.0f} ms at the median, {keys['p95_ms']:.0f} ms at the "
            f"95th percentile of {keys['count']} keys.",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the page.")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--place", type=Path, help="a memory that growth.py made, of --chunks chunks")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.chunks, arguments.place and arguments.place.resolve())
    figures = {"machine": report.machine(), **found}
    report.publish("page", figures, markdown(figures), as_json=arguments.json, write=arguments.write)
    return 0 if all(bar.is_held for bar in bars(figures)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
