"""`memkit on` and `memkit off`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from memkit.cli.context import Context, command
from memkit.paths import OFF_MARKER, make_private_directory


@command("off")
def off_command(context: Context) -> None:
    """Stop remembering this project's sessions. What is remembered stays, and stays searchable."""
    marker = os.path.join(context.project.root, OFF_MARKER)
    make_private_directory(os.path.dirname(marker))
    Path(marker).touch(0o600)
    _tell(context, "off")


@command("on")
def on_command(context: Context) -> None:
    """Remember this project's sessions again."""
    Path(context.project.root, OFF_MARKER).unlink(missing_ok=True)
    _tell(context, "on")


def _tell(context: Context, state: str) -> None:
    if context.as_json:
        context.print_json({"project": context.project.root, "memory": state})
    else:
        click.echo(f"memkit is {state} for {context.project.root}")
