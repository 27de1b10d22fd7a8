"""`memkit compact`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import confirm, format_estimate, plain, styled
from memkit.cli.summarize import WAIT_SECONDS, print_off
from memkit.text import plural

_COLORS = {"+": "green", "-": "red", "@": "cyan"}


@command("compact")
@click.option("--since", metavar="DAY", help="Not older: 2026-11-20, 3d, 2w, last monday.")
@click.option("--until", metavar="DAY", help="Not newer; that day is included.")
@click.option("--path", default="", help="From one memory file, directory or pattern.")
@click.option("--dry-run", is_flag=True, help="Only print the amount and the price.")
@click.option("--yes", is_flag=True, help="Do not ask, neither before the calls nor before writing.")
def compact_command(
    context: Context, since: str | None, until: str | None, path: str, dry_run: bool, yes: bool
) -> None:
    """Condense memory into lasting facts, preferences and decisions, with the model of your choice.

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
        print_off(
            context,
            "No model is set up for this. `memkit config set summarize.provider auto` chooses one.",
        )
        return
    selection = EntrySelection(iso_day_named(since), iso_day_named(until), path)
    calls = Calls(context.home, find_provider)
    compaction = Compaction(
        context.project, context.home, settings, calls, date.today(), selection
    )
    entries = compaction.entries
    plan = compaction.plan()
    if context.as_json:
        if dry_run or not entries:
            counts = {"entries": len(entries), "facts": len(compaction.known)}
            context.print_json({**counts, **asdict(plan)})
    elif not entries:
        click.echo("Nothing new to condense; `--since DAY` or `--path PATH` includes older memory.")
    else:
        click.echo(
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
            click.echo(styled(plain(line), fg=_COLORS.get(line[:1])))
    kept, is_written = None, False
    if change and (yes or (not context.as_json and click.confirm(f"Write to {plain(target)}?", err=True))):
        kept = compaction.write(change)
        is_written = True
        from memkit.cli.index import index_project

        index_project(context)
    if context.as_json:
        result: dict[str, Any] = {
            "path": target,
            "calls": compaction.asked,
            "added": [fact.line for fact in change.added],
            "removed": len(change.removed),
            "diff": diff,
            "written": is_written,
            "kept": str(kept) if kept else None,
        }
        context.print_json(result)
    elif is_written:
        old = f" The old text is in {plain(str(kept))}." if kept else ""
        click.echo(
            f"{plural(len(change.added), 'fact')} added, {len(change.removed)} removed, in "
            f"{plural(compaction.asked, 'call')}.{old}"
        )
    elif diff:
        click.echo("Nothing is changed.")
    else:
        click.echo("The model found no new lasting fact. Nothing is changed.")
