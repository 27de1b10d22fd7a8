"""`memkit summarize`."""

from __future__ import annotations

from dataclasses import asdict

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import confirm, format_estimate
from memkit.errors import MemkitError
from memkit.text import plural

WAIT_SECONDS = 120.0


@command("summarize")
@click.option(
    "--since", metavar="DAY",
    help="All days from this one on, also imported ones. By default only what live sessions left.",
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
        print_off(
            context,
            "Summaries are off; the digests keep everything. `memkit config set summarize.provider auto` "
            "turns them on.",
        )
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
        click.echo("Nothing is waiting for a summary; `--since DAY` includes older days.")
    else:
        click.echo(
            f"{plural(len(candidates), 'segment')} of {plural(turns, 'turn')}: about {plan.tokens:,} tokens "
            f"in {plural(plan.calls, 'call')} of {plan.model}, {format_estimate(plan.usd)}."
        )
        if plan.tokens > plan.left:
            click.echo(
                f"Today's budget has {plan.left:,} tokens left; memkit does the rest tomorrow on its own."
            )
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
        from memkit.cli.index import index_project

        index_project(context)
    if context.as_json:
        names = ("segments", "bullets", "calls", "failures")
        context.print_json({name: getattr(report, name) for name in names})
    else:
        click.echo(
            f"{plural(report.segments, 'segment')} summarized: {plural(report.bullets, 'bullet')} in "
            f"{plural(report.calls, 'call')}."
        )
    for line in report.failures:
        context.say(line)
    if report.failures:
        raise MemkitError("some segments are not summarized; memkit tries them again on its own")


def print_off(context: Context, line: str) -> None:
    """Report that no model is chosen, which is not an error."""
    if context.as_json:
        context.print_json({"off": True})
    else:
        click.echo(line)
