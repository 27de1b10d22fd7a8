"""`memkit summarize` and `memkit compact`: the commands that ask a model."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING

import click

from memkit import anchors
from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import confirm, echo, format_estimate, plain, user_agrees
from memkit.errors import MemkitError
from memkit.llm.calls import ROUND_SECONDS, Calls, Plan, calls_lock
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.summarize.compaction import Compaction
    from memkit.summarize.summarizer import Summarizer

WAIT_SECONDS = 120.0
COLORS = {"+": "green", "-": "red", "@": "cyan"}


def _amount(plan: Plan) -> str:
    calls = plural(plan.calls, "call")
    return f"{plan.tokens:,} tokens in {calls} of {plan.model}, {format_estimate(plan.usd)}"


def roll_up(context: Context, node: str, *, dry_run: bool, yes: bool) -> None:
    """Write the rollup of a week, month, or year that the user names."""
    from memkit.llm import find_provider
    from memkit.summarize.rollup import LEAST_ENTRIES, LEVELS, AskedRollup
    from memkit.timeline.nodes import parse_span

    span = parse_span(node)
    if span is None or span.kind not in LEVELS:
        raise click.UsageError(f"{plain(node)!r} is not a week (2026-W14), month (2026-04), or year (2026)")
    settings = context.settings()
    if not settings.summarize.is_on:
        line = f"No model is set up for this, because {settings.summarize.why_off}."
        context.report({"off": True}, line, f"`memkit timeline {span.name}` shows what it holds without one.")
        return
    calls = Calls(context.home, find_provider)
    asked = AskedRollup(context.project, context.home, settings, span, calls)
    names = [one.name for one in asked.spans]
    count = plural(len(asked.entries), "entry", "entries")
    counts = {"node": span.name, "entries": len(asked.entries), "rollups": names}
    if not names:
        few = f"{span.name} has {count}; a rollup needs {LEAST_ENTRIES}. "
        line = f"The rollup of {span.name} is up to date. " if asked.is_current else few
        context.report({**counts, "calls": 0}, f"{line}`memkit timeline {span.name}` shows it.")
        return
    plan = asked.plan()
    if not context.as_json:
        parts = f" (first {', '.join(names[:-1])})" if names[1:] else ""
        echo(f"{span.name}: {count} for {plural(len(names), 'rollup')}{parts}.")
        echo(f"At most {_amount(plan)}.")
        if plan.tokens > plan.left:
            left = f"Today's budget has only {plan.left:,} tokens left."
            echo(f"{left} What does not fit is left out; the same command goes on tomorrow.")
    elif dry_run:
        context.print_json({**counts, **asdict(plan)})
    if dry_run:
        return
    confirm("Start?", yes)
    waiting = context.progress(f"asking {plan.model}", is_counted=False)
    with waiting, calls_lock(context.home, ROUND_SECONDS):
        # The job may have made some of them in the meantime.
        report = AskedRollup(context.project, context.home, settings, span, calls).make()
    if report.projects:
        context.memory().index()
    context.report(
        {**counts, "made": report.segments, "calls": report.calls, "failures": report.failures},
        f"{plural(report.segments, 'rollup')} made in {plural(report.calls, 'call')}; "
        f"`memkit timeline {span.name}` shows what there is.",
    )
    context.check(report.failures, f"the rollup of {span.name} is not made yet; what is there stays")


@command("summarize")
@click.argument("node", default="", metavar="[NODE]")
@click.option(
    "--since", metavar="DAY",
    help="Include all days from this day on, also imported ones (default: what live sessions left).",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only print the amount and the price.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def summarize_command(context: Context, node: str, since: str | None, dry_run: bool, yes: bool) -> None:
    """Write bullets above the digests of this project, with the model of your choice.

    With a week, month, or year that is over (2026-W14, 2026-04, 2026), write its rollup: what it came to, in
    up to eight lines.

    Prints the number of segments and the price first. Where summaries are on, memkit summarizes live
    sessions on its own; older and imported days only with this command. Without a model it writes extracts:
    files edited, commands that failed, commits, decisions, and the last open question.

    \b
      memkit summarize --since 2w --dry-run
      memkit summarize 2025-03
    """
    if node:
        if since:
            raise click.UsageError("give a NODE or --since, not both")
        roll_up(context, node, dry_run=dry_run, yes=yes)
        return
    from memkit.llm import find_provider
    from memkit.summarize.summarizer import Summarizer

    settings = context.settings()
    first = iso_day_named(since)
    summarizer = Summarizer(context.home, lambda _: settings, Calls(context.home, find_provider))
    if settings.summarize.wants_extracts:
        _extract(context, summarizer, first, dry_run)
        return
    if not settings.summarize.is_on:
        line = f"Summaries are off, because {settings.summarize.why_off}; the digests keep everything."
        context.report({"off": True}, line)
        return
    candidates = summarizer.select(context.project, first)
    plan = summarizer.plan(candidates, settings.summarize)
    turns = sum(len(one.segment.turns) for one in candidates)
    if context.as_json:
        if dry_run or not candidates:
            context.print_json({"segments": len(candidates), "turns": turns, **asdict(plan)})
    elif not candidates:
        echo("Nothing is waiting for a summary" + _older_days(first))
    else:
        echo(f"{plural(len(candidates), 'segment')} of {plural(turns, 'turn')}: about {_amount(plan)}.")
        if plan.tokens > plan.left:
            echo(f"Today's budget has only {plan.left:,} tokens left; memkit does the rest tomorrow.")
    if dry_run or not candidates:
        return
    confirm("Start?", yes)
    agreed = {one.segment.id for one in candidates}
    with context.progress(f"asking {plan.model}", is_counted=False):
        report = summarizer.summarize_agreed(context.project, first, agreed)
    if report.projects:
        context.memory().index()
    names = ("segments", "bullets", "calls", "failures")
    context.report(
        {name: getattr(report, name) for name in names},
        f"{plural(report.segments, 'segment')} summarized: {plural(report.bullets, 'bullet')} in "
        f"{plural(report.calls, 'call')}.",
    )
    context.check(report.failures, "some segments are not summarized yet; memkit tries again on its own")


def _older_days(first: str) -> str:
    return "." if first else "; `--since DAY` includes older days."


def _extract(context: Context, summarizer: Summarizer, first: str, dry_run: bool) -> None:
    """Write extracts, which need no model."""
    from memkit.journal.journal import Journal
    from memkit.summarize.extract import without_extract
    from memkit.summarize.summarizer import SummaryReport

    candidates = summarizer.select(context.project, first)
    waiting = list(without_extract(Journal(context.project), [one.segment for one in candidates]))
    report = SummaryReport()
    if not dry_run:
        summarizer.extract(context.project.root, candidates, report)
    if report.projects:
        context.memory().index()
    if dry_run:
        line = f"{plural(len(waiting), 'segment')} would get an extract, without a model and at no cost."
    elif waiting:
        line = f"{plural(report.extracts, 'segment')} got an extract, without a model and at no cost."
    else:
        line = "No segment is waiting for an extract" + _older_days(first)
    more = f"No model writes summaries, because {summarizer.settings_of(context.project).summarize.why_off}."
    context.report({"waiting": len(waiting), "extracts": report.extracts}, line, more)


@command("compact")
@click.option("--since", metavar="DAY", help="Only from this day on: 2026-11-20, 3d, 2w, last monday.")
@click.option("--until", metavar="DAY", help="Only up to this day, inclusive.")
@click.option("--path", default="", help="Only this memory file, directory, or pattern.")
@click.option("--undo", is_flag=True, help="Undo the last compaction. Your own changes stay.")
@click.option("--dry-run", is_flag=True, help="Only print the amount and the price, or the undone change.")
@click.option("--yes", is_flag=True, help="Do not ask before the calls or before writing.")
def compact_command(
    context: Context, since: str | None, until: str | None, path: str, undo: bool, dry_run: bool, yes: bool
) -> None:
    """Condense the memory into lasting facts, preferences, and decisions, with the model of your choice.

    Reads everything since the last compaction, or what you select. Prints the amount and the price first,
    then the change, and writes it to MEMORY.md if you agree (with --json only if you pass --yes). memkit
    keeps the old text. More than a third of the facts goes only if you agree to that in a terminal.

    \b
      memkit compact --dry-run
      memkit compact --since 2w
      memkit compact --undo
    """
    from memkit.llm import find_provider
    from memkit.summarize.compaction import Compaction
    from memkit.summarize.facts import EntrySelection

    settings = context.settings()
    selection = EntrySelection(iso_day_named(since), iso_day_named(until), path)
    calls = Calls(context.home, find_provider)
    compaction = Compaction(context.project, context.home, settings, calls, date.today(), selection)
    if undo:
        if since or until or path:
            raise click.UsageError("--undo takes no --since, --until, or --path")
        _undo(context, compaction, dry_run=dry_run, yes=yes)
        return
    if not settings.summarize.is_on:
        line = f"No model is set up for this, because {settings.summarize.why_off}."
        context.report({"off": True}, line)
        return
    entries = compaction.entries
    plan = compaction.plan()
    if context.as_json:
        if dry_run or not entries:
            counts = {"entries": len(entries), "facts": len(compaction.known)}
            context.print_json({**counts, **asdict(plan)})
    elif not entries:
        is_new = selection == EntrySelection()
        hint = "new to condense; `--since DAY` or `--path PATH` includes older memory."
        echo(f"Nothing {hint}" if is_new else "The selected memory has nothing to condense.")
    else:
        echo(
            f"{plural(len(entries), 'entry', 'entries')} and {plural(len(compaction.known), 'known fact')}: "
            f"about {_amount(plan)}."
        )
    if dry_run or not entries:
        return
    compaction.check_budget(plan)
    confirm("Start?", yes)
    waiting = context.progress(f"asking {plan.model}", is_counted=False)
    with waiting, calls_lock(context.home, ROUND_SECONDS):
        change = compaction.condense()
    may_ask = not yes and not context.as_json
    if compaction.held and may_ask and _may_remove_all(compaction):
        change = replace(change, removed=change.removed | {fact.id for fact in compaction.held})
        compaction.held = ()
    target = str(compaction.path)
    diff = list(compaction.preview(change))
    if change and not context.as_json:
        _show_diff(diff)
    is_written = bool(change) and (yes or (may_ask and click.confirm(f"Write to {plain(target)}?", err=True)))
    kept = compaction.write(change) if is_written else None
    if is_written:
        context.memory().index()
        result = (
            f"{plural(len(change.added), 'fact')} added, {len(change.removed)} removed, in "
            f"{plural(calls.made, 'call')}.{f' The old text is in {kept}.' if kept else ''}"
        )
    elif diff:
        result = "Nothing was changed."
    else:
        result = "The model found no new lasting facts. Nothing was changed."
    value = {
        "path": target,
        "calls": calls.made,
        "added": [fact.line for fact in change.added],
        "removed": len(change.removed),
        "held": [fact.line for fact in compaction.held],
        "diff": diff,
        "written": is_written,
        "kept": str(kept) if kept else None,
    }
    lines = [f"{compaction.held_line()}."] if compaction.held and is_written else []
    context.report(value, result, *lines)


def _show_diff(diff: list[str]) -> None:
    lines = [anchors.strip(line).rstrip() for line in diff]
    removed, added = ({line[1:] for line in lines if line[:1] == sign} for sign in "-+")
    for line in lines:
        if line[:1] not in ("-", "+") or line[1:] not in removed & added:
            echo(line, fg=COLORS.get(line[:1]))


def _may_remove_all(compaction: Compaction) -> bool:
    for fact in compaction.held:
        echo(f"-{anchors.strip(fact.line)}", fg=COLORS["-"])
    return user_agrees(
        f"The model replaced {plural(len(compaction.held), 'fact')} in addition to the third that may go at "
        f"once, of {len(compaction.known)} in all. Remove these too?"
    )


def _undo(context: Context, compaction: Compaction, *, dry_run: bool, yes: bool) -> None:
    change = compaction.undo()
    target = str(compaction.path)
    diff = list(compaction.preview(change))
    if not context.as_json:
        _show_diff(diff)
    is_written = not dry_run and (not context.as_json or yes)
    kept = None
    if is_written:
        if diff:
            confirm(f"Write to {plain(target)}?", yes)
        with calls_lock(context.home, ROUND_SECONDS):
            if compaction.undo() != change:
                raise MemkitError("another compaction has run meanwhile; nothing was changed")
            kept = compaction.write(change, is_undo=True)
        context.memory().index()
    value = {
        "path": target,
        "restored": [fact.line for fact in change.added],
        "diff": diff,
        "written": is_written and bool(diff),
        "kept": str(kept) if kept else None,
    }
    if not diff:
        result = "The file holds nothing of the last compaction any more. Nothing was changed."
    elif is_written:
        result = f"The last compaction is undone.{f' The text before is in {kept}.' if kept else ''}"
    else:
        result = "Nothing was changed."
    context.report(value, result)
