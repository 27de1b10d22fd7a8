"""Measure one size of memory in its own process: build, update, search, memory, and disk.

    python benchmarks/growth.py --chunks N --place DIRECTORY [--turns N] [--timeline DAYS]

`DIRECTORY/project` gets a synthetic memory and `DIRECTORY/home` its index. Both stay for later measurements.
Prints one JSON object. The memory's vectors are random (see `RandomEmbedder`). Questions and added turns get
real ones. With `--timeline`, it measures only the timeline of that number of days and needs no model.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import numpy as np  # noqa: E402
import resources  # noqa: E402
from synthetic import SyntheticMemory, write_memory  # noqa: E402

from memkit.embedding import Embedder, load_embedder  # noqa: E402
from memkit.index import Indexer, index_lock, open_snapshot  # noqa: E402
from memkit.index.snapshot import Snapshot  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.projects.project import Project  # noqa: E402
from memkit.search import fusion  # noqa: E402
from memkit.search.corpus import Corpus  # noqa: E402
from memkit.search.ranking import Searcher  # noqa: E402
from memkit.search.results import SearchRequest  # noqa: E402
from memkit.settings import EmbeddingSettings  # noqa: E402
from memkit.settings.load import Settings  # noqa: E402
from memkit.timeline.tree import open_timeline  # noqa: E402
from memkit.timeline.view import view  # noqa: E402

QUESTIONS = 100
UPDATES = 5
TURNS = 200
"""The turns of a busy day."""
WINDOW_CHARACTERS = 800
"""Characters of synthetic text in one window of the model: 254 tokens of about 3.1 characters."""

STAGES: list[tuple[str, Any, str]] = [
    ("tokenise + BM25", Corpus, "lexical"),
    ("dense scores", Corpus, "cosines"),
    ("fusion", fusion, "fuse"),
    ("reading results", Corpus, "chunk"),
]
"""Stages of a search: a name, and the function to time, with its owner. `embed_query` of the embedder
embeds the question.
"""


class RandomEmbedder:
    """Return random unit vectors, the same at every run.

    Embedding 100,000 chunks would take hours, and the direction of the vectors does not matter here.
    """

    name = "all-MiniLM-L6-v2"
    dimensions = 384

    def __init__(self) -> None:
        self._chance = np.random.default_rng(0)

    def embed(self, texts: Sequence[str]) -> Any:
        vectors = self._chance.standard_normal((len(texts), self.dimensions), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_query(self, text: str) -> Any:
        return self.embed([text])[0]

    def windows(self, text: str) -> list[str]:
        starts = range(0, max(1, len(text)), WINDOW_CHARACTERS)
        return [text[start : start + WINDOW_CHARACTERS] for start in starts]


class Place:
    """A project with a synthetic memory, and its own home that shares the user's model."""

    def __init__(self, root: Path) -> None:
        self.home = Home(str(root / "home"))
        self.project = Project(str(root / "project"))
        self.settings = Settings()
        self.memory = Path(self.project.memory)
        Path(self.home.root).mkdir(parents=True, exist_ok=True)
        if not Path(self.home.models).exists():
            Path(self.home.models).symlink_to(Home.from_environment().models)

    @contextmanager
    def indexer(self, embedder: Embedder) -> Iterator[Indexer]:
        """Open the indexer under the lock, as every caller does."""
        with index_lock(self.home, 5.0):
            yield Indexer(self.project, self.home, self.settings, find_embedder=lambda: (embedder, ""))

    def sync(self, embedder: Embedder, *, later: bool = False) -> Any:
        """Index once."""
        with self.indexer(embedder) as indexer:
            return indexer.sync(later=later)

    def snapshot(self) -> Snapshot:
        """Open the current snapshot."""
        found = open_snapshot(self.project, self.home, self.settings)
        assert found is not None
        return found


@contextmanager
def stopwatch(embedder: Embedder) -> Iterator[dict[str, float]]:
    """Add up the seconds spent in each of `STAGES` while the block runs."""
    seconds: dict[str, float] = {}
    originals = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        seconds[name] = 0.0

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                seconds[name] += time.perf_counter() - started

        return call

    try:
        for name, owner, attribute in [
            *STAGES,
            ("embedding the question", embedder, "embed_query"),
        ]:
            originals.append((owner, attribute, getattr(owner, attribute)))
            setattr(owner, attribute, watched(name, getattr(owner, attribute)))
        yield seconds
    finally:
        for owner, attribute, function in originals:
            setattr(owner, attribute, function)


def searches(snapshot: Snapshot, embedder: Embedder, questions: Sequence[str]) -> dict[str, Any]:
    """Return the median and 95th percentile of each stage of a search, and of the whole search."""
    searcher = Searcher([snapshot], Settings().search, embedder)
    found: dict[str, list[float]] = {}
    for question in questions[:5]:  # map the files and fill caches
        searcher.answer(SearchRequest(question, minimum=0.0))
    for question in questions:
        with stopwatch(embedder) as seconds:
            whole, answer = resources.timed(searcher.answer, SearchRequest(question, minimum=0.0))
        assert answer.results, question
        for name, value in {**seconds, "whole search": whole}.items():
            found.setdefault(name, []).append(value)
    return {name: resources.percentiles(values) for name, values in found.items()}


def updates(place: Place, embedder: Embedder, turns: int) -> dict[str, Any]:
    """Return the seconds from an appended turn until a search finds it, in a warm process.

    `update` and `searchable` keep the index open for a day of `turns` turns, as the service does. The day
    includes the merges between turns, and the pass that brings its turns to Chroma. `opened` opens the index
    each time, as a single command does.
    """
    path = max(place.memory.iterdir())
    found: dict[str, list[float]] = {"update": [], "searchable": [], "opened": []}
    written: list[float] = []
    merges = 0

    def append() -> str:
        word = f"appendix{uuid.uuid4().hex[:8]}quagga"
        turn = f"### 23:59 {word} <!-- turn:{uuid.uuid4().hex[:8]} -->\n**Asked** {word}\n\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{turn}**Answered** {'It is the newest of all. ' * 8}\n")
        return word

    def search(snapshot: Snapshot | None, word: str) -> None:
        assert snapshot is not None
        answer = Searcher([snapshot], place.settings.search, embedder).search(word)
        assert word in answer.results[0].chunk.content

    with place.indexer(embedder) as indexer:
        indexer.sync()
        begun, on_disk = resources.written(), resources.written(to_disk=True)
        for _ in range(turns + 1):
            word = append()
            started, before = time.perf_counter(), resources.written()
            report = indexer.sync(later=True)
            written.append(resources.written() - before)
            found["update"].append(time.perf_counter() - started)
            search(indexer.snapshot(), word)
            found["searchable"].append(time.perf_counter() - started)
            assert report.embedded <= 2
            if indexer.is_merge_due():
                indexer.merge()
                merges += 1
        before = resources.written()
        stored, _ = resources.timed(indexer.sync)
        day = {
            "turns": len(written),
            "merges": merges,
            "written_mb": resources.written() - begun,
            "on_disk_mb": resources.written(to_disk=True) - on_disk,
            "turn_mb": statistics.median(written),
            "most_mb": max(written),
            "store_mb": resources.written() - before,
            "store_seconds": stored,
        }
    for _ in range(UPDATES + 1):
        word = append()
        started = time.perf_counter()
        place.sync(embedder, later=True)
        search(place.snapshot(), word)
        found["opened"].append(time.perf_counter() - started)
    # The first one imports modules.
    times = {name: resources.percentiles(seconds[1:]) for name, seconds in found.items()}
    return {**times, "day": day}


def timelines(place: Path) -> dict[str, Any]:
    """Return the seconds of `memkit timeline`, and the months that it writes after one appended turn.

    `cold` finds nothing kept, `kept` is a process of its own that does, and `warm` is a call in this process.
    """
    home, project = Home(str(place / "home")), Project(str(place / "project"))
    shards = Path(home.index, "timeline")

    def process() -> float:
        command = [sys.executable, "-m", "memkit", "timeline", "--json"]
        variables = {"MEMKIT_HOME": home.root, "PYTHONPATH": str(REPOSITORY)}
        variables["MEMKIT_SERVICE_ENABLED"] = "false"
        done = resources.run(command, cwd=Path(project.root), environment={**os.environ, **variables})
        assert json.loads(done.output)["children"]
        return done.seconds

    def states() -> dict[str, int]:
        return {one.name: one.stat().st_mtime_ns for one in shards.glob("*/*.json")}

    shutil.rmtree(shards, ignore_errors=True)
    cold = process()
    kept = statistics.median(process() for _ in range(UPDATES))
    warm = [resources.timed(lambda: view(open_timeline(project, home)))[0] for _ in range(UPDATES + 1)]
    before = states()
    newest = max(Path(project.memory).iterdir())
    with newest.open("a", encoding="utf-8") as file:
        file.write("\n### 23:59 One more? <!-- turn:0123abcd -->\n**Answered** It is the newest.\n")
    appended = resources.timed(lambda: view(open_timeline(project, home)))[0]
    after = states()
    return {
        "timeline_cold_seconds": cold,
        "timeline_kept_seconds": kept,
        "timeline_warm_ms": statistics.median(warm[1:]) * 1000,  # the first one imports modules
        "timeline_appended_ms": appended * 1000,
        "timeline_months": len(after),
        "timeline_rewritten": sorted(name for name in after if before.get(name) != after[name]),
        "timeline_mb": resources.disk(shards),
    }


def write_days(memory: SyntheticMemory, directory: Path, count: int) -> dict[str, int]:
    """Write so many day files. Return the numbers of days and of turns."""
    directory.mkdir(parents=True, exist_ok=True)
    turns = 0
    for name, text in islice(memory.days(), count):
        (directory / name).write_text(text, encoding="utf-8")
        turns += text.count(" turn:")
    return {"days": count, "turns": turns}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one size of memory.")
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--place", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--timeline", type=int, metavar="DAYS", help="measure the timeline alone")
    arguments = parser.parse_args()
    if arguments.timeline:
        place = arguments.place.resolve()
        sizes = write_days(SyntheticMemory(), place / "project" / ".memkit" / "memory", arguments.timeline)
        print(json.dumps({**sizes, **timelines(place)}))
        return
    place, memory = Place(arguments.place.resolve()), SyntheticMemory()
    days = write_memory(memory, place.memory, arguments.chunks)
    build, report = resources.timed(place.sync, RandomEmbedder())
    indexing_peak, written = resources.own_peak(), resources.written()
    on_disk = resources.written(to_disk=True)
    snapshot = place.snapshot()
    embedder = load_embedder(place.home, EmbeddingSettings(download=False))
    questions = memory.questions(days, QUESTIONS)
    figures = {
        "chunks": report.chunks,
        "vectors": len(snapshot.owners),
        "days": days,
        "build_seconds": build,
        "build_peak_mb": indexing_peak,
        "build_written_mb": written,
        "build_on_disk_mb": on_disk,
        "markdown_mb": resources.disk(place.memory),
        "chroma_mb": resources.disk(Path(place.home.index, "chroma")),
        "snapshot_mb": resources.disk(snapshot.directory),
        "stages": searches(snapshot, embedder, questions),
        **updates(place, embedder, arguments.turns),
        **timelines(arguments.place.resolve()),
    }
    place.sync(embedder)  # what was appended, for measurements of an unchanged tree
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
