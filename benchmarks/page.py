"""Measure the page of `memkit serve --open` in Chromium, which draws without a GPU.

    python benchmarks/page.py [--chunks 100000] [--nodes 2000] [--place DIRECTORY] [--write] [--json]

`--place` reuses a memory that growth.py made. The vectors of such a memory are random, so it has no topics:
the graph is one that this script makes. Needs the model in MEMKIT_HOME (any `memkit search` fetches it), and
chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import random
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
from itertools import pairwise
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
window.measured = {keys: [], answers: [], frames: []};
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
(function frame() { measured.frames.push(performance.now()); requestAnimationFrame(frame); })();
"""
"""Notes the times (ms) of keys, of answers as they are seen, and of frames."""


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


def made_graph(nodes: int) -> dict[str, Any]:
    """Return a graph as the server would: topics, 70% entries, files, and edges between them."""
    chance = random.Random(0)
    words = SyntheticMemory().questions(50, nodes)
    topics = [f"{number:08x}" for number in range(max(1, nodes // 50))]
    weights = [1 / (rank + 1) ** 0.7 for rank in range(len(topics))]
    found = [
        _node("topic", name, words[number][:40], name, size=20) for number, name in enumerate(topics)
    ]
    paths = [f"src/part_{number % 9}/module_{number}.py" for number in range(max(1, nodes // 4))]
    found += [_node("file", path, path, "", size=2) for path in paths]
    files = [f"file:{path}" for path in paths]
    edges = []
    for number in range(nodes - len(found)):
        topic = chance.choices(range(len(topics)), weights)[0]
        name, own = f"entry:{number:08x}", files[topic :: len(topics)]
        found.append(_node("entry", f"{number:08x}", words[number], topics[topic], "2026-11-20"))
        edges.append(_edge(name, f"topic:{topics[topic]}", "in"))
        near = [own if own and chance.random() < 0.8 else files for _ in range(chance.randint(0, 3))]
        edges += [_edge(name, file, "touches") for file in sorted({chance.choice(one) for one in near})]
    for one in range(1, len(topics)):
        edges.append(_edge(f"topic:{topics[one]}", f"topic:{topics[chance.randrange(one)]}", "related"))
    return {"nodes": found, "edges": edges, "all": nodes}


def _node(kind: str, name: str, label: str, topic: str, day: str = "", size: int = 1) -> dict[str, Any]:
    return {"id": f"{kind}:{name}", "kind": kind, "label": label, "topic": topic, "size": size, "day": day}


def _edge(one: str, other: str, kind: str) -> dict[str, Any]:
    return {"from": one, "to": other, "kind": kind, "weight": 1}


def frames(page: Page, begin: float, end: float) -> dict[str, float]:
    """Return frames a second between two times (ms), and the longest time without one, but for 1% of them."""
    times = [one for one in page.evaluate("measured.frames") if begin <= one <= end]
    gaps = [later - earlier for earlier, later in pairwise(times)] or [end - begin]
    gap = statistics.quantiles(gaps, n=100, method="inclusive")[98] if len(gaps) > 1 else gaps[0]
    return {"fps": 1000 * len(gaps) / (end - begin), "p99_ms": gap, "seconds": (end - begin) / 1000}


def graph(browser: Browser, address: str, access: str, nodes: int) -> dict[str, Any]:
    """Return frames a second of a graph while its layout runs, a node is dragged, and the map is moved."""
    made = json.dumps(made_graph(nodes))
    with tab(browser, access) as (context, page):
        context.route("**/graph?*", lambda route: route.fulfill(content_type="application/json", body=made))
        page.goto(f"{address}#/graph?all=1")
        page.locator(".graph-map").wait_for()
        begin = page.evaluate("performance.now()")
        page.locator(".graph-map[aria-busy=false]").wait_for(timeout=120_000)
        figures = {"layout": frames(page, begin, page.evaluate("performance.now()"))}
        box = page.locator("canvas").bounding_box()
        assert box is not None
        node = _over_a_node(page, box)
        for name, (x, y) in (("drag", node), ("pan", (box["x"] + 8, box["y"] + 8))):
            page.mouse.move(x, y)
            page.mouse.down()
            begin = page.evaluate("performance.now()")
            for step in range(120):
                page.mouse.move(x + step, y + step % 40)
            figures[name] = frames(page, begin, page.evaluate("performance.now()"))
            page.mouse.up()
    return {"nodes": nodes, **figures}


def _over_a_node(page: Page, box: Any) -> tuple[float, float]:
    for step in range(0, int(box["width"] / 2), 3):
        place = (box["x"] + box["width"] / 2 + step, box["y"] + box["height"] / 2)
        page.mouse.move(*place)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => done(0)))")
        if "is-over" in (page.locator("canvas").get_attribute("class") or ""):
            return place
    raise RuntimeError("no node was found on the map")


def measure(chunks: int, nodes: int, place: Path | None = None) -> dict[str, Any]:
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
                drawn = graph(browser, address, access, nodes)
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
        "graph": drawn,
        "load": os.getloadavg()[0],
    }


def bars(figures: dict[str, Any]) -> Iterator[Bar]:
    """Return the limits of the page."""
    yield Bar("first paint with the newest sessions", figures["paint_ms"]["rows"], 1000, "ms")
    yield Bar("a key to its results, median", figures["keys"]["p50_ms"], 150, "ms")
    for name in ("layout", "drag", "pan"):
        took = 1000 / figures["graph"][name]["fps"]
        yield Bar(f"time for a frame of the graph: {name}", took, 1000 / 30, "ms")


def markdown(figures: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    paint, keys, drawn = figures["paint_ms"], figures["keys"], figures["graph"]
    titles = {"layout": "nodes find their places", "drag": "a node is dragged", "pan": "the map is moved"}
    moving = [
        [title, f"{drawn[name]['fps']:.0f}", f"{drawn[name]['p99_ms']:.0f} ms"]
        for name, title in titles.items()
    ]
    return "\n\n".join(
        [
            "## The page",
            f"`python benchmarks/page.py --write`; {figures['machine']}; {figures['chunks']:,} chunks; "
            f"Chromium without a GPU on the same CPUs, load {figures['load']:.0f} at the end.",
            f"The first text is shown after {paint['text']:.0f} ms, the newest sessions after "
            f"{paint['rows']:.0f} ms (median of {RUNS} new tabs). From a key in the search field to its "
            f"results on the screen: {keys['p50_ms']:.0f} ms at the median, {keys['p95_ms']:.0f} ms at the "
            f"95th percentile of {keys['count']} keys.",
            f"The graph with {drawn['nodes']:,} nodes:",
            report.table(("while", "frames a second", "99% of frames within"), moving),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the page.")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--place", type=Path, help="a memory that growth.py made, of --chunks chunks")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.chunks, arguments.nodes, arguments.place and arguments.place.resolve())
    figures = {"machine": report.machine(), **found}
    report.publish("page", figures, markdown(figures), as_json=arguments.json, write=arguments.write)
    return 0 if all(bar.is_held for bar in bars(figures)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
