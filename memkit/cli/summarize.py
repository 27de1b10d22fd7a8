"""`memkit summarize`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, about_dollars, command, confirm, counted, iso_day_named
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from memkit.summarize.plan import Plan

WAIT_SECONDS = 120.0


@command("summarize")
@click.option(
    "--since", metavar="DAY",
    help="All days from this one on, imported ones too; without it what waits from live sessions.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say how much it is and what it would cost.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def summarize_command(context: Context, since: str | None, dry_run: bool, yes: bool) -> None:
    """Have bullets written above the digests of this project, by the model of your choice.

    Says first how many segments there are, and what they cost. Live sessions are summarized by
    themselves, if summarize.provider is set; older and imported days only by this command.

    \b
      memkit config set summarize.provider auto
      memkit summarize --since 2w --dry-run
    """
    from memkit.llm.calls import Calls, calls_lock
    from memkit.llm.providers import find_provider
    from memkit.summarize.plan import make_plan
    from memkit.summarize.summarizer import Summarizer, SummaryReport

    settings = context.settings()
    if not settings.summarize.is_on:
        _say_off(context)
        return
    first = iso_day_named(since)
    calls = Calls(context.home, find_provider)
    summarizer = Summarizer(context.home, lambda _: settings, calls)
    candidates = summarizer.asked_for(context.project, first)
    plan = make_plan(candidates, settings.summarize, find_provider(settings.summarize), calls.ledger)
    if not context.as_json:
        _show(plan)
    if dry_run or not candidates:
        if context.as_json:
            context.print_json(plan.as_dict())
        return
    confirm("Start?", yes)
    report = SummaryReport()
    agreed = {one.segment.id for one in candidates}
    with calls_lock(context.home, WAIT_SECONDS):
        # The service may have been at the same meanwhile.
        left = summarizer.asked_for(context.project, first)
        candidates = [one for one in left if one.segment.id in agreed]
        summarizer.keep(candidates)
        summarizer.summarize(context.project.root, candidates, report)
    if report.projects:
        from memkit.cli.index import index_project

        index_project(context)
    if context.as_json:
        context.print_json(
            {
                "segments": report.segments,
                "bullets": report.bullets,
                "calls": report.calls,
                "failures": report.failures,
            }
        )
    else:
        done = f"{counted(report.segments, 'segment')} summarized"
        click.echo(f"{done}: {counted(report.bullets, 'bullet')} in {counted(report.calls, 'call')}.")
    for line in report.failures:
        context.say(line)
    if report.failures:
        raise MemkitError("some segments are not summarized; they are tried again by themselves")


def _say_off(context: Context) -> None:
    if context.as_json:
        context.print_json({"off": True})
    else:
        click.echo(
            "Summaries are off. `memkit config set summarize.provider auto` turns them on; the digests "
            "keep everything meanwhile."
        )


def _show(plan: Plan) -> None:
    if not plan.segments:
        click.echo("Nothing waits to be summarized; `--since DAY` takes in older days.")
        return
    click.echo(
        f"{counted(plan.segments, 'segment')} of {counted(plan.turns, 'turn')}: about "
        f"{plan.tokens:,} tokens in {counted(plan.calls, 'call')} of {plan.model}, {about_dollars(plan.usd)}."
    )
    if plan.tokens > plan.left:
        click.echo(
            f"Today's budget has {plan.left:,} tokens left; the rest goes on tomorrow by itself."
        )
