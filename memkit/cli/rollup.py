"""`memkit summarize NODE`: the rollup of a week, month, or year that a person asks for."""

from __future__ import annotations

from dataclasses import asdict

import click

from memkit.cli.context import Context
from memkit.cli.output import confirm, echo, format_estimate, plain
from memkit.text import plural


def roll_up(context: Context, node: str, *, dry_run: bool, yes: bool) -> None:
    """Write the rollup of a week, month, or year that the user names."""
    from memkit.llm import find_provider
    from memkit.llm.calls import Calls, calls_lock
    from memkit.summarize.rollup import LEAST_ENTRIES, WAIT_SECONDS, AskedRollup
    from memkit.summarize.rollup_material import LEVELS
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
        echo(
            f"At most {plan.tokens:,} tokens in {plural(plan.calls, 'call')} of {plan.model}, "
            f"{format_estimate(plan.usd)}."
        )
        if plan.tokens > plan.left:
            left = f"Today's budget has only {plan.left:,} tokens left."
            echo(f"{left} What does not fit is left out; the same command goes on tomorrow.")
    elif dry_run:
        context.print_json({**counts, **asdict(plan)})
    if dry_run:
        return
    confirm("Start?", yes)
    waiting = context.progress(f"asking {plan.model}", is_counted=False)
    with waiting, calls_lock(context.home, WAIT_SECONDS):
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
