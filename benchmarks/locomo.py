"""Measure retrieval quality on conversations with questions, in the format of LoCoMo or LongMemEval.

    python benchmarks/locomo.py --data FILE [--unit product|utterance] [--modes …] [--json] [--write]

`product`: each conversation becomes Claude Code transcripts, is imported into its own journal and index,
and answers the questions through the public search. `utterance`: each utterance is one chunk of its
session. This bypasses only the journal and the chunker and is comparable with published figures. BM25 sees
the utterance's date; the embedder does not.

`--bullets` writes the data set's observations, sentences that name the utterances which prove them, above
the turns as the bullets of summaries. A bullet counts for the utterances that prove it and for no others.

`session@k` counts a question if any session with evidence is among the first k, `strict@k` if all are. Of
LongMemEval only LongMemEval-S is taken, known by its SHA-256. Each of its questions has its own index.

Ranked metrics use 200 results; `tokens@5` is the length of the first five. Budget recall uses a search with
that budget. Both search as `memkit search --all` does. `--off-topic FILE` measures the cut: it asks the
questions in FILE, one per line, and counts how many find nothing, and how many of the conversations' own
questions lose their answer. `--write` puts the figures into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import conversations as data  # noqa: E402
import metrics  # noqa: E402
import msgspec  # noqa: E402

from memkit.embedding import Embedder, load_embedder  # noqa: E402
from memkit.index.chunk import Chunk, digest  # noqa: E402
from memkit.index.reader import open_current  # noqa: E402
from memkit.index.snapshot import Snapshot  # noqa: E402
from memkit.index.store import Row  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.projects.project import Project  # noqa: E402
from memkit.search import fusion  # noqa: E402
from memkit.search.ranking import Searcher  # noqa: E402
from memkit.search.results import Result, SearchRequest  # noqa: E402
from memkit.settings import EmbeddingSettings, load, validate  # noqa: E402
from memkit.text import CHARACTERS_PER_TOKEN  # noqa: E402
from tests.snapshots import write_snapshot  # noqa: E402

MODES = ("context", "lexical", "dense", "rrf", "weighted")
MOST_RESULTS = 200
LONG_UTTERANCE = 400
"""Characters. A longer utterance is cut into chunks, and a chunk with this many characters of it counts."""


def utterance_snapshot(
    conversation: data.Conversation, embedder: Embedder, directory: Path
) -> Snapshot:
    """Return an index whose chunks are the utterances."""
    rows = []
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
            citations=(),
            entry_id="",
            branch="",
            domain="",
            whole=True,
            instruction=False,
            source_hash="",
        )
        for session in conversation.sessions
        for number, one in enumerate(session.utterances, start=1)
    ]
    windows = [embedder.windows(chunk.content) for chunk in chunks]
    vectors = embedder.embed([window for own in windows for window in own])
    position = 0
    for chunk, own in zip(chunks, windows, strict=True):
        rows.append(Row(chunk.id("m"), chunk, vectors[position : position + len(own)]))
        position += len(own)
    write_snapshot(directory, rows, {}, embedder.dimensions, "")
    snapshot = open_current(directory, lambda path: Snapshot(path, "english"))
    assert snapshot is not None
    return snapshot


def product_snapshot(
    conversation: data.Conversation, embedder: Embedder, directory: Path, *, bullets: bool = False
) -> tuple[Snapshot, ProductHits]:
    """Return the index of a project into which the conversation was imported.

    With `bullets`, its observations are in place as the bullets of summaries.
    """
    from memkit.index import open_snapshot, sync_project
    from memkit.journal.journal import Journal

    transcripts = directory / "transcripts"
    transcripts.mkdir(parents=True)
    project, home = capture(data.write_transcripts(conversation, transcripts), directory)
    settings = load.Settings()
    proofs = data.write_bullets(conversation, Journal(project)) if bullets else {}
    sync_project(project, home, settings, embedder=embedder)
    snapshot = open_snapshot(project, home, settings)
    assert snapshot is not None
    return snapshot, ProductHits(conversation, proofs)


def capture(transcripts: Iterable[Path], directory: Path) -> tuple[Project, Home]:
    """Import transcripts into a new project and home below `directory`, without an index."""
    from memkit.capture.capture import Capture

    root = directory / "project"
    root.mkdir()
    project, home = Project(str(root)), Home(str(directory / "home"))
    importer = Capture(home, load.Settings())
    for path in transcripts:
        importer.import_file(path, project)
    return project, home


class ProductHits:
    """Find the utterances in a chunk of the journal.

    A bullet holds the utterances that prove it, and no others of its turns.
    """

    def __init__(
        self, conversation: data.Conversation, proofs: Mapping[str, frozenset[str]]
    ) -> None:
        self.proofs = proofs
        self.by_session = {
            data.session_id(conversation, session): [
                (one.id, _folded(one.text)) for one in session.utterances
            ]
            for session in conversation.sessions
        }

    def __call__(self, result: Result) -> metrics.Hit:
        content = _folded(result.chunk.content)
        if result.chunk.kind == "summary":
            holds = set().union(*(self.proofs[name] for name in result.chunk.citations))
            return metrics.Hit(result.chunk.session, frozenset(holds), _tokens(result))
        holds = {
            name
            for name, text in self.by_session.get(result.chunk.session, [])
            if text
            and (text in content or (len(text) > LONG_UTTERANCE and _overlap(text, content)))
        }
        return metrics.Hit(result.chunk.session, frozenset(holds), _tokens(result))


def _tokens(result: Result) -> float:
    return len(result.chunk.content) / CHARACTERS_PER_TOKEN


def _overlap(text: str, content: str) -> bool:
    """Return whether `content` contains a piece of a long utterance."""
    step = LONG_UTTERANCE // 4
    pieces = (text[start : start + step] for start in range(0, len(text) - step, step))
    return sum(piece in content for piece in pieces) >= 2


def _folded(text: str) -> str:
    """Return letters and digits only: the journal escapes markup and folds white space."""
    return re.sub(r"[\W_]+", "", text.replace("&lt;", "<")).lower()


def utterance_hit(result: Result) -> metrics.Hit:
    holds = frozenset(result.chunk.turns)
    return metrics.Hit(result.chunk.session, holds, _tokens(result))


@dataclass
class Asked:
    """An indexed conversation: its snapshot, the content of its results, and its session IDs by number."""

    conversation: data.Conversation
    snapshot: Snapshot
    hit: Callable[[Result], metrics.Hit]
    sessions: dict[int, str]

    def row(self, searcher: Searcher, question: data.Question) -> dict[str, float]:
        """Return all metrics of one question."""
        hits = self.hits(searcher, SearchRequest(question.text, MOST_RESULTS, minimum=0.0))
        wanted = frozenset(
            self.sessions[int(name[1:].partition(":")[0])] for name in question.evidence
        )
        row = metrics.ranked(hits, question.evidence, wanted)
        for tokens in metrics.BUDGETS:
            filled = self.hits(searcher, SearchRequest(question.text, budget=tokens, minimum=0.0))
            row[f"budget@{tokens}"] = metrics.found(filled, question.evidence)
        return row

    def hits(self, searcher: Searcher, request: SearchRequest) -> list[metrics.Hit]:
        """Return the hits for `request`."""
        return [self.hit(one) for one in searcher.answer(request).results]


class CachedEmbedder:
    """Embeds each question once for all modes and budgets."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_query(self, text: str) -> Any:
        if text not in self._known:
            self._known[text] = self._embedder.embed_query(text)
        return self._known[text]


def indexed(path: Path, unit: str, embedder: Embedder, *, bullets: bool = False) -> Iterator[Asked]:
    """Yield the conversations of a file, each in a temporary index of its own."""
    for number, conversation in enumerate(data.load(path)):
        with tempfile.TemporaryDirectory(prefix="memkit-locomo-") as place:
            directory = Path(place).resolve()
            if unit == "product":
                snapshot, hit = product_snapshot(conversation, embedder, directory, bullets=bullets)
                sessions = {
                    one.number: data.session_id(conversation, one) for one in conversation.sessions
                }
                yield Asked(conversation, snapshot, hit, sessions)
            else:
                snapshot = utterance_snapshot(conversation, embedder, directory / "index")
                sessions = {one.number: str(one.number) for one in conversation.sessions}
                yield Asked(conversation, snapshot, utterance_hit, sessions)
        print(f"{number + 1}", end=" ", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def evaluate(
    path: Path,
    unit: str,
    modes: list[str],
    embedder: Embedder,
    settings: load.SearchSettings,
    *,
    bullets: bool = False,
) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Return mode, category, and metrics of every question."""
    for asked in indexed(path, unit, embedder, bullets=bullets):
        for mode in modes:
            chosen = msgspec.structs.replace(settings, mode=mode)
            searcher = Searcher([asked.snapshot], chosen, embedder)
            for question in asked.conversation.questions:
                yield mode, question.category, asked.row(searcher, question)


def off_topic(
    path: Path, unit: str, embedder: Embedder, settings: load.SearchSettings, questions: list[str]
) -> dict[str, float]:
    """Return the share of off-topic `questions` that find nothing, and the share of the conversations' own
    questions that have evidence among ten results without the cut but none with it. In percent.
    """
    empty, lost = [], []
    for asked in indexed(path, unit, embedder):
        searcher = Searcher([asked.snapshot], settings, embedder)
        empty += [not searcher.search(question, 10).results for question in questions]
        for question in asked.conversation.questions:
            uncut = asked.hits(searcher, SearchRequest(question.text, 10, minimum=0.0))
            if metrics.found(uncut, question.evidence):
                lost.append(not searcher.search(question.text, 10).results)
    return {
        "off-topic questions": len(empty),
        "find nothing": 100 * statistics.fmean(empty),
        "answered questions": len(lost),
        "lose the answer": 100 * statistics.fmean(lost),
    }


def search_settings(pairs: list[str]) -> load.SearchSettings:
    """Return the default settings with `--set FIELD=VALUE` applied. Raise `ConfigError`."""
    found = {}
    for name, _, text in (pair.partition("=") for pair in pairs):
        if hasattr(fusion.WEIGHTS, name):
            kind = type(getattr(fusion.WEIGHTS, name))
            fusion.WEIGHTS = dataclasses.replace(fusion.WEIGHTS, **{name: kind(text)})
            continue
        key = ("search", name)
        found[key] = load.Value(validate.parse_text(key, text), "--set")
    return validate.validate(found).search


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure retrieval on a LoCoMo-style file.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--unit", choices=("product", "utterance"), default="product")
    parser.add_argument(
        "--bullets",
        action="store_true",
        help="write the observations of the conversations above their turns, as a summary",
    )
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE",
        help="a search setting, or a weight of memkit.search.fusion",
    )
    parser.add_argument(
        "--off-topic", type=Path, metavar="FILE", help="ask 100 questions of another file, one a line"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    arguments = parser.parse_args()
    if arguments.bullets and arguments.unit != "product":
        parser.error("--bullets needs --unit product")
    modes = arguments.modes.split(",")
    settings = search_settings(arguments.set)
    embedder = CachedEmbedder(load_embedder(Home.from_environment(), EmbeddingSettings()))
    if arguments.off_topic:
        questions = arguments.off_topic.read_text(encoding="utf-8").splitlines()
        figures = off_topic(arguments.data, arguments.unit, embedder, settings, questions)
        print(json.dumps(figures) if arguments.json else _lines(figures))
        return 0
    rows: dict[str, list[tuple[int, dict[str, float]]]] = {mode: [] for mode in modes}
    found = evaluate(
        arguments.data, arguments.unit, modes, embedder, settings, bullets=arguments.bullets
    )
    try:
        for mode, category, row in found:
            rows[mode].append((category, row))
    except ValueError as error:  # not the file that it should be
        print(error, file=sys.stderr)
        return 1
    report = {mode: _summary(found) for mode, found in rows.items()}
    if arguments.json:
        print(json.dumps({"data": arguments.data.name, "unit": arguments.unit, "modes": report}))
    else:
        _print(report)
    if arguments.write:
        import report as document

        name = f"{arguments.data.stem}-{'bullets' if arguments.bullets else arguments.unit}"
        document.replace_section(name, f"{_table(arguments, report)}\n\n{document.machine()}")
    return 0


def _lines(figures: dict[str, float]) -> str:
    return "\n".join(f"{name:<22}{value:8.1f}" for name, value in figures.items())


def _table(arguments: argparse.Namespace, report: dict[str, Any]) -> str:
    """Return the figures as a Markdown table, with the interval of `context`."""
    names = list(next(iter(report.values()))["all"])
    lines = [
        f"### {arguments.data.stem}, {arguments.unit}{' with bullets' * arguments.bullets}: "
        f"{next(iter(report.values()))['questions']} questions, percent and tokens",
        "",
        f"| | {' | '.join(report)} | 95 % of {next(iter(report))} |",
        f"|---|{'---|' * (len(report) + 1)}",
    ]
    for name in names:
        low, high = next(iter(report.values()))["interval"][name]
        values = " | ".join(f"{summary['all'][name]:.1f}" for summary in report.values())
        lines.append(f"| {name} | {values} | {low:.1f}-{high:.1f} |")
    return "\n".join(lines)


def _summary(rows: list[tuple[int, dict[str, float]]]) -> dict[str, Any]:
    everything = [row for _, row in rows]
    return {
        "questions": len(rows),
        "all": metrics.mean(everything),
        "interval": {name: metrics.interval(everything, name) for name in everything[0]},
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
