"""`memkit doctor`."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plain, plural, styled

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
    from memkit.cli.log import log_to_file
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
                click.echo(plain(f"{'not fixed' if result.failed else 'fixed'}: {result.message}"))
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
        click.echo(plain(f"    means: {finding.meaning}"))
        click.echo(plain(f"    fix:   {finding.fix}"))
    for root, when in sorted(events.items(), key=lambda pair: -pair[1]):
        click.echo(plain(f"last event of a hook in {root}: {_age(time.time() - when)} ago"))
    counts = [
        plural(count, level)
        for level in COLORS
        if (count := sum(finding.level == level for finding in findings))
    ]
    click.echo(f"{', '.join(counts)}." if counts else "No problems found.")


def _age(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return plural(int(seconds // length), unit)
    return plural(max(0, int(seconds)), "second")
