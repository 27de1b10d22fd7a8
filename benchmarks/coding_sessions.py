"""Measure retrieval on real coding sessions, from a repository that keeps them on a branch.

    python benchmarks/coding_sessions.py --data FOLDER [--clone REPOSITORY] [--deja FILE] [--json] [--write]

`--clone` makes FOLDER from a clone that has the branch `entire/checkpoints/v1` (see checkpoints.py). The
sessions are imported into a temporary project, or were imported before into the project `--project` of the
home `--home`. Transcripts hold real names and paths: publish the figures, never the text. `--deja` also asks
deja-vu, which indexes the same transcripts in a home of its own.

Commits: a commit's subject asks for the sessions behind it, through the public search. Sessions are ranked by
their first result. BM25 sees each session, its prompts and answers, as one document of plain words. Sessions
are divided in the middle by the time that they began; a question belongs to the half of its newest session.

Files: the share of the sessions that edited a file which `memkit why` lists, as an edit or at all, and the
share among as many sessions that BM25 finds best for the words of the path.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import checkpoints  # noqa: E402
import locomo  # noqa: E402
import metrics  # noqa: E402
import msgspec  # noqa: E402
import report as document  # noqa: E402
import resources  # noqa: E402

from memkit.agents.claude_code.transcript import Transcript  # noqa: E402
from memkit.agents.turns import read_turns  # noqa: E402
from memkit.browse.file_history import file_history  # noqa: E402
from memkit.embedding import load_embedder  # noqa: E402
from memkit.index import open_snapshot, sync_project  # noqa: E402
from memkit.journal.journal import Journal  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.projects.project import Project  # noqa: E402
from memkit.search.ranking import Searcher  # noqa: E402
from memkit.search.results import SearchRequest  # noqa: E402
from memkit.settings import EmbeddingSettings, load  # noqa: E402

NAMES = [*(f"session@{depth}" for depth in metrics.DEPTHS), "mrr"]
BASELINE = "BM25, whole sessions"
HALVES = ("older", "newer")

Ranking = Callable[[str], Sequence[str]]  # the sessions that answer a question, best first


class SessionWords:
    """BM25 over whole sessions, and the time that each began."""

    def __init__(self, folder: Path) -> None:
        from rank_bm25 import BM25Plus

        self.sessions: list[str] = []
        self.began: dict[str, str] = {}
        documents = []
        for path in sorted((folder / "sessions").glob("*.jsonl")):
            turns = list(read_turns(Transcript(path)))
            times = [turn.time.isoformat() for turn in turns if turn.time]
            self.sessions.append(path.stem)
            self.began[path.stem] = min(times, default="")
            documents.append(_words("\n".join(f"{turn.prompt}\n{turn.answer}" for turn in turns)))
        self._middle = sorted(self.began.values())[len(self.began) // 2]
        self._index = BM25Plus(documents)

    def __call__(self, question: str) -> list[str]:
        scores = self._index.get_scores(_words(question)).tolist()
        return [name for _, name in sorted(zip(scores, self.sessions, strict=True), reverse=True)]

    def half(self, gold: Sequence[str]) -> str:
        return HALVES[max(self.began[name] for name in gold) >= self._middle]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_]+", text.lower())


class ModeRanking:
    """The public search in one mode, with sessions ranked by their first result."""

    def __init__(self, project: Project, home: Home, embedder: Any, mode: str) -> None:
        settings = load.Settings()
        snapshot = open_snapshot(project, home, settings)
        assert snapshot is not None
        chosen = msgspec.structs.replace(settings.search, mode=mode)
        self._searcher = Searcher([snapshot], chosen, embedder)

    def __call__(self, question: str) -> list[str]:
        request = SearchRequest(question, locomo.MOST_RESULTS, minimum=0.0)
        results = self._searcher.answer(request).results
        return list(dict.fromkeys(result.chunk.session for result in results))


class Deja:
    """The program `deja`, with its own order of sessions. It lists at most 50."""

    def __init__(self, program: Path, transcripts: Path, home: Path) -> None:
        shutil.copytree(transcripts, home / ".claude" / "projects" / "-coding-sessions")
        self._program = str(program.resolve())
        self._environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self.index = self._run("index")
        self.index_mb = resources.disk(home / ".cache" / "deja")
        self.searches: list[resources.Finished] = []

    def __call__(self, question: str) -> list[str]:
        self.searches.append(self._run("search", "--json", question))
        return [hit["session"]["id"] for hit in json.loads(self.searches[-1].output)["hits"]]

    def costs(self) -> str:
        """Return what the index and a search took, in one sentence."""
        times = resources.percentiles([search.seconds for search in self.searches])
        return (
            f"deja-vu: index {self.index.seconds:.0f} s, {self.index.peak:.0f} MB of memory, "
            f"{self.index_mb:.0f} MB on disk; search p50 {times['p50_ms']:.0f} ms, "
            f"p95 {times['p95_ms']:.0f} ms, "
            f"{max(search.peak for search in self.searches):.0f} MB."
        )

    def _run(self, *arguments: str) -> resources.Finished:
        return resources.run([self._program, *arguments], environment=self._environment)


def commit_means(asked: Sequence[dict[str, Any]], ranking: Ranking) -> dict[str, float]:
    """Return the means of the questions' metrics, with a session for a hit."""
    rows = []
    for one in asked:
        gold = frozenset(one["sessions"])
        hits = [metrics.Hit(name, frozenset({name})) for name in ranking(one["query"])]
        rows.append(metrics.ranked(hits, gold, gold))
    return metrics.mean(rows)


def file_shares(asked: list[dict[str, Any]], project: Project, words: SessionWords) -> dict[str, float]:
    """Return the share of all pairs of a file and a session which edited it that is listed, in percent."""
    found = dict.fromkeys(("as an edit", "at all", BASELINE), 0)
    for one in asked:
        gold = set(one["sessions"])
        events = file_history(Journal(project), one["path"], project.root, print).events
        edited = {event.session for event in events if event.kind == "edit"}
        listed = {event.session for event in events if event.session}
        best = set(words(one["path"])[: len(listed)])
        for name, sessions in zip(found, (edited, listed, best), strict=True):
            found[name] += len(gold & sessions)
    pairs = sum(len(one["sessions"]) for one in asked)
    return {name: 100 * count / pairs for name, count in found.items()}


def measure(
    folder: Path, project: Project, home: Home, embedder: Any, modes: Sequence[str], deja: Deja | None
) -> dict[str, Any]:
    """Return the figures of commits by ranking and half, and those of files."""
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    words = SessionWords(folder)
    halves: dict[str, list[dict[str, Any]]] = {half: [] for half in HALVES}
    for one in questions["commits"]:
        halves[words.half(one["sessions"])].append(one)
    embedder = locomo.CachedEmbedder(embedder)
    rankings: dict[str, Ranking] = {
        f"memkit, {mode}": ModeRanking(project, home, embedder, mode) for mode in modes
    }
    rankings[BASELINE] = words
    if deja:
        rankings["deja-vu"] = deja
    return {
        "sessions": len(words.sessions),
        "questions": {half: len(asked) for half, asked in halves.items()},
        "commits": {
            name: {half: commit_means(asked, ranking) for half, asked in halves.items()}
            for name, ranking in rankings.items()
        },
        "files": file_shares(questions["files"], project, words),
    }


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    columns = [(half, name) for half in HALVES for name in NAMES]
    rows = []
    for ranking, found in figures["commits"].items():
        rows.append([ranking, *(f"{found[half][name]:.1f}" for half, name in columns)])
    asked = ", ".join(f"{count} {half}" for half, count in figures["questions"].items())
    shares = ", ".join(f"{name} {share:.1f}" for name, share in figures["files"].items())
    return (
        f"## Coding sessions\n\n`python benchmarks/coding_sessions.py --write`; {document.machine()}.\n\n"
        f"{figures['sessions']} sessions; {asked} questions. In percent.\n\n"
        f"{document.table(['', *map(' '.join, columns)], rows)}\n\n"
        f"Sessions that edited a file, listed by `memkit why`: {shares}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure retrieval on real coding sessions.")
    parser.add_argument("--data", type=Path, required=True, help="sessions/ and questions.json")
    parser.add_argument("--clone", type=Path, help="make --data from this clone first")
    parser.add_argument("--home", type=Path, help="where the sessions were imported before")
    parser.add_argument("--project", type=Path, help="their project in that home")
    parser.add_argument("--modes", default=",".join(locomo.MODES))
    parser.add_argument("--deja", type=Path, metavar="FILE", help="the program of deja-vu")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    arguments = parser.parse_args()
    if bool(arguments.home) != bool(arguments.project):
        parser.error("--home needs --project")
    if arguments.clone:
        checkpoints.write_questions(arguments.clone, arguments.data)
    present = Home(str(arguments.home)) if arguments.home else Home.from_environment()  # has the model
    embedder = load_embedder(present, EmbeddingSettings())
    with tempfile.TemporaryDirectory(prefix="memkit-coding-") as place:
        if arguments.home:
            project, home = Project(str(arguments.project)), present
        else:
            transcripts = sorted((arguments.data / "sessions").glob("*.jsonl"))
            project, home = locomo.capture(transcripts, Path(place).resolve())
            sync_project(project, home, load.Settings(), embedder=embedder)
        deja = None
        if arguments.deja:
            deja = Deja(arguments.deja, arguments.data / "sessions", Path(place).resolve() / "deja")
        figures = measure(arguments.data, project, home, embedder, arguments.modes.split(","), deja)
    text = markdown(figures)
    if deja:
        text += f"\n\n{deja.costs()}"
    document.publish("coding-sessions", figures, text, as_json=arguments.json, write=arguments.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
