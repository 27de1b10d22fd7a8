"""`memkit on` and `memkit off`."""

from __future__ import annotations

import time

from memkit.cli.context import Context, command


@command("off")
def off_command(context: Context) -> None:
    """Stop remembering this project's sessions. Its memory stays and can still be searched.

    \b
      memkit off
    """
    context.project.switch_off(time.time())
    _report(context, "off")


@command("on")
def on_command(context: Context) -> None:
    """Remember this project's sessions again, but not those from the time it was off.

    \b
      memkit on
    """
    context.project.switch_on(time.time())
    _report(context, "on")


def _report(context: Context, state: str) -> None:
    root = context.project.root
    context.report({"project": root, "memory": state}, f"memkit is {state} for {root}")
