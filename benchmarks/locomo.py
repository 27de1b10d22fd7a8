"""Retrieval quality on conversations with questions, in the format LoCoMo publishes.

    python benchmarks/locomo.py --data FILE [--unit product|utterance] [--modes …] [--json]

`product`: each conversation becomes Claude Code transcripts, goes through the import into a journal and an
index of its own, and is questioned through the public search. `utterance`: each utterance is one chunk of
its session (only journal and chunker are bypassed), comparable with published figures.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import conversations as data  # noqa: E402
import metrics  # noqa: E402

from memkit import config  # noqa: E402
from memkit.index.chunk import Chunk, digest  # noqa: E402
from memkit.index.embedding import Embedder, load_embedder  # noqa: E402
from memkit.index.lexical import LexicalIndex  # noqa: E402
from memkit.index.snapshot import Snapshot, open_current, write  # noqa: E402
from memkit.index.store import Row  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.project import Project  # noqa: E402
from memkit.recall.search import Result, Searcher  # noqa: E402

MODES = ("context", "lexical", "dense")
MOST_RESULTS = 200
LONG_UTTERANCE = 400
"""Characters: a longer utterance is cut into chunks, and counts as held by a chunk with so much of it."""


def utterance_snapshot(
    conversation: data.Conversation, embedder: Embedder, directory: Path
) -> Snapshot:
    """An index whose chunks are the utterances."""
    rows, lexical = [], LexicalIndex("english")
    chunks = [
        Chunk(
            content=f"{one.speaker}: {one.text}",
            source=f"{session.number:05d}.md",
            heading="",
            breadcrumb=session.time.strftime("%d %B %Y"),
            level=1,
            start_line=number,
            end_line=number,
            content_hash=digest(one.text)[:16],
            kind="note",
            date=session.time.date().isoformat(),
            session=str(session.number),
            turns=(one.id,),
            branch="",
            domain="",
            instruction=False,
            source_hash="",
        )
        for session in conversation.sessions
        for number, one in enumerate(session.utterances, start=1)
    ]
    windows = [embedder.windows(chunk.text) for chunk in chunks]
    vectors = embedder.embed([window for own in windows for window in own])
    position = 0
    for chunk, own in zip(chunks, windows, strict=True):
        rows.append(Row(chunk.id("m"), chunk, vectors[position : position + len(own)]))
        position += len(own)
    lexical.add((row.id, row.chunk.text) for row in rows)
    write(directory, rows, lexical, {}, embedder.dimensions)
    snapshot = open_current(directory, "english")
    assert snapshot is not None
    return snapshot


def product_snapshot(
    conversation: data.Conversation, home: Home, embedder: Embedder, directory: Path
) -> Snapshot:
    """The index of a project into which the conversation was imported."""
    from memkit.capture.capture import Capture
    from memkit.index.sync import open_snapshot, sync_project

    transcripts, root = directory / "transcripts", directory / "project"
    transcripts.mkdir(parents=True)
    root.mkdir()
    project, settings = Project(str(root)), config.Settings()
    capture = Capture(home, settings)
    for path in data.write_transcripts(conversation, transcripts):
        capture.import_file(path, lambda turn: project)
    sync_project(project, home, settings, embedder=embedder)
    snapshot = open_snapshot(project, home, settings)
    assert snapshot is not None
    return snapshot


class ProductHits:
    """Which utterances a chunk of the journal holds."""

    def __init__(self, conversation: data.Conversation) -> None:
        self.by_session = {
            data.session_id(conversation, session): [
                (one.id, _folded(one.text)) for one in session.utterances
            ]
            for session in conversation.sessions
        }

    def __call__(self, result: Result) -> metrics.Hit:
        content = _folded(result.chunk.content)
        holds = {
            name
            for name, text in self.by_session.get(result.chunk.session, [])
            if text
            and (text in content or (len(text) > LONG_UTTERANCE and _overlap(text, content)))
        }
        return metrics.Hit(result.chunk.session, frozenset(holds), len(result.chunk.content))


def _overlap(text: str, content: str) -> bool:
    """Whether a piece of a long utterance stands in `content`."""
    step = LONG_UTTERANCE // 4
    pieces = (text[start : start + step] for start in range(0, len(text) - step, step))
    return sum(piece in content for piece in pieces) >= 2


def _folded(text: str) -> str:
    """Letters and digits only: the journal escapes markup and folds white space."""
    return re.sub(r"[\W_]+", "", text.replace("&lt;", "<")).lower()


def utterance_hit(result: Result) -> metrics.Hit:
    return metrics.Hit(
        result.chunk.session, frozenset(result.chunk.turns), len(result.chunk.content)
    )


def evaluate(
    path: Path, unit: str, modes: list[str], home: Home, settings: dict[str, Any]
) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Mode, category and metrics of every question."""
    embedder = load_embedder(home)
    for number, conversation in enumerate(data.load(path)):
        with tempfile.TemporaryDirectory(prefix="memkit-locomo-") as place:
            directory = Path(place).resolve()
            own = Home(str(directory / "home"))
            if unit == "product":
                snapshot = product_snapshot(conversation, own, embedder, directory)
                hit = ProductHits(conversation)
                sessions = {
                    one.number: data.session_id(conversation, one) for one in conversation.sessions
                }
            else:
                snapshot = utterance_snapshot(conversation, embedder, directory / "index")
                hit = utterance_hit
                sessions = {one.number: str(one.number) for one in conversation.sessions}
            for mode in modes:
                chosen = config.SearchSettings(mode=mode, **settings)
                searcher = Searcher(snapshot, chosen, embedder, [])
                for question in conversation.questions:
                    answer = searcher.search(question.text, MOST_RESULTS)
                    wanted = frozenset(
                        sessions[int(name[1:].partition(":")[0])] for name in question.evidence
                    )
                    hits = [hit(result) for result in answer.results]
                    yield mode, question.category, metrics.score(hits, question.evidence, wanted)
        print(f"{number + 1}", end=" ", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure retrieval on a LoCoMo-style file.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--unit", choices=("product", "utterance"), default="product")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="a search setting"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    modes = arguments.modes.split(",")
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    rows: dict[str, list[tuple[int, dict[str, float]]]] = {mode: [] for mode in modes}
    for mode, category, row in evaluate(
        arguments.data, arguments.unit, modes, Home.from_environment(), settings
    ):
        rows[mode].append((category, row))
    print(file=sys.stderr)
    report = {mode: _summary(found) for mode, found in rows.items()}
    if arguments.json:
        print(json.dumps({"data": arguments.data.name, "unit": arguments.unit, "modes": report}))
    else:
        _print(report)
    return 0


def _summary(rows: list[tuple[int, dict[str, float]]]) -> dict[str, Any]:
    everything = [row for _, row in rows]
    return {
        "questions": len(rows),
        "all": metrics.mean(everything),
        "interval": {
            name: metrics.interval([row[name] for row in everything]) for name in everything[0]
        },
        "categories": {
            category: metrics.mean([row for own, row in rows if own == category])
            for category in sorted({category for category, _ in rows})
        },
    }


def _print(report: dict[str, Any]) -> None:
    width = shutil.get_terminal_size((120, 40)).columns
    for mode, summary in report.items():
        print(f"{mode}: {summary['questions']} questions")
        for name, value in summary["all"].items():
            low, high = summary["interval"][name]
            by_category = "  ".join(
                f"{category}: {means[name]:.1f}"
                for category, means in summary["categories"].items()
            )
            print(f"  {name:<14}{value:6.1f}  [{low:.1f}, {high:.1f}]   {by_category}"[:width])


if __name__ == "__main__":
    raise SystemExit(main())
