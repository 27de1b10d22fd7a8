"""`memkit summarize` and `memkit compact`: the commands that ask a model."""

from __future__ import annotations

from dataclasses import asdict

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import confirm, echo, format_estimate, plain
from memkit.text import plural

WAIT_SECONDS = 120.0
COLORS = {"+": "green", "-": "red", "@": "cyan"}


@command("summarize")
@click.option(
    "--since", metavar="DAY",
    help="Include all days from this day on, also imported ones (default: what live sessions left).",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only print the amount and the price.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def summarize_command(context: Context, since: str | None, dry_run: bool, yes: bool) -> None:
    """Write bullets above the digests of this project, with the model of your choice.

    Prints the number of segments and the price first. If summarize.provider is set, memkit summarizes live
    sessions on its own; older and imported days only with this command.

    \b
      memkit config set summarize.provider auto
      memkit summarize --since 2w --dry-run
    """
    from memkit.llm import find_provider
    from memkit.llm.calls import Calls, calls_lock
    from memkit.summarize.summarizer import Summarizer, SummaryReport

    settings = context.settings()
    if not settings.summarize.is_on:
        line = "Summaries are off; the digests keep everything. `memkit config set summarize.provider auto` "
        context.report({"off": True}, f"{line}turns them on.")
        return
    first = iso_day_named(since)
    summarizer = Summarizer(context.home, lambda _: settings, Calls(context.home, find_provider))
    candidates = summarizer.select(context.project, first)
    plan = summarizer.plan(candidates, settings.summarize)
    turns = sum(len(one.segment.turns) for one in candidates)
    if context.as_json:
        if dry_run or not candidates:
            context.print_json({"segments": len(candidates), "turns": turns, **asdict(plan)})
    elif not candidates:
        echo("Nothing is waiting for a summary; `--since DAY` includes older days.")
    else:
        echo(
            f"{plural(len(candidates), 'segment')} of {plural(turns, 'turn')}: about {plan.tokens:,} tokens "
            f"in {plural(plan.calls, 'call')} of {plan.model}, {format_estimate(plan.usd)}."
        )
        if plan.tokens > plan.left:
            echo(f"Today's budget has only {plan.left:,} tokens left; memkit does the rest tomorrow.")
    if dry_run or not candidates:
        return
    confirm("Start?", yes)
    report = SummaryReport()
    agreed = {one.segment.id for one in candidates}
    with calls_lock(context.home, WAIT_SECONDS):
        # The service may have done some of them in the meantime.
        left = summarizer.select(context.project, first)
        candidates = [one for one in left if one.segment.id in agreed]
        summarizer.requeue(candidates)
        summarizer.summarize(context.project.root, candidates, report)
    if report.projects:
        context.memory().index()
    names = ("segments", "bullets", "calls", "failures")
    context.report(
        {name: getattr(report, name) for name in names},
        f"{plural(report.segments, 'segment')} summarized: {plural(report.bullets, 'bullet')} in "
        f"{plural(report.calls, 'call')}.",
    )
    context.check(report.failures, "some segments are not summarized yet; memkit tries again on its own")


@command("compact")
@click.option("--since", metavar="DAY", help="Only from this day on: 2026-11-20, 3d, 2w, last monday.")
@click.option("--until", metavar="DAY", help="Only up to this day, inclusive.")
@click.option("--path", default="", help="Only this memory file, directory, or pattern.")
@click.option("--dry-run", is_flag=True, help="Only print the amount and the price.")
@click.option("--yes", is_flag=True, help="Do not ask before the calls or before writing.")
def compact_command(
    context: Context, since: str | None, until: str | None, path: str, dry_run: bool, yes: bool
) -> None:
    """Condense the memory into lasting facts, preferences, and decisions, with the model of your choice.

    Reads everything since the last compaction, or what you select. Prints the amount and the price first,
    then the change, and writes it to MEMORY.md if you agree (with --json only if you pass --yes). memkit
    keeps the old text.

    \b
      memkit compact --dry-run
      memkit compact --since 2w
    """
    from datetime import date

    from memkit.llm import find_provider
    from memkit.llm.calls import Calls, calls_lock
    from memkit.summarize.compaction import Compaction
    from memkit.summarize.facts import EntrySelection

    settings = context.settings()
    if not settings.summarize.is_on:
        line = "No model is set up for this. `memkit config set summarize.provider auto` chooses one."
        context.report({"off": True}, line)
        return
    selection = EntrySelection(iso_day_named(since), iso_day_named(until), path)
    calls = Calls(context.home, find_provider)
    compaction = Compaction(context.project, context.home, settings, calls, date.today(), selection)
    entries = compaction.entries
    plan = compaction.plan()
    if context.as_json:
        if dry_run or not entries:
            counts = {"entries": len(entries), "facts": len(compaction.known)}
            context.print_json({**counts, **asdict(plan)})
    elif not entries:
        echo("Nothing new to condense; `--since DAY` or `--path PATH` includes older memory.")
    else:
        echo(
            f"{plural(len(entries), 'entry', 'entries')} and {plural(len(compaction.known), 'known fact')}: "
            f"about {plan.tokens:,} tokens in {plural(plan.calls, 'call')} of {plan.model}, "
            f"{format_estimate(plan.usd)}."
        )
    if dry_run or not entries:
        return
    compaction.check_budget(plan)
    confirm("Start?", yes)
    with calls_lock(context.home, WAIT_SECONDS):
        change = compaction.condense()
    target = str(compaction.path)
    diff = list(compaction.preview(change))
    if change and not context.as_json:
        for line in diff:
            echo(line, fg=COLORS.get(line[:1]))
    is_written = bool(change) and (
        yes or (not context.as_json and click.confirm(f"Write to {plain(target)}?", err=True))
    )
    kept = compaction.write(change) if is_written else None
    if is_written:
        context.memory().index()
        result = (
            f"{plural(len(change.added), 'fact')} added, {len(change.removed)} removed, in "
            f"{plural(compaction.asked, 'call')}.{f' The old text is in {kept}.' if kept else ''}"
        )
    elif diff:
        result = "Nothing was changed."
    else:
        result = "The model found no new lasting facts. Nothing was changed."
    value = {
        "path": target,
        "calls": compaction.asked,
        "added": [fact.line for fact in change.added],
        "removed": len(change.removed),
        "diff": diff,
        "written": is_written,
        "kept": str(kept) if kept else None,
    }
    context.report(value, result)
