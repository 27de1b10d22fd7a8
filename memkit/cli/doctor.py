"""`memkit doctor`."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.log_file import log_to_file
from memkit.cli.output import echo, format_duration
from memkit.cli.screen import width
from memkit.cli.status import agents_line, captured_agents, summaries_lines, summaries_state
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.doctor import Finding
    from memkit.doctor.checks import FixResult

COLORS = {"error": "red", "warning": "magenta", "note": "cyan"}


@command("doctor")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without harm. Includes --deep.")
@click.option("--deep", is_flag=True, help="Also read the archive, and compare the index with the memory.")
def doctor_command(context: Context, fix: bool, deep: bool) -> None:
    """Find problems with memkit here, explain what they mean, and how to fix them.

    An error loses memory or hides it from searches; a warning may lead to that; a note is harmless. The
    exit status is 1 if an error remains.

    \b
      memkit doctor
      memkit doctor --deep
      memkit doctor --fix
    """
    from memkit.doctor import open_subject
    from memkit.doctor.capture import last_events
    from memkit.doctor.checks import CHECKS, SHALLOW, apply_fixes, examine

    log_to_file(context.home)
    deep = deep or fix
    checks = CHECKS if deep else SHALLOW

    def check() -> list[Finding]:
        with context.progress("checking") as progress:
            return examine(open_subject(context.home, context.project), checks, progress)

    findings = check()
    fixed: list[FixResult] = []
    if fix:
        subject = open_subject(context.home, context.project)
        fixes = apply_fixes(dataclasses.replace(subject, announce=context.say), findings)
        while result := _next_fix(context, fixes):
            fixed.append(result)
            if not context.as_json:
                echo(f"{'not fixed' if result.failed else 'fixed'}: {result.message}")
        if fixed:
            findings = check()
    events = last_events(context.home)
    loaded = open_subject(context.home, context.project).loaded
    summaries = summaries_state(context, loaded) if loaded else None
    if context.as_json:
        context.print_json(
            {
                "findings": [{**dataclasses.asdict(one), "fixable": one.fixable} for one in findings],
                "fixed": [result._asdict() for result in fixed],
                "deep": deep,
                "last_events": events,
                "summaries": summaries,
            }
        )
    else:
        lines = {"agents": agents_line(captured_agents(loaded))} if loaded else {}
        _show(findings, events, lines | (summaries_lines(summaries) if summaries else {}))
        if not deep:
            echo("`memkit doctor --deep` also reads the whole archive and the vector index.")
    if any(finding.level == "error" for finding in findings):
        raise click.exceptions.Exit(1)


def _next_fix(context: Context, fixes: Iterator[FixResult]) -> FixResult | None:
    with context.progress("fixing", is_counted=False):
        return next(fixes, None)


def _show(findings: list[Finding], events: dict[str, float], lines: dict[str, str]) -> None:
    for finding in findings:
        echo(f"{finding.level}: {finding.what}", width(), below=4, fg=COLORS[finding.level])
        echo(f"    means: {finding.meaning}", width(), below=11)
        echo(f"    fix:   {finding.fix}")  # in one piece, to be copied
    for root, when in sorted(events.items(), key=lambda pair: -pair[1]):
        echo(f"last hook event in {root}: {format_duration(time.time() - when)} ago")
    for name, line in lines.items():
        echo(f"{name}: {line}", width(), below=4)
    counts: Counter[str] = Counter(finding.level for finding in findings)
    shown = [plural(counts[level], level) for level in COLORS if counts[level]]
    echo(f"{', '.join(shown)}." if shown else "No problems found.")
