"""`memkit work`, which hooks start detached."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.jobs import run_here
from memkit.cli.output import echo
from memkit.errors import IndexBusyError
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.capture.worker import WorkReport

WAIT_SECONDS = 600.0


@command("work")
@click.option("--wait", is_flag=True, help="Wait for another worker to finish.")
@click.option("--retry", is_flag=True, help="Try failed events again.")
def work_command(context: Context, wait: bool, retry: bool) -> None:
    """Write spooled events to the journal, update the index, and exit.

    Hooks start this on their own. One worker runs at a time.

    \b
      memkit work --wait
      memkit work --retry
    """
    if not os.path.isdir(context.home.root):
        return  # deleted since a hook started this; do not create it again
    try:
        with context.progress("working", is_counted=False):
            report = _work(context, wait, retry)
    except IndexBusyError:
        if wait:
            raise
        if context.as_json:
            context.print_json({"busy": True})
        else:
            context.say("another worker is running")
        return
    if report is None:
        context.report({"busy": True}, "The service processes the events.")
        return
    if context.as_json:
        context.print_json({"busy": False, **dataclasses.asdict(report)})
        return
    embedded = sum(one.embedded for one in report.indexed)
    echo(
        f"{plural(report.events, 'event')} captured, {plural(len(report.indexed), 'project')} indexed, "
        f"{plural(embedded, 'chunk')} embedded."
    )
    failed = plural(len(report.failures), "step")
    context.check(report.failures, f"{failed} failed; `memkit status` shows what waits")


def _work(context: Context, wait: bool, retry: bool) -> WorkReport | None:
    import msgspec

    from memkit.capture.worker import WorkReport
    from memkit.ipc import spool
    from memkit.ipc.client import ServiceUnavailable, request

    try:
        found = request(context.home, "work", {"wait": wait, "retry": retry}, WAIT_SECONDS)
        return msgspec.convert(found, WorkReport) if wait else None
    except ServiceUnavailable as unavailable:
        if unavailable.reason == "hung":
            from memkit.ipc.stop import stop_hung_service

            stop_hung_service(context.home, context.say)
    if retry:
        spool.retry_failed(context.home)
    return work_here(context, WAIT_SECONDS if wait else 0.0)


def work_here(context: Context, wait_seconds: float = 0.0) -> WorkReport:
    """Do all waiting work and due jobs in this process. Raise `IndexBusyError`."""
    from memkit.capture.worker import work
    from memkit.projects.project import Project
    from memkit.service.jobs import due_jobs

    report = work(context.home, functools.cache(context.settings_of), wait_seconds=wait_seconds)
    settings = context.settings_of(Project(context.home.root, context.home))
    due = [job.name for job in due_jobs(context.home, settings, time.time())]
    if due:
        run_here(context, due)
    _summarize(context, report)
    return report


def _summarize(context: Context, report: WorkReport) -> None:
    from memkit.capture.summary_queue import SummaryQueue

    if not SummaryQueue(context.home):
        return
    from memkit.capture.worker import work
    from memkit.llm import find_provider
    from memkit.settings.load import may_summarize
    from memkit.summarize.summarizer import run_summaries

    if not may_summarize(context.home, context.settings()):
        return
    settings_of = functools.cache(context.settings_of)
    done = run_summaries(context.home, settings_of, find_provider)
    report.failures += done.failures
    if done.projects:  # marked as changed
        report.indexed += work(context.home, settings_of, wait_seconds=WAIT_SECONDS).indexed
