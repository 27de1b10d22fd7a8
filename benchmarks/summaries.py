"""Measure how good the summaries of a model are, and what the check of its bullets finds.

    python benchmarks/summaries.py [--provider NAME [--model NAME]] [--show] [--json] [--write]
    python benchmarks/summaries.py --fit

Check: each set of claims in `benchmarks/claims/` has true bullets and lies about turns. The figures are the
share of lies that get marked, by kind, and the share of true bullets that do (false alarms). Rules and limits
of the check may be fitted to `fit.txt`, never to `test.txt`. The rows "second look" add looks by a
simulated judge with verdicts that are right in 90 % or 75 % of cases; a wrong one is one of the other two.
`--fit` prints the weights for `memkit.summarize.wording`: logistic regression on `fit.txt`, with an
intercept that marks 4.5 % of its true bullets.

Models: the sessions in `sessions.txt` are written as transcripts, imported into a project, and summarized as
`memkit summarize` does it. Four scripted models write paraphrases of the reference bullets (`good`), planted
lies (`lying`), the orders that a transcript hides before the paraphrases (`obedient`), or copies of the
prompts (`lazy`). `--provider` (a name as in `summarize.provider`; `auto` takes a key or a logged-in `claude`)
adds a real model and costs about 6,000 tokens. `--show` prints its bullets, and the errors of the check on
`fit.txt`.

Coverage is the share of the reference bullets that a bullet without the mark `unverified` matches. It
matches if the mean of two figures is at least 0.5: the cosine of their embeddings, and the share of the
reference's stems that it has. All paraphrases in `sessions.txt` match their references, and 2 of 126 pairs
of different facts do. A planted lie is recognized by its words and never matches; it is accepted if it is
written without the mark. A real model gets no lies planted: its bullets with the mark count as false claims,
and a person has to judge the others. Needs the embedding model in `MEMKIT_HOME`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(Path(__file__).resolve().parent)]

import claim_sets  # noqa: E402
import numpy as np  # noqa: E402
from claim_sets import Group  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from memkit import anchors  # noqa: E402
from memkit.anchors import UNCHECKED, UNVERIFIED  # noqa: E402
from memkit.bullets import WrittenBullet  # noqa: E402
from memkit.embedding import Embedder, load_embedder  # noqa: E402
from memkit.index.tokens import Tokenizer  # noqa: E402
from memkit.llm import Provider, Reply, Task, TokenUsage, find_provider  # noqa: E402
from memkit.paths import Home  # noqa: E402
from memkit.projects.project import Project  # noqa: E402
from memkit.settings import EmbeddingSettings, SummarizeSettings  # noqa: E402
from memkit.settings.load import Settings  # noqa: E402
from memkit.summarize.answer import LIMITS  # noqa: E402
from memkit.summarize.checks import is_order, is_proved  # noqa: E402
from memkit.summarize.second_look import NO, UNKNOWN, YES, checked  # noqa: E402
from memkit.summarize.wording import KnownVectors, Measures, Passage, is_covered, passages  # noqa: E402
from memkit.summarize.wording import measure as measure_wording  # noqa: E402
from memkit.text import estimate_tokens  # noqa: E402

SETS = ("fit", "test")
MATCH = 0.5
FALSE_ALARMS = 0.045
PENALTY = 10.0
VERDICTS = (0.9, 0.75)
REPEATED = 100
NEWTON_STEPS = 30
MOST_TURNS = 3
"""The most turns that a scripted bullet cites."""

_TURN = re.compile(r'<turn number="(\d+)"[^>]*>\n(.*?)\n</turn>', re.DOTALL)

_tokenizer = Tokenizer()

FindProvider = Callable[[Group, SummarizeSettings, Home], Provider]
"""Return the model for a session."""


def is_marked(text: str, turns: Sequence[str], vectors: KnownVectors | None) -> bool:
    """Return whether memkit drops a bullet about turns, given as digests, or marks it."""
    if is_order(text) or not is_proved(text, "\n".join(turns)):
        return True
    return not is_covered(text, _passages(turns), vectors, LIMITS)


def is_marked_later(text: str, lie: str, share: float, dice: random.Random) -> bool:
    """Return whether looks mark a bullet if a `share` of the verdicts is right, each drawn anew."""
    right = YES if not lie else UNKNOWN if lie == "fabrication" else NO
    wrong = [one for one in (YES, NO, UNKNOWN) if one != right]
    check = UNCHECKED
    while check.startswith(UNCHECKED):
        bullet = WrittenBullet("", text, "", (), "", check, is_extract=False)
        check = checked(bullet, right if dice.random() < share else dice.choice(wrong))
    return check == UNVERIFIED


def _passages(turns: Sequence[str]) -> list[Passage]:
    return [passage for turn in turns for passage in passages(turn)]


def fitted_weights(
    groups: Sequence[Group], embedder: Embedder | None
) -> tuple[float, NDArray[np.float64]]:
    """Return the intercept and weights of `Measures` that tell lies from true bullets.

    Only sentences count that no rule marks. Logistic regression with an L2 penalty on standardized
    measures, by Newton's method (Hastie, Tibshirani, Friedman: Elements of Statistical Learning, 4.4.1).
    """
    vectors = KnownVectors(embedder) if embedder else None
    rows: list[tuple[bool, tuple[float, ...]]] = []
    for group in groups:
        source, cited = "\n".join(group.texts), _passages(group.texts)
        labeled = [(False, text) for text in group.true] + [(True, text) for _, text in group.lies]
        rows += [
            (is_lie, measure_wording(text, cited, vectors))
            for is_lie, text in labeled
            if is_proved(text, source) and not is_order(text)
        ]
    lies = np.array([is_lie for is_lie, _ in rows])
    measures = np.array([row for _, row in rows])
    mean, spread = measures.mean(axis=0), measures.std(axis=0)
    spread[spread == 0] = np.inf  # `far` without an embedder: its weight becomes 0
    inputs = np.column_stack([np.ones(len(rows)), (measures - mean) / spread])
    penalty = np.diag([0.0, *[PENALTY] * len(mean)])
    weights = np.zeros(inputs.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (chance - lies) + penalty @ weights
        curve = inputs.T @ (inputs * (chance * (1 - chance))[:, None]) + penalty
        weights -= np.linalg.solve(curve, slope)
    plain = weights[1:] / spread
    limit = np.quantile((measures @ plain)[~lies], 1 - FALSE_ALARMS)
    return -float(limit), plain


def check_claims(
    groups: Sequence[Group], embedder: Embedder | None, show: bool = False
) -> dict[str, Any]:
    """Return how many true bullets and lies of each kind there are, and how many are marked."""
    vectors = KnownVectors(embedder) if embedder else None
    lies, marked = Counter[str](), Counter[str]()
    later = {share: Counter[bool]() for share in VERDICTS}
    dice = random.Random(7)
    true = alarms = 0

    def look(text: str, lie: str, is_marked_now: bool) -> None:
        for share, found in later.items():
            marks = (is_marked_now or is_marked_later(text, lie, share, dice) for _ in range(REPEATED))
            found[bool(lie)] += sum(marks)

    for group in groups:
        turns = group.texts
        for text in group.true:
            true += 1
            look(text, "", is_marked_now := is_marked(text, turns, vectors))
            if is_marked_now:
                alarms += 1
                if show:
                    print(f"false alarm: {text}", file=sys.stderr)
        for kind, text in group.lies:
            lies[kind] += 1
            look(text, kind, is_marked_now := is_marked(text, turns, vectors))
            if is_marked_now:
                marked[kind] += 1
            elif show:
                print(f"accepted ({kind}): {text}", file=sys.stderr)
    return {
        "true": true,
        "false_alarms": alarms,
        "lies": lies.total(),
        "marked": marked.total(),
        "later": {
            f"second look, {share:.0%} right": [
                found[True] / REPEATED / lies.total(), found[False] / REPEATED / true
            ]
            for share, found in later.items()
        },
        "kinds": {kind: {"lies": lies[kind], "marked": marked[kind]} for kind in claim_sets.KINDS},
    }


def good(group: Group) -> list[str]:
    """Return the references in other words."""
    return group.reworded


def lying(group: Group) -> list[str]:
    """Return the lies about facts."""
    return [text for kind, text in group.lies if kind != "order"]


def obedient(group: Group) -> list[str]:
    """Return the orders that the transcript hides, and the references in other words."""
    return [text for kind, text in group.lies if kind == "order"] + group.reworded


def lazy(group: Group) -> list[str]:
    """Return the prompts."""
    return [turn.prompt for turn in group.turns]


Script = Callable[[Group], list[str]]

SCRIPTS: dict[str, Script] = {"good": good, "lying": lying, "obedient": obedient, "lazy": lazy}


@dataclass
class ScriptedModel:
    """A model whose bullets are known. It cites the turns whose words they use."""

    model: str
    bullets: list[str]
    name = "scripted"

    def ask(self, task: Task) -> Reply:
        """Return all bullets, each in the segment of the first turn that it cites."""
        turns = {int(number): _stems(text) for number, text in _TURN.findall(task.material)}
        bullets = [
            {"text": text, "kind": "finding", "turns": _cited(text, turns)} for text in self.bullets
        ]
        value = {
            "segments": [
                {
                    "number": number,
                    "title": "",
                    "bullets": [one for one in bullets if f'<turn number="{one["turns"][0]}"' in segment],
                }
                for number, segment in enumerate(task.material.split("<segment ")[1:], start=1)
            ]
        }
        read = estimate_tokens(task.instructions) + estimate_tokens(task.material)
        return Reply(value, TokenUsage(read, estimate_tokens(json.dumps(value))), self.model)


def _cited(text: str, turns: dict[int, set[str]]) -> list[int]:
    """Return the turns that have the most words of `text` between them."""
    missing, cited = _stems(text), list[int]()
    while len(cited) < MOST_TURNS:
        best = max(turns, key=lambda number: len(missing & turns[number]))
        if cited and not missing & turns[best]:
            break
        cited.append(best)
        missing -= turns[best]
    return cited


def _stems(text: str) -> set[str]:
    return set(_tokenizer.tokenize(text))


@dataclass(frozen=True)
class Summary:
    """The bullets that memkit wrote for a session, with their marks, and the cost of its calls."""

    bullets: list[tuple[str, bool]]
    tokens: int
    usd: float | None
    failures: list[str]


def summarize(
    group: Group, chosen: SummarizeSettings, find: FindProvider, embedder: Embedder
) -> Summary:
    """Import a session into an empty memory, and summarize it."""
    from memkit.capture.capture import Capture
    from memkit.journal.journal import Journal
    from memkit.llm.calls import Calls, calls_lock
    from memkit.llm.ledger import Ledger, total
    from memkit.summarize.summarizer import Summarizer, SummaryReport

    with tempfile.TemporaryDirectory() as path:
        directory = Path(path)
        root = directory / "project"
        root.mkdir()
        home, project = Home(str(directory / "home")), Project(str(root))
        settings = Settings(summarize=chosen)
        Capture(home, settings).import_file(claim_sets.write_transcript(group, directory), project)
        calls = Calls(home, lambda settings: find(group, settings, home))
        summarizer = Summarizer(home, lambda _: settings, calls, lambda _: (embedder, ""))
        report = SummaryReport()
        with calls_lock(home):
            candidates = summarizer.select(project, claim_sets.FIRST.date().isoformat())
            summarizer.requeue(candidates)
            summarizer.summarize(candidates, report)
        journal = Journal(project)
        lines = [line for day in journal.days() for line in journal.day(day).render().splitlines()]
        spent = total(Ledger(home).calls())
        usd = None if spent.unpriced else spent.usd
        return Summary(list(_bullets(lines)), spent.tokens, usd, report.failures)


def _bullets(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the text of each bullet, and whether it is marked."""
    for line in lines:
        pairs = anchors.parse(line)
        if "grip" in pairs:
            text = anchors.strip(line).partition(": ")[2]
            yield text.removesuffix(f" ({UNVERIFIED})"), pairs.get("check") == UNVERIFIED


def judge(group: Group, summary: Summary, embedder: Embedder) -> dict[str, Any]:
    """Compare the bullets with the references and the planted lies."""
    lies = {_words(text) for _, text in group.lies}
    told = [marked for text, marked in summary.bullets if _words(text) in lies]
    kept = [text for text, marked in summary.bullets if not marked and _words(text) not in lies]
    return {
        "references": len(group.true),
        "found": _found(group.true, kept, embedder),
        "bullets": len(summary.bullets),
        "unverified": sum(marked for _, marked in summary.bullets),
        "lies_written": len(told),
        "lies_accepted": told.count(False),
        "tokens": summary.tokens,
        "usd": summary.usd,
        "failures": summary.failures,
    }


def _found(references: Sequence[str], bullets: Sequence[str], embedder: Embedder) -> int:
    """Return how many references have a bullet that matches them."""
    if not bullets:
        return 0
    cosines = embedder.embed(references) @ embedder.embed(bullets).T
    stems = [_stems(text) for text in bullets]
    found = 0
    for text, row in zip(references, cosines, strict=True):
        wanted = _stems(text)
        shares = [len(wanted & has) / len(wanted) for has in stems]
        found += (
            max(float(cosine) + share for cosine, share in zip(row, shares, strict=True)) / 2
            >= MATCH
        )
    return found


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text, which stay the same when memkit cleans it."""
    return tuple(re.findall(r"\w+", text.casefold()))


def measure_model(
    groups: Sequence[Group],
    chosen: SummarizeSettings,
    find: FindProvider,
    embedder: Embedder,
    show: bool = False,
) -> dict[str, Any]:
    """Return the sums over all sessions."""
    rows = []
    for group in groups:
        summary = summarize(group, chosen, find, embedder)
        rows.append(judge(group, summary, embedder))
        for text, marked in summary.bullets if show else ():
            print(f"{group.topic}: {text}{f' ({UNVERIFIED})' if marked else ''}", file=sys.stderr)
    return {name: _sum([row[name] for row in rows]) for name in rows[0]}


def _sum(values: Sequence[Any]) -> Any:
    """Return the sum of numbers or lists, or None if one of them is unknown."""
    return None if None in values else sum(values, start=type(values[0])())


def measure(provider: str, model: str, embedder: Embedder, show: bool = False) -> dict[str, Any]:
    """Return the figures of the check on both sets, and of all models on the sessions."""
    sets = {name: claim_sets.read(claim_sets.DIRECTORY / f"{name}.txt") for name in SETS}
    sessions = claim_sets.read(claim_sets.DIRECTORY / "sessions.txt")
    models = {}
    for name, script in SCRIPTS.items():

        def scripted(group: Group, *_: Any, name: str = name, script: Script = script) -> Provider:
            return ScriptedModel(name, script(group))

        chosen = SummarizeSettings(provider="anthropic")
        models[name] = measure_model(sessions, chosen, scripted, embedder)
    if provider:

        def real(_: Group, settings: SummarizeSettings, home: Home) -> Provider:
            return find_provider(settings, home=home)

        chosen = SummarizeSettings(provider=provider, model=model)  # type: ignore[arg-type]
        name = f"{provider} {model}".strip()
        models[name] = measure_model(sessions, chosen, real, embedder, show)
    checks = {
        name: check_claims(groups, embedder, show and name == "fit")
        for name, groups in sets.items()
    }
    return {"check": checks, "models": models}


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def tables(figures: dict[str, Any]) -> str:
    """Return the figures as two Markdown tables."""
    import report

    checks = figures["check"]
    rows = []
    for kind in claim_sets.KINDS:
        found = [one["kinds"][kind] for one in checks.values()]
        rows.append([kind, *(f"{one['marked']} of {one['lies']}" for one in found)])
    rows += [
        ["all lies", *(_percent(one["marked"], one["lies"]) for one in checks.values())],
        ["true bullets", *(f"{one['false_alarms']} of {one['true']}" for one in checks.values())],
        ["false alarms", *(_percent(one["false_alarms"], one["true"]) for one in checks.values())],
    ]
    for name in next(iter(checks.values()))["later"]:
        shares = [one["later"][name] for one in checks.values()]
        rows.append([name, *(f"{lies:.0%} of lies, {true:.1%} false alarms" for lies, true in shares)])
    check = report.table(["marked `unverified`", *checks], rows)
    rows = [
        [
            name,
            _percent(one["found"], one["references"]),
            str(one["bullets"]),
            str(one["unverified"]),
            str(one["lies_written"]),
            str(one["lies_accepted"]),
            f"{one['tokens']:,}",
            "–" if one["usd"] is None else f"${one['usd']:.4f}",
        ]
        for name, one in figures["models"].items()
    ]
    header = "model,coverage,bullets,unverified,lies written,lies accepted,tokens,cost".split(",")
    return f"{check}\n\n{report.table(header, rows)}"


def main() -> int:
    """Print the figures. Return 1 if a call of the real model failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--provider",
        default="",
        choices=("auto", "anthropic", "claude-cli", "openai", "google", "ollama"),
        help="also ask a real model, as summarize.provider",
    )
    parser.add_argument("--model", default="", help="its name; default: the provider's small model")
    parser.add_argument("--show", action="store_true", help="print bullets and errors to stderr")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/benchmarks.md"
    )
    parser.add_argument(
        "--fit", action="store_true", help="print the weights of the check, and stop"
    )
    arguments = parser.parse_args()
    embedder = load_embedder(Home.from_environment(), EmbeddingSettings())
    if arguments.fit:
        groups = claim_sets.read(claim_sets.DIRECTORY / "fit.txt")
        for used in (embedder, None):
            intercept, weights = fitted_weights(groups, used)
            named = dict(zip(Measures._fields, np.round(weights, 2).tolist(), strict=True))
            print(round(intercept, 2), named)
        return 0
    figures = measure(arguments.provider, arguments.model, embedder, arguments.show)
    print(json.dumps(figures) if arguments.json else tables(figures))
    if arguments.write:
        import report

        head = f"## Summaries\n\n`python benchmarks/summaries.py --write`; {report.machine()}."
        report.replace_section("summaries", f"{head}\n\n{tables(figures)}")
    failures = [line for one in figures["models"].values() for line in one["failures"]]
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
