"""`memkit forget` and `memkit audit`: erase text, and find secrets."""

from __future__ import annotations

import functools
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, day_named
from memkit.cli.output import confirm, echo, plain, print_table, styled, user_agrees
from memkit.errors import MemkitError
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.forget.audit import AuditReport
    from memkit.forget.locations import Locations
    from memkit.forget.selection import ForgetSelection
    from memkit.interface import InterfaceMemory

SHOWN_ENTRIES = 20


@command("forget")
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--session", metavar="ID", help="Forget a whole session; the start of its ID is enough.")
@click.option("--since", metavar="DAY", help="Forget this project's days from this day on.")
@click.option("--until", metavar="DAY", help="Forget this project's days up to this day, inclusive.")
@click.option("--query", metavar="QUERY", help="Forget what `memkit search` finds for QUERY.")
@click.option(
    "-k", "k", type=click.IntRange(1, 1000), help="How many results of --query (default: setting search.k)."
)
@click.option("--everything", is_flag=True, help="Forget all memory of this project.")
@click.option("--user", is_flag=True, help="Forget from your own memory instead of this project's.")
@click.option("--everywhere", is_flag=True, help="Also erase the copies in other projects.")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask; other projects keep their copies.")
def forget_command(
    context: Context, ids: tuple[str, ...], session: str | None, since: str | None, until: str | None,
    query: str | None, k: int | None, everything: bool, user: bool, everywhere: bool, dry_run: bool,
    yes: bool,
) -> None:
    """Erase something from journal, archive, and index for good, and never import it again.

    Each ID names a result of `memkit search`, a turn, a bullet, a note, or a fact. Erasing a turn also
    erases all bullets and facts that depend on it. An ID, --session, or --query erases from every project.
    --everything, --since, and --until erase from this project only: copies in other projects, after a merge
    or a second import, stay there and in the archive.

    The command first shows what it would erase and from which projects, and asks. If a run was interrupted,
    run the command again to finish it; it then needs no ID.

    \b
      memkit forget 8b52f4fb
      memkit forget --query "the customer's address" --dry-run
      memkit forget --since 2026-11-01 --until 2026-11-20
    """
    given = [bool(ids), session is not None, bool(since or until), query is not None, everything]
    if user:
        context.turn_to_user_memory()
    if sum(given) > 1:
        raise click.UsageError("give only one of: IDs, --session, --since/--until, --query, --everything")
    from memkit.forget.selection import ForgetSelection
    from memkit.privacy.tombstones import Tombstones

    memory = context.memory()
    if not any(given):
        if Tombstones(context.home).unfinished() is None:
            raise click.UsageError("name what to forget: IDs, --session, --since, --query, --everything")
        with context.progress("erasing", is_counted=False):
            memory.forget(selection=ForgetSelection())
        context.report({}, "Finished the interrupted run.")
        return
    with context.progress("looking", is_counted=False):
        selection = _select(memory, ids, session, (since, until), query, k)
        selection.everywhere = everywhere
        is_asked = dry_run or not yes
        found = memory.forget(selection=selection, dry_run=is_asked)
    if not context.as_json:
        _show(found, context.project.root)
    if dry_run:
        if context.as_json:
            context.print_json({"removed": False, **found.as_dict()})
        return
    if is_asked:
        confirm("Forget this for good?", yes)
        others = ", ".join(sorted(found.shared))
        selection.everywhere |= bool(others) and user_agrees(f"Also forget it in {others}?")
        with context.progress("erasing", is_counted=False):
            found = memory.forget(selection=selection)
    context.report({"removed": True, **found.as_dict()}, "Forgotten.")


def _select(
    memory: InterfaceMemory, ids: tuple[str, ...], session: str | None, days: tuple[str | None, str | None],
    query: str | None, k: int | None,
) -> ForgetSelection:
    from memkit.forget import selection

    project, home, now = memory.project, memory.home, time.time()
    if session is not None:
        return selection.of_session(project, home, session, now)
    if any(days):
        since, until = map(day_named, days)
        return selection.of_days(project, home, since, until, now)
    if query is not None:
        ids = tuple(result.id for result in memory.search(query, k).results if not result.author)
        if not ids:
            raise MemkitError("nothing found for that query; `memkit search --all` shows the nearest entries")
    if not ids:
        return selection.of_everything(project, home, now)
    return selection.SelectionFinder(
        project, home, memory.settings, other_projects=memory.other_projects
    ).select(ids)


def _show(found: Locations, root: str) -> None:
    entries = [*found.turns, *found.notes]
    for entry in entries[:SHOWN_ENTRIES]:
        click.echo(f"{styled(entry.id, fg='cyan')}  {entry.day} {plain(entry.heading)}")
    if len(entries) > SHOWN_ENTRIES:
        echo(f"… and {len(entries) - SHOWN_ENTRIES} more")
    for passage in found.passages:
        echo(f"{passage.path}:{passage.start}-{passage.end}  {passage.heading}")
    for _, path in found.files:
        echo(str(path))
    facts = [pair for location in found.facts for pair in location.facts.items()]
    for name, line in facts:
        click.echo(f"{styled(name, fg='cyan')}  {plain(line)}")
    for _, shared in found.team:
        echo(f"{shared.path}:{shared.start}  {plain(shared.heading)}")
    if found.team:
        copies = plural(len(found.team), "shared copy", "shared copies")
        echo(f"{copies} to be removed from the working tree. Git's history keeps what was committed.")
    if not found:
        echo("The memory holds none of that, and an import would leave it out.")
        return
    counts = {
        "turn": len(found.turns),
        "bullet": found.bullets,
        "note": len(found.notes) + len(found.passages),
        "fact": len(facts),
        "archived turn": sum(map(len, found.archived.values())),
        "Markdown file": len(found.files),
        "old version": len(found.old_versions),
    }
    shown = [plural(count, name) for name, count in counts.items() if count]
    echo(f"To be erased from journal, archive, and index: {', '.join(shown)}.")
    if found.by_project.keys() - {root}:
        for name, count in found.by_project.items():
            echo(f"  from {name}: {count} of them")
    for name, turns in sorted(found.shared.items()):
        echo(f"  {name} keeps {len(turns)} of them (--everywhere erases them, in a terminal of your own)")


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

    with context.progress("auditing") as progress:
        audit = Audit(
            context.home, None if all_projects else context.project, functools.cache(context.settings_of),
            context.say, progress,
        )
        if fix:
            memory = context.memory()
            with memory.capture_lock(), memory.index_lock():
                report = audit.fix()
        else:
            report = audit.search()
    _print_audit(context, report, fix)
    if report.remaining or report.problems:
        raise click.exceptions.Exit(1)


def _print_audit(context: Context, report: AuditReport, fix: bool) -> None:
    remaining = {(finding.where, finding.place) for finding in report.remaining}
    fixed = [one for one in report.found if fix and (one.where, one.place) not in remaining]
    if context.as_json:
        shown = [{**asdict(finding), "fixed": True} for finding in fixed]
        shown += [{**asdict(finding), "fixed": False} for finding in report.remaining]
        context.print_json(
            {
                "findings": shown, "fixed": len(fixed), "left": len(report.remaining),
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
