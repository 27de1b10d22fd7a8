"""`memkit cost`."""

from __future__ import annotations

from dataclasses import asdict

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import echo, format_cost, print_table
from memkit.text import plural

BAR_COLUMNS = 24


@command("cost")
@click.option(
    "--by", type=click.Choice(["day", "project", "model"]), default="day", show_default=True,
    help="What to group the calls by.",
)  # fmt: skip
@click.option("--since", metavar="DAY", help="Only calls from this day on (default: all).")
def cost_command(context: Context, by: str, since: str | None) -> None:
    """Show the cost of memkit's model calls: tokens, and dollars where prices are known.

    \b
      memkit cost --by model
      memkit cost --since 2w
    """
    from memkit.llm.ledger import Ledger, Total, total

    ledger = Ledger(context.home)
    calls = ledger.calls(iso_day_named(since))
    groups: dict[str, Total] = {}
    for call in calls:
        name = f"{call.provider} {call.model}" if by == "model" else getattr(call, by)
        groups.setdefault(name, Total()).add(call)
    everything = total(calls)
    if context.as_json:
        rows = [{by: name, **asdict(one)} for name, one in groups.items()]
        context.print_json({"by": by, "groups": rows, "total": asdict(everything)})
        return
    if not calls:
        echo("No model was called.")
        return
    most = max(one.tokens for one in groups.values()) or 1
    print_table(
        [
            (
                name, f"{one.calls:,}", f"{one.tokens_in:,}", f"{one.tokens_out:,}", format_cost(one),
                "#" * round(BAR_COLUMNS * one.tokens / most),
            )
            for name, one in sorted(groups.items())
        ],
        (by, "calls", "read", "written", "cost", ""),
        numbers=(1, 2, 3, 4),
    )  # fmt: skip
    settings = context.settings().summarize
    echo(
        f"{plural(everything.calls, 'call')}, {everything.tokens:,} tokens, {format_cost(everything)}. "
        f"Today {ledger.today().tokens:,} of {settings.daily_tokens:,} tokens."
    )
