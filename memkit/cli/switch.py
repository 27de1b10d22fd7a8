"""`memkit on` and `memkit off`."""

from __future__ import annotations

import time

import click

from memkit.cli.context import Context, command, plain


@command("off")
def off_command(context: Context) -> None:
    """Stop remembering this project's sessions. What is remembered stays, and stays searchable.

    \b
      memkit off
    """
    context.project.switch_off(time.time())
    _tell(context, "off")


@command("on")
def on_command(context: Context) -> None:
    """Remember this project's sessions again; what was said while it was off stays out.

    \b
      memkit on
    """
    context.project.switch_on(time.time())
    _tell(context, "on")


def _tell(context: Context, state: str) -> None:
    if context.as_json:
        context.print_json({"project": context.project.root, "memory": state})
    else:
        click.echo(plain(f"memkit is {state} for {context.project.root}"))
