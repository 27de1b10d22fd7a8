"""`memkit audit`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, counted, plain

if TYPE_CHECKING:
    from memkit.forget.audit import AuditReport
    from memkit.forget.findings import SecretFinding

LOCK_SECONDS = 600.0


@command("audit")
@click.option("--fix", is_flag=True, help="Redact what is found, and have no file hold it.")
@click.option("--all-projects", is_flag=True, help="In the memories of all projects.")
def audit_command(context: Context, fix: bool, all_projects: bool) -> None:
    """Look for secrets in what was remembered, with the rules and `capture.redact` of today.

    In the journal and other indexed markdown, the archive, the index, and in what memkit itself keeps
    of sessions, events and errors. Says where and of which kind, never the secret. `--fix` changes all
    of that but markdown that memkit did not write. The exit status is 1 if something is left.

    \b
      memkit audit
      memkit audit --all-projects --fix
    """
    from memkit.forget.audit import Audit
    from memkit.index.lock import index_lock

    audit = Audit(
        context.home,
        None if all_projects else context.project,
        functools.cache(context.settings_of),
        context.say,
    )
    if fix:
        with index_lock(context.home, LOCK_SECONDS, context.say):
            report = audit.fix()
    else:
        report = audit.look()
    _print(context, report, fix)
    if report.left or report.problems:
        raise click.exceptions.Exit(1)


def _print(context: Context, report: AuditReport, fix: bool) -> None:
    left = {_place(finding) for finding in report.left}
    fixed = [finding for finding in report.found if _place(finding) not in left] if fix else []
    if context.as_json:
        context.print_json(
            {
                "findings": [
                    *({**finding.as_dict(), "fixed": True} for finding in fixed),
                    *({**finding.as_dict(), "fixed": False} for finding in report.left),
                ],
                "fixed": len(fixed),
                "left": len(report.left),
                "problems": report.problems,
            }
        )
        return
    for line in report.problems:
        context.say(plain(line))
    for word, findings in (("redacted", fixed), ("found", report.left)):
        for one in findings:
            at = one.place if one.line is None else f"{one.place}:{one.line}"
            click.echo(plain(f"{word:<9} {one.kind:<17} {one.where:<9} {at}"))
    if not fixed and not report.left:
        click.echo("Nothing found.")
    elif not fix:
        click.echo(
            f"{counted(len(report.left), 'secret')} found; `memkit audit --fix` redacts them."
        )
    else:
        rest = f", {len(report.left)} left" if report.left else ""
        click.echo(f"{counted(len(fixed), 'secret')} redacted{rest}.")
        if any(finding.where == "markdown" for finding in report.left):
            click.echo("Markdown that memkit did not write is yours to change.")


def _place(finding: SecretFinding) -> tuple[str, str]:
    return finding.where, finding.place
