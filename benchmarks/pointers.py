"""Measure the pointers next to a prompt on conversations with questions, in LoCoMo's format.

    python benchmarks/pointers.py --data FILE [--others FILE …] [--json] [--write]
    python benchmarks/pointers.py --replay PROJECT [--every N]

Each conversation becomes a memory of its own, as in `locomo.py --unit product`. Related prompts are its
questions, and the tasks into which `pointer_prompts.json` rewrites some of them by hand. Unrelated ones are
questions of other conversations and files, and usual prompts that need no history ("run the tests", "What is
2+2?").

A related prompt is answered if a pointer leads to a session of its evidence: *any*; to all of them: *strict*.
An unrelated prompt with a pointer is a false alarm. The thresholds were tuned on every second prompt of
each group and every second other conversation; `test` is the rest. The curve varies `LEAST_RELEVANCE`.
`--write` puts the figures into docs/benchmarks.md.

`--replay` asks the prompts of a remembered project's newer half (every Nth) against all earlier days: the
share with a pointer, the tokens, and how often the same entry comes again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import conversations as data  # noqa: E402
import locomo  # noqa: E402
import report  # noqa: E402

from memkit.embedding import load_embedder  # noqa: E402
from memkit.index import open_snapshot  # noqa: E402
from memkit.journal.turn_parts import COMPACTION_TITLE, read_parts  # noqa: E402
from memkit.memory import Memory  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.pointers import prompts  # noqa: E402
from memkit.search.corpus import mask  # noqa: E402
from memkit.search.ranking import Searcher  # noqa: E402
from memkit.search.results import Filters, SearchRequest  # noqa: E402
from memkit.settings import EmbeddingSettings  # noqa: E402
from memkit.settings.load import Settings  # noqa: E402
from memkit.text import CHARACTERS_PER_TOKEN  # noqa: E402

PROMPTS = Path(__file__).resolve().with_name("pointer_prompts.json")
CURVE = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
CHOSEN = prompts.LEAST_RELEVANCE
MOST_OTHERS = 200
"""The number of questions of each other file, and of other conversations of the same one."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, its group, and the sessions of its evidence: none for an unrelated one."""

    text: str
    group: str
    sessions: frozenset[str] = frozenset()
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a prompt got at one threshold: the sessions that its pointers lead to, and their length."""

    prompt: Prompt
    sessions: tuple[str, ...]
    tokens: float


def related(asked: locomo.Asked) -> Iterator[Prompt]:
    """Yield the questions of a conversation, and the tasks that were made of some."""
    tasks = json.loads(PROMPTS.read_text(encoding="utf-8"))["tasks"]
    rewritten = []
    for number, question in enumerate(asked.conversation.questions):
        numbers = {int(name[1:].partition(":")[0]) for name in question.evidence}
        sessions = frozenset(asked.sessions[one] for one in numbers)
        yield Prompt(question.text, "questions", sessions, bool(number % 2))
        if question.text in tasks:
            rewritten.append((tasks[question.text], sessions))
    for number, (task, sessions) in enumerate(rewritten):
        yield Prompt(task, "tasks", sessions, bool(number % 2))


def unrelated(path: Path, name: str, others: Iterable[Path]) -> Iterator[Prompt]:
    """Yield usual prompts, and questions of other conversations than `name` in `path`, and of other files."""
    usual = json.loads(PROMPTS.read_text(encoding="utf-8"))["unrelated"]
    for number, text in enumerate(usual):
        yield Prompt(text, "usual prompts", is_test=bool(number % 2))
    for file in (path, *others):
        loaded = data.load(file)
        found = [
            Prompt(question.text, f"questions of {file.stem}", is_test=bool(half % 2))
            for place, one in enumerate(loaded)
            for number, question in enumerate(one.questions)
            # Of several conversations, each is in one half.
            for half in [place if len(loaded) > 1 else number]
            if file != path or one.name != name
        ]
        yield from found[:: max(1, len(found) // MOST_OTHERS)]


def outcomes(path: Path, others: list[Path], embedder: Any) -> dict[float, list[Outcome]]:
    """Return what each prompt got, by threshold."""
    found: dict[float, list[Outcome]] = {least: [] for least in CURVE}
    rise = prompts.MOST_RELEVANCE - prompts.LEAST_RELEVANCE
    for asked in locomo.indexed(path, "product", embedder):
        searcher = Searcher([asked.snapshot], Settings().search, embedder)
        corpus = searcher.corpus
        sessions = {corpus.shown_id(n): corpus.name("session", n) for n in range(len(corpus))}
        tried = [*related(asked), *unrelated(path, asked.conversation.name, others)]
        for least in CURVE:
            prompts.LEAST_RELEVANCE, prompts.MOST_RELEVANCE = least, least + rise
            for prompt in tried:
                given = prompts.find_pointers(searcher, prompt.text, "", ())
                tokens = len(prompts.lay_out(given)) / CHARACTERS_PER_TOKEN
                found[least].append(Outcome(prompt, tuple(sessions[one.id] for one in given), tokens))
        prompts.LEAST_RELEVANCE, prompts.MOST_RELEVANCE = CHOSEN, CHOSEN + rise
    return found


def figures(rows: list[Outcome]) -> dict[str, float]:
    """Return the figures of one group of prompts, in percent and tokens."""
    row = {
        "prompts": float(len(rows)),
        "given": _percent(bool(one.sessions) for one in rows),
        "tokens": statistics.fmean(one.tokens for one in rows),
    }
    if rows[0].prompt.sessions:
        row["any"] = _percent(bool(one.prompt.sessions & set(one.sessions)) for one in rows)
        row["strict"] = _percent(one.prompt.sessions <= set(one.sessions) for one in rows)
        row["first"] = _percent(bool(one.prompt.sessions & set(one.sessions[:1])) for one in rows)
    return row


class _Before(Searcher):
    """Finds only what was remembered before a day."""

    day = ""

    def places(self, request: SearchRequest) -> Any:
        earlier = Filters(until=date.fromisoformat(self.day) - timedelta(days=1))
        relevance, places = super().places(replace(request, filters=earlier))
        return np.where(mask(earlier, self.corpus), relevance, 0.0), places


def replay(root: str, every: int) -> dict[str, float]:
    """Return the figures of a project's own prompts, each asked before its day."""
    memory = Memory(root)
    settings = memory.settings
    snapshot = open_snapshot(memory.project, memory.home, settings)
    searcher = _Before([snapshot], settings.search, load_embedder(memory.home, settings.embedding))
    corpus, asked = searcher.corpus, dict[int, tuple[str, str, str]]()
    for position in np.flatnonzero(corpus.is_turn).tolist():
        chunk, entry = corpus.chunk(position), int(corpus.columns["entry"][position])
        if COMPACTION_TITLE not in chunk.heading and entry not in asked:
            prompt = read_parts(corpus.turn_text(position)).prompt or chunk.heading[6:]
            asked[entry] = chunk.date, chunk.session, prompt
    prompts = sorted(asked.values())
    shown: Counter[str] = Counter()
    tokens = []
    for searcher.day, session, prompt in prompts[len(prompts) // 2 :: every]:
        found = prompts.find_pointers(searcher, prompt, session, ())
        tokens.append(len(prompts.lay_out(found)) / CHARACTERS_PER_TOKEN)
        shown.update(one.id for one in found)
    repeated = sum(count for count in shown.values() if count > 2)
    return {
        "prompts": float(len(tokens)),
        "given": _percent(bool(one) for one in tokens),
        "tokens": statistics.fmean(tokens),
        "of an entry shown more than twice": 100 * repeated / max(1, shown.total()),
    }


def _percent(values: Iterable[bool]) -> float:
    return 100 * statistics.fmean(values)


def summary(rows: list[Outcome]) -> dict[str, dict[str, float]]:
    """Return the figures of each group, of all related prompts, and of all unrelated ones."""
    groups: dict[str, list[Outcome]] = {}
    for one in rows:
        groups.setdefault(one.prompt.group, []).append(one)
        groups.setdefault("all related" if one.prompt.sessions else "all unrelated", []).append(one)
    return {name: figures(found) for name, found in sorted(groups.items(), key=lambda one: one[0])}


def halves(rows: list[Outcome]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the summaries of the half that was fitted on, and of the other one."""
    parts = {"fit": [one for one in rows if not one.prompt.is_test]}
    parts["test"] = [one for one in rows if one.prompt.is_test]
    return {name: summary(found) for name, found in parts.items() if found}


def document(name: str, found: dict[float, list[Outcome]]) -> str:
    """Return the section of docs/benchmarks.md."""
    chosen = halves(found[CHOSEN])
    columns = ("any", "strict", "first", "given", "tokens")
    rows = [
        [f"{group}, {part}", f"{one['prompts']:.0f}"]
        + [f"{one[column]:.1f}" if column in one else "–" for column in columns]
        for group in chosen["test"]
        for part in chosen
        if (one := chosen[part].get(group))
    ]
    header = ["least relevance", "any", "strict", "false alarms", "tokens, related", "tokens, unrelated"]
    curve = []
    for least, outcome in found.items():
        test = halves(outcome)["test"]
        own, other = test["all related"], test["all unrelated"]
        shown = [own["any"], own["strict"], other["given"], own["tokens"], other["tokens"]]
        curve.append([f"{least:.2f}{' (chosen)' * (least == CHOSEN)}", *(f"{one:.1f}" for one in shown)])
    return "\n\n".join(
        [
            f"### Pointers, {name}: percent, and tokens a prompt",
            report.table(["prompts", "number", *columns], rows),
            "The curve, on the test half:",
            report.table(header, curve),
            report.machine(),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the pointers next to a prompt.")
    parser.add_argument("--data", type=Path, help="conversations to remember and to ask about")
    parser.add_argument("--replay", help="the root of a remembered project")
    parser.add_argument("--every", type=int, default=10, help="ask every Nth of its prompts")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="files with unrelated questions")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    arguments = parser.parse_args()
    if arguments.replay:
        print(json.dumps(replay(arguments.replay, arguments.every)))
        return 0
    if not arguments.data:
        parser.error("--data or --replay is missing")
    embedder = locomo.CachedEmbedder(load_embedder(Home.from_environment(), EmbeddingSettings()))
    found = outcomes(arguments.data, arguments.others, embedder)
    if arguments.json:
        print(json.dumps({f"{least:.2f}": halves(rows) for least, rows in found.items()}))
    else:
        print(document(arguments.data.stem, found))
    if arguments.write:
        report.replace_section(f"pointers-{arguments.data.stem}", document(arguments.data.stem, found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
