"""`memkit audit`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, print_table
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.forget.audit import AuditReport


@command("audit")
@click.option("--fix", is_flag=True, help="Redact the secrets in every file that memkit wrote.")
@click.option("--all-projects", is_flag=True, help="Audit the memories of all projects.")
def audit_command(context: Context, fix: bool, all_projects: bool) -> None:
    """Look for secrets in the memory, with the current rules and your own in `capture.redact`.

    The audit reads the journal and other indexed Markdown, the archive, the index, session states, events,
    and logs. It prints the place and kind of each secret, but never the secret. `--fix` redacts all of them,
    except in Markdown that memkit did not write. The exit status is 1 if a secret remains.

    \b
      memkit audit
      memkit audit --all-projects --fix
    """
    from memkit.forget.audit import Audit

    audit = Audit(
        context.home,
        None if all_projects else context.project,
        functools.cache(context.settings_of),
        context.say,
    )
    if fix:
        with context.index_lock():
            report = audit.fix()
    else:
        report = audit.search()
    _print(context, report, fix)
    if report.remaining or report.problems:
        raise click.exceptions.Exit(1)


def _print(context: Context, report: AuditReport, fix: bool) -> None:
    remaining = {(finding.where, finding.place) for finding in report.remaining}
    fixed = [one for one in report.found if fix and (one.where, one.place) not in remaining]
    if context.as_json:
        shown = [{**finding.as_dict(), "fixed": True} for finding in fixed]
        shown += [{**finding.as_dict(), "fixed": False} for finding in report.remaining]
        context.print_json(
            {
                "findings": shown,
                "fixed": len(fixed),
                "left": len(report.remaining),
                "problems": report.problems,
            }
        )
        return
    for line in report.problems:
        context.say(line)
    print_table(
        (word, one.kind, one.where, one.place if one.line is None else f"{one.place}:{one.line}")
        for word, findings in (("redacted", fixed), ("found", report.remaining))
        for one in findings
    )
    if not fixed and not report.remaining:
        echo("Nothing found.")
    elif not fix:
        echo(f"{plural(len(report.remaining), 'secret')} found; `memkit audit --fix` redacts them.")
    else:
        rest = f", {len(report.remaining)} not redacted" if report.remaining else ""
        echo(f"{plural(len(fixed), 'secret')} redacted{rest}.")
        if any(finding.where == "markdown" for finding in report.remaining):
            echo("memkit does not change Markdown that it did not write; edit it yourself.")
