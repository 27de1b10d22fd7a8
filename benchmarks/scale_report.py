"""Show the figures of scale.py as tables, as a section of docs/benchmarks.md, and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import report

PICTURE = "scale.png"
BAR_CHUNKS = 10_000

BARS_MS = {10_000: {"whole": 10.0, "bm25": 1.0}, 100_000: {"whole": 30.0, "bm25": 5.0}}
"""Limits of a search in a warm process, and of BM25 alone, at the median, by size."""

TURN_SECONDS = 0.3
TURN_MB = 5.0
DAY_MB = 1000.0
BUILD_MB = 600.0
COLD_SECONDS = 0.6
SERVICE_MB = 450.0
CHROMA_MB = 70.0
"""Limits that hold at 10,000 and at 100,000 chunks; the last two at 10,000."""

NOTE = (
    "Text: a synthetic memory (benchmarks/synthetic.py). The vectors of its chunks are random; those of "
    "questions, of added turns and of the comparison with the bare encoder are the model's. BM25's own "
    "memory is what the process held at most, less what it held with the text read."
)

Figures = dict[str, Any]
Table = tuple[str, Sequence[str], list[list[str]]]


class Bar(NamedTuple):
    """A limit: its name, the measured number, and the limit, in `unit`."""

    what: str
    measured: float
    limit: float
    unit: str
    is_least: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the measured number is within the limit."""
        return self.measured >= self.limit if self.is_least else self.measured <= self.limit


def bars(figures: Figures) -> Iterator[Bar]:
    """Return the limits of the design, section 9, for the measured sizes."""
    from processes import BARS_SECONDS

    for size in figures["sizes"]:
        asked = size["chunks"]
        for chunks, limits in BARS_MS.items():
            if _is_about(asked, chunks):
                stages = size["stages"]
                whole, bm25 = stages["whole search"]["p50_ms"], size["engines"][0]["p50_ms"]
                yield Bar(
                    f"search in a warm process, {asked:,} chunks", whole, limits["whole"], "ms"
                )
                yield Bar(f"BM25 query alone, {asked:,} chunks", bm25, limits["bm25"], "ms")
                yield from _growth_bars(size)
        if _is_about(asked, BAR_CHUNKS):
            unchanged, process = size["processes"]["unchanged"], size["processes"]
            yield Bar("re-index of an unchanged tree", unchanged["seconds"], 2.0, "s")
            yield Bar("… chunks embedded", unchanged["embedded"], 0, "")
            yield Bar("… model loaded", unchanged["model_loaded"], 0, "")
            yield Bar("memory of a process that searches", process["search_peak_mb"], 450, "MB")
            yield Bar("memory of the service after many clients", size["load"]["after_mb"], SERVICE_MB, "MB")
            yield Bar("Chroma on disk", size["chroma_mb"], CHROMA_MB, "MB")
            for command, limit in BARS_SECONDS.items():
                seconds = process["commands"][command]
                yield Bar(f"memkit {command}, whole process", seconds, limit, "s")
    ratio = figures["throughput"]["ratio"]
    yield Bar("indexing against the bare encoder", ratio, 0.8, "×", is_least=True)


def _growth_bars(size: Figures) -> Iterator[Bar]:
    """Return the limits of what may not grow with the memory."""
    day = size["day"]
    yield Bar("… appended turn searchable, warm", size["searchable"]["p50_ms"] / 1000, TURN_SECONDS, "s")
    yield Bar("… written by a turn, median", day["turn_mb"], TURN_MB, "MB")
    yield Bar("… written by a turn, the most", day["most_mb"], TURN_MB, "MB")
    yield Bar(f"… written by {day['turns']} turns and their merges", day["written_mb"], DAY_MB, "MB")
    yield Bar("… memory of a first build", size["build_peak_mb"], BUILD_MB, "MB")
    cold = size["processes"]["commands"]["search"]
    yield Bar("… memkit search without the service", cold, COLD_SECONDS, "s")


def _is_about(found: int, wanted: int) -> bool:
    """Return whether two sizes match. A memory ends with a whole day, so it has a few more chunks."""
    return wanted <= found < 1.2 * wanted


def tables(figures: Figures) -> Iterator[Table]:
    """Return title, header, and rows of each table."""
    sizes = figures["sizes"]
    counts = [f"{size['chunks']:,}" for size in sizes]

    def row(name: str, value: Callable[[Figures], str]) -> list[str]:
        return [name, *(value(size) for size in sizes)]

    def both(found: Figures) -> str:
        return f"{found['p50_ms']:.2f} / {found['p95_ms']:.2f}"

    yield (
        "Numbers to hold",
        ("what", "measured", "limit", "held"),
        [
            [
                bar.what,
                f"{bar.measured:.3g} {bar.unit}".strip(),
                f"{'≥' if bar.is_least else '≤'} {bar.limit:g} {bar.unit}".strip(),
                "yes" if bar.is_held else "**no**",
            ]
            for bar in bars(figures)
        ],
    )
    stages = list(sizes[0]["stages"])
    yield (
        "Search in a warm process, p50 / p95 in ms",
        ("chunks", *counts),
        [row(stage, lambda size, stage=stage: both(size["stages"][stage])) for stage in stages],  # type: ignore[misc]
    )
    yield (
        "Lexical engines on the same text, query p50 / p95 in ms",
        ("engine", *counts),
        [
            row(engine["engine"], lambda size, n=n: both(size["engines"][n]))  # type: ignore[misc]
            for n, engine in enumerate(sizes[0]["engines"])
        ],
    )
    yield (
        "Lexical engines, building in s, memory and disk in MB",
        ("engine", *counts),
        [
            row(engine["engine"], lambda size, n=n: _room(size["engines"][n]))  # type: ignore[misc]
            for n, engine in enumerate(sizes[0]["engines"])
        ],
    )
    yield (
        "Building and keeping",
        ("chunks", *counts),
        [
            row("vectors", lambda size: f"{size['vectors']:,}"),
            row("building without the model, s", lambda size: f"{size['build_seconds']:.1f}"),
            row("… memory, MB", lambda size: f"{size['build_peak_mb']:.0f}"),
            row("… written to files / to disk, MB", lambda size: _written(size, "build_")),
            row("update of one file, ms", lambda size: both(size["update"])),
            row("… and found by a search, ms", lambda size: both(size["searchable"])),
            row("… with the index opened for it, ms", lambda size: both(size["opened"])),
            row("… median and most written, MB", lambda size: _turn(size["day"])),
            row("a day of turns, written to files / to disk, MB", lambda size: _written(size["day"])),
            row("… of these, what brings the day to Chroma: MB, s", lambda size: _stored(size["day"])),
            row("… merges", lambda size: f"{size['day']['merges']}"),
            row("markdown, MB", lambda size: f"{size['markdown_mb']:.1f}"),
            row("Chroma, MB", lambda size: f"{size['chroma_mb']:.1f}"),
            row("snapshot, MB", lambda size: f"{size['snapshot_mb']:.1f}"),
            row("memkit timeline, nothing kept, s", lambda size: f"{size['timeline_cold_seconds']:.2f}"),
            row("… with what is kept, s", lambda size: f"{size['timeline_kept_seconds']:.2f}"),
            row("… in a warm process, ms", lambda size: f"{size['timeline_warm_ms']:.0f}"),
            row("… after an appended turn, ms", lambda size: f"{size['timeline_appended_ms']:.0f}"),
            row("searching, memory, MB", lambda size: f"{size['processes']['search_peak_mb']:.0f}"),
        ],
    )
    yield (
        "Whole processes, median in s (in starts of the bare interpreter)",
        ("chunks", *counts),
        [
            row(f"memkit {name}", lambda size, name=name: _process(size, name))  # type: ignore[misc]
            for name in sizes[0]["processes"]["commands"]
        ],
    )


def _room(engine: Figures) -> str:
    disk = f"{engine['disk_mb']:.1f}" if engine["disk_mb"] else "–"
    return f"{engine['build_seconds']:.1f}, {engine['peak_mb']:.0f}, {disk}"


def _written(found: Figures, prefix: str = "") -> str:
    return f"{found[f'{prefix}written_mb']:.0f} / {found[f'{prefix}on_disk_mb']:.0f}"


def _turn(day: Figures) -> str:
    return f"{day['turn_mb']:.2f}, {day['most_mb']:.1f}"


def _stored(day: Figures) -> str:
    return f"{day['store_mb']:.0f}, {day['store_seconds']:.2f}"


def _process(size: Figures, name: str) -> str:
    seconds, bare = size["processes"]["commands"][name], size["processes"]["bare_seconds"]
    return f"{seconds:.2f} ({seconds / bare:.0f})"


def _throughput(figures: Figures) -> str:
    found = figures["throughput"]
    return (
        f"Indexing {found['chunks']} chunks ({found['windows']} windows) with the model took "
        f"{found['indexing_seconds']:.1f} s, the encoder alone {found['encoder_seconds']:.1f} s on the "
        f"same text: {found['ratio']:.0%} of its throughput."
    )


def show(figures: Figures) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(highlight=False)
    console.print(f"{figures['machine']}\n{NOTE}\n")
    for title, header, rows in tables(figures):
        shown = RichTable(title=title, title_justify="left")
        for number, name in enumerate(header):
            shown.add_column(name, justify="right" if number else "left")
        for cells in rows:
            shown.add_row(*(cell.replace("**", "") for cell in cells))
        console.print(shown)
    console.print(_throughput(figures))


def markdown(figures: Figures) -> str:
    """Return the section of docs/benchmarks.md."""
    parts = [
        "## Growth",
        f"`python benchmarks/scale.py --write`; {figures['machine']}.",
        NOTE,
        f"![Search, update, and disk use as the memory grows]({PICTURE})",
    ]
    for title, header, rows in tables(figures):
        parts += [f"### {title}", report.table(header, rows)]
    return "\n\n".join([*parts, _throughput(figures)])


def draw(figures: Figures, path: Path) -> None:
    """Draw the growth curves on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes = figures["sizes"]
    chunks = [size["chunks"] for size in sizes]
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for stage in sizes[0]["stages"]:
        axes[0].plot(chunks, [size["stages"][stage]["p50_ms"] for size in sizes], "o-", label=stage)
    axes[0].set(title="A search, median", ylabel="ms")
    for number, engine in enumerate(sizes[0]["engines"]):
        values = [size["engines"][number]["p50_ms"] for size in sizes]
        axes[1].plot(chunks, values, "o-", label=engine["engine"])
    axes[1].set(title="A lexical query, median", ylabel="ms")
    for name in ("markdown_mb", "chroma_mb", "snapshot_mb"):
        label = f"{name.removesuffix('_mb')} on disk"
        axes[2].plot(chunks, [size[name] for size in sizes], "o-", label=label)
    searching = [size["processes"]["search_peak_mb"] for size in sizes]
    axes[2].plot(chunks, searching, "o-", label="memory of a search")
    axes[2].set(title="Room", ylabel="MB")
    for axis in axes:
        axis.set(xscale="log", yscale="log", xlabel="chunks")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
