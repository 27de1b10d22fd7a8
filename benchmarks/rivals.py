"""Search the same text with memkit's BM25, plain rank-bm25, bm25s, and SQLite's FTS5.

    python benchmarks/rivals.py --engine memkit|rank-bm25|bm25s|fts5 --memory DIRECTORY --days N

Each engine runs in its own process, so that its memory can be measured. All index memkit's terms, except
FTS5 with its own tokenizer (porter over unicode61). Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import resources  # noqa: E402
from synthetic import SyntheticMemory  # noqa: E402

from memkit.index.chunker import chunk_markdown  # noqa: E402
from memkit.index.lexical import LexicalIndex  # noqa: E402
from memkit.index.tokens import Tokenizer  # noqa: E402
from memkit.settings import ChunkingSettings  # noqa: E402

BEST = 10
SECONDS = 20.0
"""Ask questions for this long: rank-bm25 takes long for each."""

QUESTIONS = 100
LEAST_QUESTIONS = 10


class Engine(Protocol):
    """Finds texts by their words."""

    def build(self, texts: Sequence[str], directory: Path) -> None:
        """Index `texts`. Files go to `directory`."""

    def search(self, question: str) -> Sequence[int]:
        """Return the positions of the best texts."""


class Memkit:
    def build(self, texts: Sequence[str], directory: Path) -> None:
        self._index = LexicalIndex.of(texts)

    def search(self, question: str) -> Sequence[int]:
        return _best(self._index.query(question).scores)


class RankBM25:
    def build(self, texts: Sequence[str], directory: Path) -> None:
        from rank_bm25 import BM25Plus

        self._tokenizer = Tokenizer()
        self._index = BM25Plus([self._tokenizer.tokenize(text) for text in texts])

    def search(self, question: str) -> Sequence[int]:
        return _best(self._index.get_scores(self._tokenizer.tokenize(question)))


class Bm25s:
    def build(self, texts: Sequence[str], directory: Path) -> None:
        import bm25s

        self._tokenizer = Tokenizer()
        self._index = bm25s.BM25(method="bm25+")
        self._index.index([self._tokenizer.tokenize(text) for text in texts], show_progress=False)
        self._index.save(str(directory / "index"))

    def search(self, question: str) -> Sequence[int]:
        terms = [self._tokenizer.tokenize(question)]
        found = self._index.retrieve(terms, k=BEST, show_progress=False)
        places: list[int] = found.documents[0].tolist()
        return places


class Fts5:
    def build(self, texts: Sequence[str], directory: Path) -> None:
        self._database = sqlite3.connect(directory / "index.sqlite")
        self._database.execute(
            "create virtual table chunks using fts5(text, tokenize='porter unicode61')"
        )
        rows = ((number, text) for number, text in enumerate(texts))
        self._database.executemany("insert into chunks(rowid, text) values (?, ?)", rows)
        self._database.commit()

    def search(self, question: str) -> Sequence[int]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        found = self._database.execute(
            "select rowid from chunks where chunks match ? order by rank limit ?", (words, BEST)
        )
        return [row[0] for row in found]


ENGINES: dict[str, type[Engine]] = {
    "memkit": Memkit,
    "rank-bm25": RankBM25,
    "bm25s": Bm25s,
    "fts5": Fts5,
}


def _best(scores: object) -> Sequence[int]:
    import numpy as np

    values = np.asarray(scores)
    best = np.argpartition(-values, min(BEST, len(values) - 1))[:BEST]
    places: list[int] = best[np.argsort(-values[best], kind="stable")].tolist()
    return places


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one engine for lexical search.")
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--memory", type=Path, required=True, help="a directory of day files")
    parser.add_argument("--days", type=int, required=True, help="how many there are")
    arguments = parser.parse_args()
    options = ChunkingSettings()
    texts = [
        chunk.text
        for path in sorted(arguments.memory.iterdir())
        for chunk in chunk_markdown(
            path.read_text(encoding="utf-8"), path.name, source_hash="", options=options
        )
    ]
    questions = SyntheticMemory().questions(arguments.days, QUESTIONS)
    engine = ENGINES[arguments.engine]()
    before = resources.own_peak()
    with tempfile.TemporaryDirectory(prefix="memkit-rival-") as place:
        build, _ = resources.timed(engine.build, texts, Path(place))
        engine.search(questions[0])
        seconds: list[float] = []
        for question in questions:
            if len(seconds) >= LEAST_QUESTIONS and sum(seconds) > SECONDS:
                break
            seconds.append(resources.timed(engine.search, question)[0])
        figures = {
            "engine": arguments.engine,
            "build_seconds": build,
            "peak_mb": resources.own_peak() - before,
            "disk_mb": resources.disk(Path(place)),
            **resources.percentiles(seconds),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
