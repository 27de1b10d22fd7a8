"""`memkit import`."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import click

from memkit.agents.claude_code.files import history_file
from memkit.agents.claude_code.installation import kept_days
from memkit.agents.registry import AGENTS, CLAUDE_CODE, OTHERS, agent_at, session_at
from memkit.agents.sources import Source, find_sources, project_of, sources_of
from memkit.capture.capture import CaptureOutcome
from memkit.capture.importer import (
    Importer,
    ImportPreview,
    ImportReport,
    ImportSelection,
    one_import,
    preview_import,
)
from memkit.capture.sessions import Sessions
from memkit.cli.context import Context, command, day_named
from memkit.cli.output import confirm, format_estimate, format_size, short_path, table, user_agrees
from memkit.errors import MemkitError, NotFoundError
from memkit.hook.events import DISABLE_VARIABLE
from memkit.llm.calls import CALL_TOKENS, Calls, Plan
from memkit.projects.project import Project
from memkit.settings import load
from memkit.text import plural


@command("import")
@click.argument("paths", nargs=-1, metavar="[FILE|DIR…]")
@click.option("--all", "everything", is_flag=True, help="Import the sessions of all projects.")
@click.option("--since", metavar="DAY", help="Only turns from this day on: 2026-11-20, 3d, 2w.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before FILE or DIR is imported into other projects.")
def import_command(
    context: Context, paths: tuple[str, ...], everything: bool, since: str | None, dry_run: bool, yes: bool
) -> None:
    """Import existing sessions of Claude Code and of other coding agents.

    Without FILE or DIR, import the sessions of this project that these agents still have, and the prompts of
    sessions that Claude Code has deleted. Each session goes to its own project. With FILE or DIR, --project
    imports all sessions into one project; without it, memkit shows the other projects and asks first.
    Importing twice changes nothing. An interrupted import continues where it stopped.

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
    context.stay_in_project(leaves=everything or bool(paths))
    selection = select(context, paths, everything=everything, since=day_named(since))
    if everything:
        for line in found_sessions(selection.sources):
            context.say(line)
        if sys.stdin.isatty() and not context.as_json and not dry_run:
            ask_to_capture(context, lambda question: user_agrees(question, default=True))
    if paths and not selection.sources:
        raise NotFoundError(f"there are no sessions in {', '.join(paths)}")
    if dry_run:
        with _reading(context, selection) as progress:
            preview = preview_import(selection, progress)
        _print_preview(context, preview)
        return
    if paths and not context.names_project:
        selection = _asked_for_others(context, selection, yes)
    report, roots = run_import(context, selection)
    _print_report(context, report, roots, by_file=bool(paths))
    context.check(report.problems, f"{plural(len(report.problems), 'step')} failed")


def new_sessions(context: Context, selection: ImportSelection) -> list[Source]:
    """Return the sessions that memkit does not know. Those of sub-agents have no turns, and so no time."""
    known = Sessions(context.home)
    return [one for one in selection.sources if one.time and not known.knows(session_at(one.path))]


def ask_to_capture(context: Context, ask: Callable[[str], bool | None]) -> None:
    """Ask once whether the service may capture new sessions of the other agents here. None is no answer."""
    found, setting = [agent for agent in OTHERS if any(agent.files())], ("capture", "agents")
    if not found or setting in load.load(context.home).origins:
        return
    titles = ", ".join(agent.title for agent in found)
    answer = ask(f"Let the service look for new sessions every minute and remember them, too ({titles})?")
    if answer is not None:
        load.save(context.home, setting, ",".join(agent.name for agent in found if answer))


def found_sessions(sources: Iterable[Source]) -> list[str]:
    """Return a line for each agent: how many sessions it has, and for Claude Code when the oldest goes."""
    by_agent: dict[str, list[Source]] = {}
    for source in sources:
        if source.time:  # else it has no turns, or cannot be read
            by_agent.setdefault(agent_at(source.path).title, []).append(source)
    lines = []
    for title in (agent.title for agent in AGENTS if agent.title in by_agent):
        found = by_agent[title]
        begun = date.fromtimestamp(min(one.time for one in found))
        line = f"{title}: {plural(len(found), 'session')}, the oldest from {begun}"
        if title == CLAUDE_CODE.title:
            age = (time.time() - min(one.modified for one in found) / 1e9) / 86400
            left = max(0, math.ceil(kept_days() - age))
            line += f"; Claude Code deletes the next one in {plural(left, 'day')}"
        lines.append(line)
    return lines


def _asked_for_others(context: Context, selection: ImportSelection, yes: bool) -> ImportSelection:
    """Return what to import after asking about other projects that transcripts name. Raise `MemkitError`.

    Anybody may have written a transcript. So `yes` alone creates memories only below your home.
    """
    known = (context.project.root, context.home.root)
    others = [
        root
        for root in selection.targets
        if root not in known and os.path.dirname(root) != os.path.realpath(context.home.projects)
    ]
    if yes:
        below = os.path.join(os.path.realpath(os.path.expanduser("~")), "")
        new = {root for root in others if not os.path.isdir(Project(root, context.home).memory)}
        left_out = {root for root in new if not root.startswith(below)}
        for root in sorted(left_out):
            context.say(f"left out: {root} is not below your home and has no memory yet")
        kept = [one for one in selection.sources if selection.project(one).root not in left_out]
        return replace(selection, sources=kept)
    if not others:
        return selection
    context.say("these transcripts belong to other projects and would be imported there:")
    for root in others:
        note = "" if os.path.isdir(Project(root, context.home).memory) else " (no memory yet)"
        context.say(f"  {short_path(root)}{note}")
    context.say("--project imports all of them into one project instead")
    confirm("Import them?", yes)
    return selection


def select(
    context: Context, paths: tuple[str, ...] = (), *, everything: bool = False, since: date | None = None
) -> ImportSelection:
    """Select what to import: `paths`, else the agents' sessions of the project, or of `everything`."""
    home, project = context.home, context.project
    if paths:
        into = project if context.names_project else None
        sources = find_sources(map(Path, paths))
        return ImportSelection(home, sources, project, into=into, since=since, is_named=True)
    sources = sources_of(path for agent in AGENTS for path in agent.transcripts())
    if not everything:
        sources = [source for source in sources if project_of(source.cwd, home) == project]
    only = None if everything else project
    return ImportSelection(home, sources, project, since=since, history=history_file(), only=only)


def run_import(context: Context, selection: ImportSelection) -> tuple[ImportReport, list[str]]:
    """Import and index; return the report, and the roots of the changed projects."""
    from memkit.index import sync_project
    from memkit.ipc import launch, unindexed
    from memkit.timeline.tree import open_timeline

    settings = context.settings()
    with one_import(context.home):
        importer = Importer(selection, settings, context.say)
        with _reading(context, selection) as read:
            report = importer.run(read)
        _write_extracts(context, importer, report)
        # An interrupted run may have left others.
        roots = sorted({*report.total.projects, *unindexed.roots(context.home)})
        with context.progress("embedding") as progress:
            for project in map(Project, roots):
                try:
                    with context.memory().index_lock():
                        sync_project(
                            project, context.home, context.settings_of(project),
                            announce=context.say, progress=progress,
                        )  # fmt: skip
                except MemkitError as error:  # go on with the other projects
                    report.problems.append(str(error))
        importer.record.finish()
    launch.hand_over(context.home, settings.service.enabled)  # events of live sessions meanwhile
    for project in map(Project, roots):  # else the first look at years of days would take long
        open_timeline(project, context.home)
    return report, roots


def _write_extracts(context: Context, importer: Importer, report: ImportReport) -> None:
    """Say in each new session what came of it, from its own words: no model is asked."""
    from memkit.llm import find_provider
    from memkit.summarize.summarizer import Summarizer, SummaryReport

    summarizer = Summarizer(context.home, context.settings_of, Calls(context.home, find_provider))
    with context.progress("writing extracts", is_counted=False):
        for root, sessions in importer.record.days.items():
            for session, days in sessions.items():
                with importer.turn():
                    try:
                        summarizer.extract_imported(root, session, days, SummaryReport())
                    except MemkitError as error:  # the turns are written; go on with the others
                        report.problems.append(str(error))


@contextmanager
def _reading(context: Context, selection: ImportSelection) -> Iterator[Callable[[int], None]]:
    with context.progress("reading sessions", is_bytes=True) as update:
        yield lambda done: update(done, selection.size)


def _print_preview(context: Context, found: ImportPreview) -> None:
    disk = {
        "memory": found.memory_bytes,
        "archive": found.archive_bytes if context.settings().archive.enabled else 0,
        "index": found.index_bytes,
    }
    summaries = _summaries(context, found)
    value = {
        "sessions": found.sessions, "turns": found.turns, "typed": found.typed, "days": len(found.days),
        "projects": found.projects, "bytes": disk,
        "summaries": {"tokens": summaries.tokens, "usd": summaries.usd} if summaries else None,
        "skipped": found.skipped,
        "problems": found.problems,
    }
    typed = f", {found.typed} of them prompts from deleted sessions" if found.typed else ""
    lines = [
        f"{plural(found.sessions, 'session')}, {plural(found.turns, 'turn')}{typed}; "
        f"{plural(len(found.days), 'day file')} in {plural(len(found.projects), 'project')}",
        f"Estimated disk space: {', '.join(f'{name} {format_size(size)}' for name, size in disk.items())}",
    ]
    if summaries:
        lines.append(
            f"`memkit summarize` would use about {summaries.tokens:,} tokens, "
            f"{format_estimate(summaries.usd)}; the import itself makes no model calls."
        )
    context.report(value, *lines, *_by_project(found))
    for line in () if context.as_json else found.problems:
        context.say(line)


def _by_project(found: ImportPreview) -> list[str]:
    turns: Counter[str] = Counter()
    days: Counter[str] = Counter()
    for (root, _), count in found.days.items():
        turns[root] += count
        days[root] += 1
    rows = [(f"{count:,}", f"{days[root]:,}", short_path(root)) for root, count in turns.most_common()]
    return table(rows, ("turns", "days", "project"), numbers=(0, 1)) if rows else []


def _summaries(context: Context, found: ImportPreview) -> Plan | None:
    """Estimate the summaries of an import, or return None if they are off or no provider is set up."""
    settings = context.settings().summarize
    if not settings.is_on:
        return None
    from memkit.llm import NotConfiguredError, find_provider
    from memkit.summarize.bullets import instructions
    from memkit.text import CHARACTERS_PER_TOKEN

    tokens = found.memory_bytes // CHARACTERS_PER_TOKEN
    calls = Calls(context.home, find_provider)
    try:
        return calls.plan(1 + tokens // CALL_TOKENS, tokens, instructions(settings), settings)
    except NotConfiguredError as error:
        context.say(str(error))
        return None


def _print_report(context: Context, report: ImportReport, roots: list[str], *, by_file: bool) -> None:
    total, history = report.total, report.history
    value = {
        "files": [
            {
                "file": str(path), "turns": outcome.turns, "written": outcome.written,
                "left_out": outcome.left_out, "skipped": outcome.skipped,
            }
            for path, outcome in report.files
        ],
        "done_before": report.done_before,
        "history": {"turns": history.turns, "written": history.written},
        "turns": total.turns, "written": total.written, "left_out": total.left_out, "projects": roots,
        "problems": report.problems,
    }
    lines = []
    for path, outcome in report.files if by_file else ():
        found = f"{plural(outcome.turns, 'turn')}, {outcome.written} new" if outcome.turns else "no turns"
        lines.append(f"{path.name}: {found}{_skipped(outcome)}")
    if report.done_before:
        lines.append(f"{plural(report.done_before, 'transcript')} imported before the interruption.")
    if history.turns:
        lines.append(f"{plural(history.turns, 'prompt')} of deleted sessions, {history.written} new.")
    transcripts = plural(len(report.files), "transcript")
    skipped = "" if by_file else _skipped(total)
    lines.append(f"{plural(total.turns, 'turn')} of {transcripts}, {total.written} new.{skipped}")
    if total.left_out:
        left_out = plural(total.left_out, "turn")
        lines.append(f"{left_out} left out: memkit was off, or they are excluded or forgotten.")
    if len(roots) > 1:
        lines.append(f"Remembered in {plural(len(roots), 'project')}:")
        lines += [f"  {short_path(root)}" for root in roots]
    else:
        lines += [f"Remembered in {short_path(root)}" for root in roots]
    context.report(value, *lines)


def _skipped(outcome: CaptureOutcome) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in outcome.skipped.items())
    return f" (lines skipped: {kinds})" if kinds else ""
