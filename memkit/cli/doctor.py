"""`memkit doctor`."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, format_duration, plain, styled
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.doctor import Finding
    from memkit.doctor.checks import FixResult

COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


@command("doctor")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without harm.")
def doctor_command(context: Context, fix: bool) -> None:
    """Find problems with memkit here, explain what they mean, and how to fix them.

    An error loses memory or hides it from searches; a warning may lead to that; a note is harmless. The
    exit status is 1 if an error remains.

    \b
      memkit doctor
      memkit doctor --fix
    """
    from memkit.cli.logs import log_to_file
    from memkit.doctor import open_subject
    from memkit.doctor.capture import last_events
    from memkit.doctor.checks import apply_fixes, examine

    log_to_file(context.home)
    findings = examine(open_subject(context.home, context.project))
    fixed: list[FixResult] = []
    if fix:
        for result in apply_fixes(open_subject(context.home, context.project), findings):
            fixed.append(result)
            if not context.as_json:
                echo(f"{'not fixed' if result.failed else 'fixed'}: {result.message}")
        if fixed:
            findings = examine(open_subject(context.home, context.project))
    events = last_events(context.home)
    if context.as_json:
        context.print_json(
            {
                "findings": [{**dataclasses.asdict(one), "fixable": one.fixable} for one in findings],
                "fixed": [result._asdict() for result in fixed],
                "last_events": events,
            }
        )
    else:
        _show(findings, events)
    if any(finding.level == "error" for finding in findings):
        raise click.exceptions.Exit(1)


def _show(findings: list[Finding], events: dict[str, float]) -> None:
    for finding in findings:
        level = styled(finding.level, fg=COLORS[finding.level], bold=True)
        click.echo(f"{level}: {plain(finding.what)}")
        echo(f"    means: {finding.meaning}")
        echo(f"    fix:   {finding.fix}")
    for root, when in sorted(events.items(), key=lambda pair: -pair[1]):
        echo(f"last event of a hook in {root}: {format_duration(time.time() - when)} ago")
    counts: Counter[str] = Counter(finding.level for finding in findings)
    shown = [plural(counts[level], level) for level in COLORS if counts[level]]
    echo(f"{', '.join(shown)}." if shown else "No problems found.")
