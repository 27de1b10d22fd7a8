"""Measure topics: conversations with known subjects, mixed into one memory.

    python benchmarks/topics.py --data FILE… [--scale N] [--json] [--write]

Each conversation of the files, in the format of LoCoMo, is a subject. All of them are imported into one
project, and its topics are computed as `memkit topics` does. `purity` is the share of the grouped entries
whose topic is mostly about their own subject. `information` is the normalized mutual information of topics
and subjects among the grouped entries, and among all entries, with noise as one more topic. `noise` is the
share of entries in no topic.

k-means is told the number of subjects, or that of topics. `keywords` groups entries by the rarest of their
words that at least three entries hold.

`ids kept` is the share of topics whose id is the same after 10 % more sessions, and `entries kept` that of
the entries which were grouped before and are in the topic of the same id.

`--scale N` measures time and memory with N entries: copies of the real ones, with noise in their vectors.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import conversations as data  # noqa: E402
import numpy as np  # noqa: E402
import resources  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from memkit.capture.capture import Capture  # noqa: E402
from memkit.embedding import Embedder, load_embedder  # noqa: E402
from memkit.index import open_snapshot, sync_project  # noqa: E402
from memkit.index.snapshot import Snapshot  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.projects.project import Project  # noqa: E402
from memkit.settings import EmbeddingSettings, load  # noqa: E402
from memkit.topics.clusters import Points, directions, read_points  # noqa: E402
from memkit.topics.compute import refresh  # noqa: E402
from memkit.topics.topic_store import read_kept  # noqa: E402
from tests.snapshots import write_snapshot  # noqa: E402

ADDED_EVERY = 10
"""One session in this many is added later."""

SETTINGS = load.Settings()
Labels = NDArray[np.int64]


class Mixed:
    """One project that holds all conversations, and the subject of each session."""

    def __init__(self, paths: Sequence[Path], place: Path, embedder: Embedder) -> None:
        self.home = Home(str(place / "home"))
        self.project = Project(str(place / "project"))
        Path(self.project.root).mkdir()
        self.subjects: dict[str, str] = {}
        self._embedder = embedder
        self._capture = Capture(self.home, SETTINGS)
        self._transcripts = {}
        transcripts = place / "transcripts"
        transcripts.mkdir()
        for path in paths:
            for conversation in data.load(path):
                conversation.name = f"{path.stem}/{conversation.name}"
                written = data.write_transcripts(conversation, transcripts)
                for session, file in zip(conversation.sessions, written, strict=True):
                    name = data.session_id(conversation, session)
                    self.subjects[name] = conversation.name
                    self._transcripts[name] = file

    def add(self, *, later: bool) -> Snapshot:
        """Import the first sessions, or those that are added later; return the index."""
        for name, path in self._transcripts.items():
            if later == (zlib.crc32(name.encode()) % ADDED_EVERY == 0):
                self._capture.import_file(path, self.project)
        sync_project(self.project, self.home, SETTINGS, embedder=self._embedder)
        snapshot = open_snapshot(self.project, self.home, SETTINGS)
        assert snapshot is not None
        return snapshot

    def topics(self, points: Points) -> tuple[Labels, dict[str, str]]:
        """Compute the topics; return the topic of each point, and the topic's id of each key."""
        refresh(self.project, self.home, SETTINGS)
        kept = read_kept(self.home, self.project).topics
        topic_of = {key: name for name, one in kept.items() for key in one.members}
        names = {name: number for number, name in enumerate(kept)}
        labels = [names[topic_of[key]] if key in topic_of else -1 for key in points.keys]
        return np.array(labels, np.int64), topic_of


def keywords(snapshot: Snapshot, points: Points) -> Labels:
    """Group entries by their rarest word that three entries hold."""
    terms = [
        set(snapshot.lexical.terms(snapshot.chunk(n).lexical_text))
        for n in points.first_chunks.tolist()
    ]
    counts = Counter(term for own in terms for term in own)
    rarest = [
        min(
            (t for t in own if counts[t] > 2 and t.isalpha()),
            key=lambda t: (counts[t], t),
            default="",
        )
        for own in terms
    ]
    sizes = Counter(rarest)
    numbers = {
        term: number
        for number, term in enumerate(sorted(term for term in sizes if term and sizes[term] > 2))
    }
    return np.array([numbers.get(term, -1) for term in rarest], np.int64)


def kmeans(vectors: Any, count: int) -> Labels:
    from sklearn.cluster import KMeans

    return np.asarray(
        KMeans(min(count, len(vectors)), n_init=3, random_state=0).fit_predict(vectors), np.int64
    )


def scores(labels: Labels, subjects: Labels, sessions: NDArray[np.int32]) -> dict[str, float]:
    """Return the metrics of the module, in percent, and counts."""
    from sklearn.metrics import normalized_mutual_info_score

    grouped = labels >= 0
    topics = np.unique(labels[grouped]).tolist()
    right = sum(int(np.bincount(subjects[labels == one]).max()) for one in topics)
    spans = [len(np.unique(sessions[labels == one])) for one in topics]
    return {
        "topics": len(topics),
        "purity": 100 * right / max(1, int(grouped.sum())),
        "information, grouped": 100
        * normalized_mutual_info_score(subjects[grouped], labels[grouped])
        if topics
        else 0.0,
        "information, all": 100 * normalized_mutual_info_score(subjects, labels),
        "noise": 100 * float(1 - grouped.mean()),
        "sessions per topic": float(np.mean(spans)) if spans else 0.0,
    }


def measure(paths: Sequence[Path], embedder: Embedder, scale: int) -> dict[str, Any]:
    """Return the metrics of each method, the stability, and the cost with `scale` entries unless it is 0."""
    with tempfile.TemporaryDirectory(prefix="memkit-topics-") as directory:
        mixed = Mixed(paths, Path(directory).resolve(), embedder)
        _, before = mixed.topics(read_points(mixed.add(later=False)))
        snapshot = mixed.add(later=True)
        points = read_points(snapshot)
        labels, after = mixed.topics(points)
        names = snapshot.names["session"]
        numbers = {name: number for number, name in enumerate(sorted(set(mixed.subjects.values())))}
        subjects = [numbers[mixed.subjects[names[one]]] for one in points.sessions.tolist()]
        vectors = directions(snapshot, points)
        count = len(np.unique(labels[labels >= 0]))
        methods = {
            "memkit": labels,
            f"k-means, k = {len(numbers)} subjects": kmeans(vectors, len(numbers)),
            f"k-means, k = {count} topics": kmeans(vectors, max(1, count)),
            "keywords": keywords(snapshot, points),
        }
        known = np.array(subjects, np.int64)
        both = before.keys() & after.keys()
        same = sum(before[key] == after[key] for key in both)
        ids = set(before.values())
        report: dict[str, Any] = {
            "entries": len(points),
            "subjects": len(numbers),
            "sessions": len(mixed.subjects),
            "methods": {name: scores(own, known, points.sessions) for name, own in methods.items()},
            "stability": {
                "ids kept": _percent(len(ids & set(after.values())), len(ids)),
                "entries kept": _percent(same, len(before)),
                "entries kept, of those grouped again": _percent(same, len(both)),
            },
        }
        if scale:
            grow(snapshot, snapshot.directory, scale)
            report["scale"] = cost(mixed)
        return report


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def grow(snapshot: Snapshot, directory: Path, entries: int) -> None:
    """Write an index with about `entries` entries: the chunks of `snapshot`, again and again."""
    random = np.random.default_rng(0)
    rows = snapshot.rows()
    per_round = len(read_points(snapshot))
    grown = []
    for number in range(-(-entries // max(1, per_round))):
        for row in rows:
            mark = f"{number:03d}"
            chunk = dataclasses.replace(
                row.chunk,
                source=f"{mark}/{row.chunk.source}",
                session=row.chunk.session and f"{mark}{row.chunk.session}",
                turns=tuple(f"{mark}{turn}" for turn in row.chunk.turns),
                content_hash=f"{mark}{row.chunk.content_hash}",
            )
            vectors = row.vectors
            if vectors is not None:
                noisy = vectors + random.normal(0, 0.02, vectors.shape)
                vectors = (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)
            grown.append(dataclasses.replace(row, id=chunk.id("m"), chunk=chunk, vectors=vectors))
    write_snapshot(directory, grown, {}, snapshot.dimensions or 384, snapshot.root)


_CHILD = """
import json, sys
sys.path.insert(0, {repository!r})
from memkit.projects.project import Project
from memkit.paths import Home
from memkit.settings import load
from memkit.topics.compute import refresh
found = refresh(Project({root!r}), Home({home!r}), load.Settings())
print(json.dumps([found.entries, len(found.topics)]))
"""


def cost(mixed: Mixed) -> dict[str, float]:
    """Return the processor time in s and the peak memory in MB of a refresh in a process with one thread."""
    script = _CHILD.format(repository=str(REPOSITORY), root=mixed.project.root, home=mixed.home.root)
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    done = resources.run([sys.executable, "-c", script], environment={**os.environ, **threads})
    entries, topics = json.loads(done.output.splitlines()[-1])
    return {"entries": entries, "topics": topics, "processor s": done.cpu, "peak MB": done.peak}


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Measure topics on conversations with known subjects."
    )
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument(
        "--scale", type=int, default=0, metavar="N", help="measure time and memory with N entries"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/benchmarks.md"
    )
    arguments = parser.parse_args()
    embedder = load_embedder(Home.from_environment(), EmbeddingSettings())
    report = measure(arguments.data, embedder, arguments.scale)
    text = _text(report, arguments.data)
    print(json.dumps(report) if arguments.json else text)
    if arguments.write:
        import report as document

        document.replace_section("topics", f"{text}\n\n{document.machine()}")
    return 0


def _text(report: dict[str, Any], paths: Sequence[Path]) -> str:
    from report import table

    methods = report["methods"]
    metrics = list(next(iter(methods.values())))
    rows = [[name, *(f"{own[metric]:.1f}" for metric in metrics)] for name, own in methods.items()]
    stability = [[name, f"{value:.1f}"] for name, value in report["stability"].items()]
    names = ", ".join(path.stem for path in paths)
    return "\n\n".join(
        (
            f"### Topics: {report['entries']} entries of {report['subjects']} subjects ({names}), percent",
            table(["", *metrics], rows),
            f"After 10 % of the {report['sessions']} sessions were added:",
            table(["", "percent"], stability),
            *_scale_text(report.get("scale", {})),
        )
    )


def _scale_text(figures: dict[str, float]) -> list[str]:
    from report import table

    if not figures:
        return []
    return [
        "One refresh of a large memory:",
        table(list(figures), [[f"{value:,.0f}" for value in figures.values()]]),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
