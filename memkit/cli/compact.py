"""`memkit compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from memkit.cli.context import (
    Context,
    about_dollars,
    command,
    confirm,
    counted,
    iso_day_named,
    plain,
    styled,
)

if TYPE_CHECKING:
    from memkit.summarize.compaction import CompactPlan, Target

WAIT_SECONDS = 120.0

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@command("compact")
@click.option("--since", metavar="DAY", help="Not older: 2026-11-20, 3d, 2w, last monday.")
@click.option("--until", metavar="DAY", help="Not newer; that day is included.")
@click.option("--path", default="", help="From one memory file, directory or pattern.")
@click.option(
    "--into", type=click.Choice(["MEMORY.md", "journal"], case_sensitive=False),
    default="MEMORY.md", show_default=True,
    help="Where the facts go: a file of their own, or a section of today's page.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say how much it is and what it would cost.")
@click.option("--yes", is_flag=True, help="Do not ask, neither before the calls nor before writing.")
def compact_command(
    context: Context, since: str | None, until: str | None, path: str, into: str, dry_run: bool, yes: bool
) -> None:
    """Condense memory into lasting facts, preferences and decisions, by the model of your choice.

    Takes what is newer than the last compaction, or what you select. Says first how much that is and
    what it costs, then shows the change it would make, and writes it when you agree (with --json only
    if there is --yes). The old text is kept.

    \b
      memkit compact --dry-run
      memkit compact --since 2w --into journal
    """
    from datetime import date

    from memkit.llm.calls import Calls, calls_lock
    from memkit.llm.providers import find_provider
    from memkit.summarize.compaction import Compaction
    from memkit.summarize.entries import EntrySelection

    settings = context.settings()
    if not settings.summarize.is_on:
        _say_off(context)
        return
    today = date.today()
    first, last = iso_day_named(since), iso_day_named(until)
    calls = Calls(context.home, find_provider)
    compaction = Compaction(context.project, context.home, settings, calls, today)
    work = compaction.find_work(cast("Target", into), EntrySelection(first, last, path))
    plan = compaction.plan(work, find_provider(settings.summarize))
    if not context.as_json:
        _show(plan)
    if dry_run or not work.entries:
        if context.as_json:
            context.print_json(plan.as_dict())
        return
    plan.check_budget()
    confirm("Start?", yes)
    with calls_lock(context.home, WAIT_SECONDS):
        change = compaction.condense(work)
    diff = list(compaction.preview(work, change))
    result: dict[str, Any] = {
        "path": str(compaction.path(work)),
        "calls": compaction.asked,
        "added": [fact.line for fact in change.added],
        "removed": len(change.removed),
        "diff": diff,
        "written": False,
        "kept": None,
    }
    if change and not context.as_json:
        for line in diff:
            click.echo(styled(plain(line), fg=_COLOURS.get(line[:1])))
    if change and (yes or (not context.as_json and _is_wanted(result["path"]))):
        kept = compaction.write(work, change)
        result |= {"written": True, "kept": str(kept) if kept else None}
        from memkit.cli.index import index_project

        index_project(context)
    _report(context, result)


def _say_off(context: Context) -> None:
    if context.as_json:
        context.print_json({"off": True})
    else:
        click.echo(
            "No model is chosen to condense with. `memkit config set summarize.provider auto` chooses one."
        )


def _show(plan: CompactPlan) -> None:
    if not plan.entries:
        click.echo("Nothing new to condense; `--since DAY` or `--path PATH` takes in older memory.")
        return
    entries = "entry" if plan.entries == 1 else "entries"
    click.echo(
        f"{plan.entries:,} {entries} and {counted(plan.facts, 'known fact')}: about {plan.tokens:,} tokens "
        f"in {counted(plan.calls, 'call')} of {plan.model}, {about_dollars(plan.usd)}."
    )


def _is_wanted(path: str) -> bool:
    return click.confirm(f"Write this to {plain(path)}?", err=True)


def _report(context: Context, result: dict[str, Any]) -> None:
    if context.as_json:
        context.print_json(result)
    elif result["written"]:
        old = f" The old text is kept as {plain(result['kept'])}." if result["kept"] else ""
        click.echo(
            f"{counted(len(result['added']), 'fact')} added, {result['removed']} taken out, in "
            f"{counted(result['calls'], 'call')}.{old}"
        )
    elif result["diff"]:
        click.echo("Nothing is changed.")
    else:
        click.echo("The model found nothing that lasts, beyond what is known. Nothing is changed.")
