"""`memkit import`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memkit.capture.hook import DISABLE_VARIABLE
from memkit.cli.context import Context, command, counted
from memkit.errors import MemkitError, NotFoundError
from memkit.project import Project

if TYPE_CHECKING:
    from memkit.capture.captured import Captured
    from memkit.capture.turn import Turn

LOCK_SECONDS = 600.0


@command("import")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR…")
def import_command(context: Context, paths: tuple[str, ...]) -> None:
    """Remember existing Claude Code transcripts, through the same path as live sessions.

    A session goes to the project it was held in, if that is a git repository or has a memory on this
    machine, else to the project of the working directory; with --project all go there. Doing it
    twice is the same as once.

    \b
      memkit import ~/.claude/projects
    """
    from memkit.capture.capture import Capture
    from memkit.capture.transcript_files import transcripts_in
    from memkit.cli.progress import counting
    from memkit.index.lock import index_lock
    from memkit.index.sync import sync_project

    if os.environ.get(DISABLE_VARIABLE):
        raise MemkitError(f"{DISABLE_VARIABLE} is set, so nothing is remembered; unset it to import")
    files = [found for path in paths for found in transcripts_in(Path(path))]
    if not files:
        raise NotFoundError(f"there are no transcripts (.jsonl) in {', '.join(paths)}")
    capture = Capture(context.home, context.settings())
    reports: list[tuple[Path, Captured]] = []
    problems: list[str] = []
    with index_lock(context.home, LOCK_SECONDS, context.say):
        with counting(context, "reading transcripts") as progress:
            for number, path in enumerate(files, start=1):
                try:
                    captured = capture.import_file(
                        path.resolve(), lambda t: _project_of(context, t)
                    )
                    reports.append((path, captured))
                except MemkitError as error:
                    problems.append(str(error))
                progress(number, len(files))
        roots = sorted({root for _, captured in reports for root in captured.projects})
        with counting(context, "embedding") as progress:
            for root in roots:
                project = Project(root)
                settings = context.settings_of(project)
                sync_project(
                    project, context.home, settings, announce=context.say, progress=progress
                )
    _report(context, reports, roots, problems)


def _project_of(context: Context, turn: Turn) -> Project:
    if context.names_project or not os.path.isdir(turn.cwd):
        return context.project
    own = Project.remembering(turn.cwd, context.home)
    has_git = os.path.exists(os.path.join(own.root, ".git"))
    return own if has_git or os.path.isdir(own.memory) else context.project


def _report(
    context: Context, reports: list[tuple[Path, Captured]], roots: list[str], problems: list[str]
) -> None:
    turns = sum(captured.turns for _, captured in reports)
    written = sum(captured.written for _, captured in reports)
    if context.as_json:
        context.print_json(
            {
                "files": [
                    {
                        "file": str(path),
                        "turns": captured.turns,
                        "written": captured.written,
                        "left_out": captured.left_out,
                        "skipped": captured.skipped,
                    }
                    for path, captured in reports
                ],
                "turns": turns,
                "written": written,
                "projects": roots,
                "problems": problems,
            }
        )
    else:
        for path, captured in reports:
            skipped = ", ".join(f"{count} {kind}" for kind, count in captured.skipped.items())
            found = (
                f"{counted(captured.turns, 'turn')}, {captured.written} new"
                if captured.turns
                else "no turns"
            )
            click.echo(
                f"{path}: {found}{f' (lines skipped: {skipped})' if skipped else ''}"
            )
        click.echo(
            f"{counted(turns, 'turn')} of {counted(len(reports), 'transcript')}, {written} new."
        )
        left_out = sum(captured.left_out for _, captured in reports)
        if left_out:
            click.echo(f"{counted(left_out, 'turn')} left out: memkit is off there, or it is excluded.")
        for root in roots:
            click.echo(f"Remembered in {root}")
    for line in problems:
        context.say(line)
    if problems:
        raise MemkitError(f"{len(problems)} of {len(reports) + len(problems)} transcripts failed")
