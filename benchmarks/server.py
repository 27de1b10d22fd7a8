"""Measure searches on a Chroma server that many people share.

    python benchmarks/server.py [--chunks 50000,100000] [--authors 100] [--place DIRECTORY] [--write] [--json]

For each size, starts `chroma run` on the loopback and fills one collection as memkit does: each author's
home writes its rows, with random vectors of 384 numbers. From `BULK_CHUNKS` on, the same rows go straight
into the server's directory, before it starts; `--place` keeps them there, and a later call goes on. Then one
home searches for what the others wrote. A question is a vector near one of the rows. Measures p50 and p99 of
a search, with and without a filter; the memory of server and client; the disk; and recall@10 against an exact
scan. At last, a search with the server stopped, and with one that never answers.

`--write` puts the figures into docs/benchmarks.md. Needs the dependency group `benchmarks`, and 12 KB of disk
for each chunk.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import numpy as np  # noqa: E402
import psutil  # noqa: E402
import report  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from memkit.index import server as connection  # noqa: E402
from memkit.index.colleagues import Colleagues, Conditions  # noqa: E402
from memkit.index.store import SERVER_GRAPH, Row, Store, owner_of  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.search.ranking import Searcher  # noqa: E402
from memkit.search.results import SearchRequest  # noqa: E402
from memkit.search.shared_by import SharedMemory  # noqa: E402
from memkit.settings import SearchSettings  # noqa: E402
from tests.chroma_server import chroma_server, free_port, silent_server  # noqa: E402
from tests.memory import make_chunk  # noqa: E402

DIMENSIONS = 384
QUERIES = 200
NOISE = 1.0
"""The length of what a question's vector adds to that of its answer: their cosine is about 0.7."""

PUT_ROWS = 3000
BULK_CHUNKS = 500_000
NAME = "memkit-0123456789abcdef-benchmark"
NEAREST = 10
AWAY_LIMIT = 2.0
"""Seconds for a search without the server."""


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return found


def vectors_of(author: int, count: int) -> NDArray[np.float32]:
    """Return the same random vectors each time: the exact scan makes them again instead of keeping them."""
    return unit(np.random.default_rng(author).standard_normal((count, DIMENSIONS), np.float32))


def row_id(author: int, number: int) -> str:
    return f"{author:032x}{number:032x}"


def fill(place: Path, uri: str, authors: int, each: int) -> float:
    """Write the rows of all authors; return the seconds."""
    started = time.perf_counter()
    for author in range(authors):
        home = Home(str(place / f"home{author}"))
        vectors = vectors_of(author, each)
        with Store(home, uri, NAME, author=f"Author {author}") as store:
            for first in range(0, each, PUT_ROWS):
                store.put(
                    [
                        Row(row_id(author, n), chunk_of(author, n), vectors[n : n + 1])
                        for n in range(first, min(first + PUT_ROWS, each))
                    ]
                )
        if author % 10 == 9:
            taken = time.perf_counter() - started
            print(f"{(author + 1) * each:,} rows in {taken:.0f} s", file=sys.stderr)
    return time.perf_counter() - started


class Bulk(Store):
    """The rows of a home on a server, written into the server's directory while it is not running."""

    _batch_rows = 5000

    def __init__(self, collection: Any, owner: str, author: str) -> None:
        self._collection, self._owner, self._author, self._prefix = collection, owner, author, f"{owner}:"


def fill_directory(place: Path, authors: int, each: int) -> float:
    """Write the rows of all authors that are not there yet; return the seconds, of earlier calls too."""
    import chromadb

    record = place / "seconds"
    before = float(record.read_text()) if record.exists() else 0.0

    client: Any = chromadb.PersistentClient(str(place / "data"))
    collection = client.get_or_create_collection(
        NAME, embedding_function=None, configuration={"hnsw": {"space": "ip", **SERVER_GRAPH}}
    )
    done = collection.count() // each
    started = time.perf_counter()
    for author in range(done, authors):
        home = Home(str(place / f"home{author}"))
        vectors = vectors_of(author, each)
        rows = [Row(row_id(author, n), chunk_of(author, n), vectors[n : n + 1]) for n in range(each)]
        Bulk(collection, owner_of(home), f"Author {author}").put(rows)
        taken = before + time.perf_counter() - started
        record.write_text(str(taken))
        print(f"{(author + 1) * each:,} rows in {taken:.0f} s", file=sys.stderr)
    client.close()
    return float(record.read_text())


def chunk_of(author: int, number: int) -> Any:
    return make_chunk(
        f"Author {author} decided in entry {number} that the service listens on port {number % 65536}. "
        + "It was measured, reviewed, and written down with its reasons. " * 8,
        source=f".memkit/memory/2026-{1 + number % 12:02}-{1 + number % 28:02}.md",
        heading=f"09:00 Decision {number}",
        breadcrumb=f"2026-{1 + number % 12:02}-{1 + number % 28:02} > 09:00 Decision {number}",
        kind="turn",
        date=f"2026-{1 + number % 12:02}-{1 + number % 28:02}",
        session=session_of(author, number),
        turns=(f"{number:08x}",),
        branch=("main", "feature/gateway")[number % 2],
    )


def session_of(author: int, number: int) -> str:
    return f"{author:08x}-0000-4000-8000-{number // 20:012x}"


def questions(authors: int, each: int, count: int) -> NDArray[np.float32]:
    """Return vectors that are near rows of all authors but the first: author 0 asks the questions."""
    chance = np.random.default_rng(1_000_000)
    found = []
    for _ in range(count):
        author, number = int(chance.integers(1, authors)), int(chance.integers(each))
        noise = unit(chance.standard_normal(DIMENSIONS).astype(np.float32)) * NOISE
        found.append(vectors_of(author, each)[number] + noise)
    return unit(np.array(found))


def exact(asked: NDArray[np.float32], authors: int, each: int) -> list[list[str]]:
    """Return the ids of the nearest rows of others for each question, best first, by comparing all."""
    best: list[list[tuple[float, str]]] = [[] for _ in asked]
    for author in range(1, authors):
        scores = vectors_of(author, each) @ asked.T
        for number, own in enumerate(scores.T):
            top = np.argpartition(-own, min(NEAREST, each - 1))[:NEAREST]
            best[number] += [(float(own[n]), row_id(author, int(n))) for n in top]
            best[number] = sorted(best[number], reverse=True)[:NEAREST]
    return [[name for _, name in own] for own in best]


class Vectors:
    """Replaces the model: a question is the number of its vector."""

    name, dimensions = "random", DIMENSIONS

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.vectors[int(text.split()[-1])]
        return found


def timed(function: Callable[[int], object], count: int) -> dict[str, float]:
    """Return p50 and p99 in milliseconds."""
    taken = []
    for number in range(count):
        started = time.perf_counter()
        function(number)
        taken.append(1000 * (time.perf_counter() - started))
    return {"p50": statistics.median(taken), "p99": float(np.percentile(taken, 99))}


def measure(chunks: int, authors: int, count: int, kept: Path | None = None) -> dict[str, Any]:
    """Return the figures for one size. In `kept`, the directories of the homes and of the server stay."""
    each = chunks // authors
    connection.ANSWER_SECONDS = 60.0  # measure a slow search, too
    with tempfile.TemporaryDirectory(prefix="memkit-server-") as name:
        place = (kept or Path(name)).resolve()
        (place / "data").mkdir(parents=True, exist_ok=True)
        seconds = fill_directory(place, authors, each) if chunks >= BULK_CHUNKS else 0.0
        with chroma_server(place / "data") as running:
            connection.reset()
            seconds = seconds or fill(place, running.uri, authors, each)
            asked = questions(authors, each, count)
            home = Home(str(place / "home0"))
            colleagues = Colleagues(home, running.uri, NAME)
            colleagues.nearest(asked[0], Conditions())  # opens the index of vectors
            embedder: Any = Vectors(asked)
            shared = SharedMemory(colleagues, str(place))
            searcher = Searcher([], SearchSettings(), embedder, colleagues=shared)
            found = [colleagues.nearest(one, Conditions())[:NEAREST] for one in asked]
            wanted = exact(asked, authors, each)
            shares = [
                len({row.id for row in own} & {*best}) / NEAREST
                for own, best in zip(found, wanted, strict=True)
            ]
            assert running.process is not None
            process = psutil.Process(running.process.pid)
            family = [process, *process.children(recursive=True)]
            return {
                "chunks": each * authors,
                "fill_seconds": seconds,
                "search": timed(lambda n: searcher.answer(SearchRequest(f"which port {n}")), count),
                "nearest": timed(lambda n: colleagues.nearest(asked[n], Conditions()), count),
                "filtered": timed(
                    lambda n: colleagues.nearest(asked[n], Conditions(session=session_of(1, n % each))), count
                ),
                "recall": statistics.mean(shares),
                "answered": statistics.mean(
                    bool(own) and own[0].id == ids[0] for own, ids in zip(found, wanted, strict=True)
                ),
                "server_mb": sum(one.memory_info().rss for one in family) / 1e6,
                "client_mb": psutil.Process().memory_info().rss / 1e6,
                "disk_mb": sum(p.stat().st_size for p in (place / "data").rglob("*") if p.is_file()) / 1e6,
            }


def away() -> dict[str, float]:
    """Return the seconds that a search takes without the server, by how it is away."""
    connection.ANSWER_SECONDS = 1.0
    taken = {}
    vector = unit(np.ones((1, DIMENSIONS), np.float32))
    with tempfile.TemporaryDirectory(prefix="memkit-server-") as name, silent_server() as silent:
        for state, uri in (("stopped", f"http://127.0.0.1:{free_port()}"), ("never answers", silent)):
            connection.reset()
            shared = SharedMemory(Colleagues(Home(str(Path(name, "home"))), uri, NAME), name)
            embedder: Any = Vectors(vector)
            searcher = Searcher([], SearchSettings(), embedder, colleagues=shared)
            started = time.perf_counter()
            assert searcher.answer(SearchRequest("which port 0")).degraded
            taken[state] = time.perf_counter() - started
    return taken


def markdown(figures: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md."""
    rows = [
        [
            f"{one['chunks']:,}",
            f"{one['search']['p50']:.0f} / {one['search']['p99']:.0f}",
            f"{one['nearest']['p50']:.0f} / {one['nearest']['p99']:.0f}",
            f"{one['filtered']['p50']:.0f} / {one['filtered']['p99']:.0f}",
            f"{100 * one['answered']:.1f} %",
            f"{100 * one['recall']:.1f} %",
            f"{one['server_mb']:.0f}",
            f"{one['client_mb']:.0f}",
            f"{one['disk_mb']:.0f}",
            f"{one['chunks'] / one['fill_seconds']:.0f}",
        ]
        for one in figures["sizes"]
    ]
    header = [
        "chunks", "search p50 / p99, ms", "query alone", "within a session", "answer found", "recall@10",
        "server MB", "client MB", "disk MB", "rows written a second",
    ]  # fmt: skip
    slow = " and ".join(f"{seconds:.2f} s ({state})" for state, seconds in figures["away"].items())
    return (
        "## A server that many share\n\n"
        f"`python benchmarks/server.py`, {figures['machine']}. {figures['authors']} authors write to one "
        "collection on `chroma run`, with random vectors of 384 numbers, and one of them searches what the "
        "others wrote. The answer is the row that a question was made of. Recall@10 compares the "
        "approximate index with an exact scan; random vectors are its worst case, since nine of the ten have "
        f"nothing to do with the question.\n\n{report.table(header, rows)}\n\n"
        f"Without the server, asking it costs a search {slow}; the limit is {AWAY_LIMIT:.0f} s. "
        f"Memory and disk grow with the rows. From {BULK_CHUNKS:,} chunks on, the rows are written into the "
        "directory of the server before it starts."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure searches on a Chroma server that many share.")
    parser.add_argument("--chunks", default="50000,100000", metavar="N,N,…")
    parser.add_argument("--authors", type=int, default=100)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--place", type=Path, metavar="DIRECTORY", help="keep large ones there")
    parser.add_argument("--write", action="store_true", help="into docs/")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sizes = []
    for chunks in map(int, arguments.chunks.split(",")):
        print(f"measuring {chunks:,} chunks …", file=sys.stderr)
        kept = arguments.place if chunks >= BULK_CHUNKS else None
        sizes.append(measure(chunks, arguments.authors, arguments.queries, kept))
    figures = {
        "machine": report.machine(), "authors": arguments.authors, "sizes": sizes, "away": away(),
    }  # fmt: skip
    report.publish("server", figures, markdown(figures), as_json=arguments.json, write=arguments.write)
    return 0 if all(seconds <= AWAY_LIMIT for seconds in figures["away"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
