"""`memkit cost`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import format_cost, plain
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.llm.ledger import Call, Total

BAR_COLUMNS = 24


@command("cost")
@click.option(
    "--by", type=click.Choice(["day", "project", "model"]), default="day", show_default=True,
    help="Group the calls by this.",
)  # fmt: skip
@click.option("--since", metavar="DAY", help="Calls from this day on; by default all.")
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
        groups.setdefault(_name(call, by), Total()).add(call)
    everything = total(calls)
    if context.as_json:
        rows = [{by: name, **asdict(one)} for name, one in groups.items()]
        context.print_json({"by": by, "groups": rows, "total": asdict(everything)})
        return
    if not calls:
        click.echo("No model was called.")
        return
    _print_table(by, groups)
    settings = context.settings().summarize
    click.echo(
        f"{plural(everything.calls, 'call')}, {everything.tokens:,} tokens, {format_cost(everything)}. "
        f"Today {ledger.today().tokens:,} of {settings.daily_tokens:,} tokens."
    )


def _name(call: Call, by: str) -> str:
    if by == "day":
        return call.day
    return call.project if by == "project" else f"{call.provider} {call.model}"


def _print_table(by: str, groups: dict[str, Total]) -> None:
    from rich.bar import Bar
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(by, overflow="fold")
    for title in ("calls", "read", "written", "cost"):
        table.add_column(title, justify="right")
    table.add_column("")
    most = max(one.tokens for one in groups.values()) or 1
    for name, one in sorted(groups.items()):
        table.add_row(
            plain(name), f"{one.calls:,}", f"{one.tokens_in:,}", f"{one.tokens_out:,}", format_cost(one),
            Bar(most, 0, one.tokens, width=BAR_COLUMNS),
        )  # fmt: skip
    Console(highlight=False, markup=False).print(table)
