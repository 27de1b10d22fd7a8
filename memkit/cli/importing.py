"""`memkit import`."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, about_dollars, command, counted, plain
from memkit.errors import MemkitError, NotFoundError
from memkit.hook.events import DISABLE_VARIABLE
from memkit.hook.project import Project

if TYPE_CHECKING:
    from memkit.capture.capture import CaptureOutcome
    from memkit.capture.import_preview import ImportPreview
    from memkit.capture.importer import ImportReport, ImportSelection
    from memkit.summarize.plan import Estimate

LOCK_SECONDS = 600.0


@command("import")
@click.argument("paths", nargs=-1, metavar="[FILE|DIR…]")
@click.option("--all", "everything", is_flag=True, help="The sessions of all projects.")
@click.option("--since", metavar="DAY", help="Only turns from that day on: 2026-11-20, 3d, 2w.")
@click.option("--dry-run", is_flag=True, help="Tell what would come, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before FILE or DIR goes to other projects.")
def import_command(
    context: Context,
    paths: tuple[str, ...],
    everything: bool,
    since: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Remember existing Claude Code sessions, as if memkit had been there.

    Without FILE or DIR those that Claude Code still has of this project, and the prompts of those of
    which it has the prompts alone. A session goes to the project it was held in; given FILE or DIR,
    --project names another one for all, and without it you are shown the other projects and asked.
    Twice is the same as once, and an import that was interrupted goes on where it was.

    \b
      memkit import
      memkit import --all --dry-run
      memkit import --all --since 3m
      memkit import ~/backup/projects
    """
    if os.environ.get(DISABLE_VARIABLE):
        raise MemkitError(f"{DISABLE_VARIABLE} is set, so nothing is remembered; unset it to import")
    if everything and (paths or context.names_project):
        raise click.UsageError("--all goes with neither FILE nor --project")
    selection = select(context, paths, everything=everything, since=_day(since))
    if paths and not selection.sources:
        raise NotFoundError(f"there are no transcripts (.jsonl) in {', '.join(paths)}")
    if dry_run:
        _print_forecast(context, _forecast(context, selection))
        return
    if paths and not context.names_project:
        _ask_for_others(context, selection, yes)
    report, roots = run_import(context, selection)
    _print_report(context, report, roots, by_file=bool(paths))
    if report.problems:
        raise MemkitError(f"{counted(len(report.problems), 'step')} failed")


def _ask_for_others(context: Context, selection: ImportSelection, yes: bool) -> None:
    """Have a person agree to the other projects that transcripts name. Raises `MemkitError`."""
    known = (context.project.root, context.home.root)
    others = [
        root
        for root in selection.targets
        if root not in known and os.path.dirname(root) != os.path.realpath(context.home.projects)
    ]
    if not others or yes:
        return
    context.say("these transcripts name other projects, and would be remembered there:")
    for root in others:
        context.say(f"  {root}" if os.path.isdir(Project(root).memory) else f"  {root} (no memory yet)")
    if not sys.stdin.isatty():
        raise MemkitError(
            "nobody is there to be asked, so nothing was imported; a person may run this in a terminal, or "
            "name one project for all as --project"
        )
    click.confirm("Import them?", abort=True, err=True)


def select(
    context: Context,
    paths: tuple[str, ...] = (),
    *,
    everything: bool = False,
    since: date | None = None,
) -> ImportSelection:
    """What is to be imported: `paths`, else the client's sessions of the project or of `everything`."""
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
    """Import and index; what was done, and the roots of the projects that were touched."""
    from memkit.capture.importer import Importer
    from memkit.cli.progress import counting, reading
    from memkit.index.lock import index_lock
    from memkit.index.sync import sync_project
    from memkit.ipc import launch, unindexed
    from memkit.recall.ask import end_if_hung

    settings = context.settings()
    end_if_hung(context.home, context.say)
    with index_lock(context.home, LOCK_SECONDS, context.say):
        running = Importer(selection, settings)
        with reading(context, "reading sessions", selection.size) as read:
            report = running.run(read)
        # Those that an interrupted run has left wait too.
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
                except MemkitError as error:  # one project's trouble is not another's
                    report.problems.append(str(error))
        running.finish()
    launch.hand_over(context.home, settings.service.enabled)  # what live sessions left meanwhile
    return report, roots


def _forecast(context: Context, selection: ImportSelection) -> ImportPreview:
    from memkit.capture.import_preview import preview_import
    from memkit.cli.progress import reading

    with reading(context, "reading sessions", selection.size) as progress:
        return preview_import(selection, progress)


def _day(text: str | None) -> date | None:
    from memkit.recall.dates import parse_day

    return parse_day(text, date.today()) if text is not None else None


def _print_forecast(context: Context, found: ImportPreview) -> None:
    """What would come, and what it would cost to have it summarized."""
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
        "summaries": summaries._asdict() if summaries else None,
        "skipped": found.skipped.skipped,
        "problems": found.problems,
    }
    if context.as_json:
        context.print_json(value)
        return
    typed = f", {found.typed} of them prompts alone, from the history" if found.typed else ""
    click.echo(
        f"{counted(found.sessions, 'session')}, {counted(found.turns, 'turn')}{typed}; "
        f"{counted(len(found.days), 'day file')} in {counted(len(found.projects), 'project')}"
    )
    sizes = (f"{name} {size / 1e6:.1f} MB" for name, size in disk.items())
    click.echo(f"Disk, about: {', '.join(sizes)}")
    if summaries:
        click.echo(
            f"`memkit summarize` would take about {summaries.tokens:,} tokens, "
            f"{about_dollars(summaries.usd)}; an import starts no model call."
        )
    for root in found.projects:
        click.echo(plain(root))
    _print_problems(context, found.problems)


def _summaries(context: Context, found: ImportPreview) -> Estimate | None:
    """What summaries would take; None while they are off, or nobody is there to make them."""
    settings = context.settings().summarize
    if not settings.is_on:
        return None
    from memkit.llm.model import NotConfiguredError
    from memkit.llm.providers import find_provider
    from memkit.recall.budget import CHARACTERS_PER_TOKEN
    from memkit.summarize.groups import CALL_TOKENS
    from memkit.summarize.plan import estimate

    try:
        provider = find_provider(settings)
    except NotConfiguredError as error:
        context.say(str(error))
        return None
    tokens = found.memory_bytes // CHARACTERS_PER_TOKEN
    return estimate(tokens, 1 + tokens // CALL_TOKENS, settings, provider)


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
        found = f"{counted(captured.turns, 'turn')}, {captured.written} new"
        click.echo(plain(f"{path}: {found if captured.turns else 'no turns'}{_skipped(captured)}"))
    if report.done_before:
        click.echo(f"{counted(report.done_before, 'transcript')} done before the interruption.")
    if report.history.turns:
        typed = counted(report.history.turns, "prompt")
        click.echo(f"{typed} of sessions that are gone, {report.history.written} new.")
    transcripts = counted(len(report.files), "transcript")
    skipped = "" if by_file else _skipped(total)
    click.echo(f"{counted(total.turns, 'turn')} of {transcripts}, {total.written} new.{skipped}")
    if total.left_out:
        left_out = counted(total.left_out, "turn")
        click.echo(f"{left_out} left out: off there, excluded, or forgotten.")
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
