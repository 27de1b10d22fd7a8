"""`memkit doctor`."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, counted, plain, styled

if TYPE_CHECKING:
    from memkit.doctor.checks import Repair
    from memkit.doctor.finding import Finding

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@command("doctor")
@click.option("--fix", is_flag=True, help="Mend what can be mended without harm.")
def doctor_command(context: Context, fix: bool) -> None:
    """Find what is wrong with memkit here, what it means, and what mends it.

    An error loses memory or keeps it from being found, a warning may come to that, a note does no harm.
    Exit status 1 if an error remains.

    \b
      memkit doctor
      memkit doctor --fix
    """
    from memkit.cli.log import log_to_file
    from memkit.doctor.checks import examine, mend
    from memkit.doctor.finding import open_subject
    from memkit.doctor.hooks import last_events

    log_to_file(context.home)
    findings = examine(open_subject(context.home, context.project))
    mended: list[Repair] = []
    if fix:
        for step in mend(open_subject(context.home, context.project), findings):
            mended.append(step)
            if not context.as_json:
                click.echo(plain(f"{'not mended' if step.failed else 'mended'}: {step.said}"))
        if mended:
            findings = examine(open_subject(context.home, context.project))
    events = last_events(context.home)
    if context.as_json:
        context.print_json(
            {
                "findings": [dataclasses.asdict(finding) for finding in findings],
                "mended": [step._asdict() for step in mended],
                "last_events": events,
            }
        )
    else:
        _show(findings, events)
    if any(finding.level == "error" for finding in findings):
        raise click.exceptions.Exit(1)


def _show(findings: list[Finding], events: dict[str, float]) -> None:
    for finding in findings:
        level = styled(finding.level, fg=COLOURS[finding.level], bold=True)
        click.echo(f"{level}: {plain(finding.what)}")
        click.echo(plain(f"    means: {finding.meaning}"))
        click.echo(plain(f"    fix:   {finding.fix}"))
    for root, when in sorted(events.items(), key=lambda pair: -pair[1]):
        click.echo(plain(f"last event of a hook in {root}: {_age(time.time() - when)} ago"))
    counts = [
        counted(count, level)
        for level in COLOURS
        if (count := sum(finding.level == level for finding in findings))
    ]
    click.echo(f"{', '.join(counts)}." if counts else "Nothing is wrong.")


def _age(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return counted(int(seconds // length), unit)
    return counted(max(0, int(seconds)), "second")
