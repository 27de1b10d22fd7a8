"""`memkit import`."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import format_estimate, plain, plural
from memkit.errors import MemkitError, NotFoundError
from memkit.hook.events import DISABLE_VARIABLE
from memkit.hook.project import Project

if TYPE_CHECKING:
    from memkit.capture.capture import CaptureOutcome
    from memkit.capture.importer import ImportPreview, ImportReport, ImportSelection
    from memkit.llm.calls import Plan

LOCK_SECONDS = 600.0


@command("import")
@click.argument("paths", nargs=-1, metavar="[FILE|DIR…]")
@click.option("--all", "everything", is_flag=True, help="The sessions of all projects.")
@click.option("--since", metavar="DAY", help="Only turns from that day on: 2026-11-20, 3d, 2w.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before FILE or DIR is imported into other projects.")
def import_command(
    context: Context,
    paths: tuple[str, ...],
    everything: bool,
    since: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Import existing Claude Code sessions.

    Without FILE or DIR, import the sessions of this project that Claude Code still has, and the prompts of
    sessions that it has deleted. Each session goes to its own project. With FILE or DIR, --project imports
    all sessions into one project; without it, memkit shows the other projects and asks first.
    Importing twice is the same as once. An interrupted import continues where it stopped.

    \b
      memkit import
      memkit import --all --dry-run
      memkit import --all --since 3m
      memkit import ~/backup/projects
    """
    if os.environ.get(DISABLE_VARIABLE):
        raise MemkitError(f"{DISABLE_VARIABLE} is set, so memkit remembers nothing; unset it to import")
    if everything and (paths or context.names_project):
        raise click.UsageError("--all cannot be combined with FILE or --project")
    selection = select(context, paths, everything=everything, since=_day(since))
    if paths and not selection.sources:
        raise NotFoundError(f"there are no transcripts (.jsonl) in {', '.join(paths)}")
    if dry_run:
        _print_preview(context, _preview(context, selection))
        return
    if paths and not context.names_project:
        _ask_for_others(context, selection, yes)
    report, roots = run_import(context, selection)
    _print_report(context, report, roots, by_file=bool(paths))
    if report.problems:
        raise MemkitError(f"{plural(len(report.problems), 'step')} failed")


def _ask_for_others(context: Context, selection: ImportSelection, yes: bool) -> None:
    """Ask before importing into other projects that transcripts name. Raise `MemkitError`."""
    known = (context.project.root, context.home.root)
    others = [
        root
        for root in selection.targets
        if root not in known and os.path.dirname(root) != os.path.realpath(context.home.projects)
    ]
    if not others or yes:
        return
    context.say("these transcripts belong to other projects, and would be imported there:")
    for root in others:
        context.say(f"  {root}" if os.path.isdir(Project(root).memory) else f"  {root} (no memory yet)")
    if not sys.stdin.isatty():
        raise MemkitError(
            "this needs a confirmation, so nothing was imported; run it in a terminal, or name one project "
            "for all with --project"
        )
    click.confirm("Import them?", abort=True, err=True)


def select(
    context: Context,
    paths: tuple[str, ...] = (),
    *,
    everything: bool = False,
    since: date | None = None,
) -> ImportSelection:
    """Select what to import: `paths`, else Claude Code's sessions of the project, or of `everything`."""
    from memkit.capture.importer import ImportSelection
    from memkit.claude_code.files import (
        find_sources,
        history_file,
        project_of,
        transcripts_directory,
    )

    home, project = context.home, context.project
    if paths:
        into = project if context.names_project else None
        sources = find_sources(map(Path, paths))
        return ImportSelection(home, sources, project, into=into, since=since, is_named=True)
    sources = find_sources([transcripts_directory()] if transcripts_directory().is_dir() else [])
    if not everything:
        sources = [source for source in sources if project_of(source.cwd, home) == project]
    only = None if everything else project
    return ImportSelection(home, sources, project, since=since, history=history_file(), only=only)


def run_import(context: Context, selection: ImportSelection) -> tuple[ImportReport, list[str]]:
    """Import and index; return the report, and the roots of the changed projects."""
    from memkit.capture.importer import Importer
    from memkit.cli.output import counting, reading
    from memkit.index import index_lock, sync_project
    from memkit.ipc import launch, unindexed

    settings = context.settings()
    with index_lock(context.home, LOCK_SECONDS, context.say):
        running = Importer(selection, settings)
        with reading(context, "reading sessions", selection.size) as read:
            report = running.run(read)
        # An interrupted run may have left others.
        roots = sorted({*report.total.projects, *unindexed.roots(context.home)})
        with counting(context, "embedding") as progress:
            for root in roots:
                project = Project(root)
                try:
                    sync_project(
                        project,
                        context.home,
                        context.settings_of(project),
                        announce=context.say,
                        progress=progress,
                    )
                except MemkitError as error:  # go on with the other projects
                    report.problems.append(str(error))
        running.finish()
    launch.hand_over(context.home, settings.service.enabled)  # events of live sessions meanwhile
    return report, roots


def _preview(context: Context, selection: ImportSelection) -> ImportPreview:
    from memkit.capture.importer import preview_import
    from memkit.cli.output import reading

    with reading(context, "reading sessions", selection.size) as progress:
        return preview_import(selection, progress)


def _day(text: str | None) -> date | None:
    from memkit.recall.results import parse_day

    return parse_day(text, date.today()) if text is not None else None


def _print_preview(context: Context, found: ImportPreview) -> None:
    """Print what would be imported, and the cost of summaries."""
    disk = {
        "memory": found.memory_bytes,
        "archive": found.archive_bytes if context.settings().archive.enabled else 0,
        "index": found.index_bytes,
    }
    summaries = _summaries(context, found)
    value = {
        "sessions": found.sessions,
        "turns": found.turns,
        "typed": found.typed,
        "days": len(found.days),
        "projects": found.projects,
        "bytes": disk,
        "summaries": {"tokens": summaries.tokens, "usd": summaries.usd} if summaries else None,
        "skipped": found.skipped,
        "problems": found.problems,
    }
    if context.as_json:
        context.print_json(value)
        return
    typed = f", {found.typed} of them prompts from deleted sessions" if found.typed else ""
    click.echo(
        f"{plural(found.sessions, 'session')}, {plural(found.turns, 'turn')}{typed}; "
        f"{plural(len(found.days), 'day file')} in {plural(len(found.projects), 'project')}"
    )
    sizes = (f"{name} {size / 1e6:.1f} MB" for name, size in disk.items())
    click.echo(f"Disk space, estimated: {', '.join(sizes)}")
    if summaries:
        click.echo(
            f"`memkit summarize` would use about {summaries.tokens:,} tokens, "
            f"{format_estimate(summaries.usd)}; an import makes no model calls."
        )
    for root in found.projects:
        click.echo(plain(root))
    _print_problems(context, found.problems)


def _summaries(context: Context, found: ImportPreview) -> Plan | None:
    """Estimate the summaries of an import, or return None if they are off or no provider is set up."""
    settings = context.settings().summarize
    if not settings.is_on:
        return None
    from memkit.llm import NotConfiguredError, find_provider
    from memkit.llm.calls import CALL_TOKENS, Calls
    from memkit.summarize.bullets import instructions
    from memkit.text import CHARACTERS_PER_TOKEN

    tokens = found.memory_bytes // CHARACTERS_PER_TOKEN
    calls = Calls(context.home, find_provider)
    try:
        return calls.plan(1 + tokens // CALL_TOKENS, tokens, instructions(settings), settings)
    except NotConfiguredError as error:
        context.say(str(error))
        return None


def _print_report(
    context: Context, report: ImportReport, roots: list[str], *, by_file: bool
) -> None:
    total = report.total
    if context.as_json:
        context.print_json(
            {
                "files": [_as_dict(path, captured) for path, captured in report.files],
                "done_before": report.done_before,
                "history": {"turns": report.history.turns, "written": report.history.written},
                "turns": total.turns,
                "written": total.written,
                "left_out": total.left_out,
                "projects": roots,
                "problems": report.problems,
            }
        )
        return
    for path, captured in report.files if by_file else ():
        found = f"{plural(captured.turns, 'turn')}, {captured.written} new"
        click.echo(plain(f"{path}: {found if captured.turns else 'no turns'}{_skipped(captured)}"))
    if report.done_before:
        click.echo(f"{plural(report.done_before, 'transcript')} imported before the interruption.")
    if report.history.turns:
        typed = plural(report.history.turns, "prompt")
        click.echo(f"{typed} of deleted sessions, {report.history.written} new.")
    transcripts = plural(len(report.files), "transcript")
    skipped = "" if by_file else _skipped(total)
    click.echo(f"{plural(total.turns, 'turn')} of {transcripts}, {total.written} new.{skipped}")
    if total.left_out:
        left_out = plural(total.left_out, "turn")
        click.echo(f"{left_out} left out: memkit was off, excluded, or forgotten.")
    for root in roots:
        click.echo(plain(f"Remembered in {root}"))
    _print_problems(context, report.problems)


def _as_dict(path: Path, captured: CaptureOutcome) -> dict[str, Any]:
    return {
        "file": str(path),
        "turns": captured.turns,
        "written": captured.written,
        "left_out": captured.left_out,
        "skipped": captured.skipped,
    }


def _skipped(captured: CaptureOutcome) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in captured.skipped.items())
    return f" (lines skipped: {kinds})" if kinds else ""


def _print_problems(context: Context, problems: list[str]) -> None:
    for line in problems:
        context.say(line)
