"""`memkit fix` and `memkit how`: the commands that got past an error, and those with a tool that worked."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plain
from memkit.text import plural


@command("fix")
@click.argument("error", nargs=-1, required=True)
@click.option("-n", "count", type=click.IntRange(1), default=5, show_default=True, help="Most failures.")
def fix_command(context: Context, error: tuple[str, ...], count: int) -> None:
    """Show what was run after this error when it did not come back, newest first.

    Compares the words of the message; numbers, paths, and IDs may differ. Failures that were not solved come
    last. Words that begin with a dash go after `--`.

    \b
      memkit fix "ModuleNotFoundError: No module named 'yaml'"
    """
    found = context.memory().fix(" ".join(error))[:count]
    lines = [] if found else ["No command failed with this message; `memkit search` finds what mentions it."]
    for one in found:
        lines += [f"{one.date}  session {one.session[:8]}  {one.id}", f"  {one.command}"]
        end = f"    passed: {one.passed}" if one.passed else "    not solved"
        lines += [f"    failed: {one.error}", *(f"    then: {step}" for step in one.steps), end]
    context.report({"fixes": [one._asdict() for one in found]}, *map(plain, lines))


@command("how")
@click.argument("tool")
@click.option("-n", "count", type=click.IntRange(1), default=20, show_default=True, help="Most commands.")
def how_command(context: Context, tool: str, count: int) -> None:
    """Show the commands with a tool that worked in this project, the most frequent first.

    \b
      memkit how pytest
    """
    found = context.memory().how(tool)[:count]
    lines = [] if found else [f"No command with {tool} has worked here."]
    for one in found:
        lines += [one.command, f"  {plural(one.times, 'time')}, last on {one.date}  {one.id}"]
    context.report({"commands": [one._asdict() for one in found]}, *map(plain, lines))
