"""`memkit jobs`, and `memkit work`, which hooks start detached."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from typing import TYPE_CHECKING, Any

import click

from memkit.capture.worker import WorkReport, work
from memkit.cli.context import Context, command
from memkit.cli.output import echo
from memkit.errors import IndexBusyError, MemkitError
from memkit.ipc import spool
from memkit.ipc.client import ServiceUnavailable, request
from memkit.projects.project import Project
from memkit.text import format_time, plural

if TYPE_CHECKING:
    from memkit.service.jobs import Job, JobState
    from memkit.settings.load import Settings

WAIT_SECONDS = 60.0
RUN_SECONDS = 600.0


@command("jobs")
@click.argument("action", type=click.Choice(["list", "show", "run"]), default="list")
@click.argument("name", required=False)
def jobs_command(context: Context, action: str, name: str | None) -> None:
    """List recurring jobs with their last and next runs and results; show or run one.

    The setting `jobs.NAME = "off"` turns a job off.

    \b
      memkit jobs
      memkit jobs show index
      memkit jobs run reconcile
      memkit config set jobs.index off
    """
    from memkit.service.jobs import JOBS, JobBook, JobState, job_named

    if (action == "list") != (name is None):
        names = ", ".join(job.name for job in JOBS)
        raise click.UsageError("`memkit jobs list` takes no name" if name else f"name a job: {names}")
    book = JobBook(context.home)
    chosen = None if name is None else job_named(name)
    if chosen is not None and action == "run":
        run_now(context, chosen.name)
    settings = context.settings_of(Project(context.home.root, context.home))
    if action == "show" and chosen is not None:
        state = book.state(chosen.name)
        context.report(chosen.as_dict(state, settings), *_details(chosen, state, settings))
        return
    states = book.states()
    rows = [(job, states.get(job.name, JobState())) for job in JOBS]
    lines = [line for job, state in rows for line in _lines(job, state, settings)]
    context.report({job.name: job.as_dict(state, settings) for job, state in rows}, *lines)


def run_now(context: Context, name: str) -> Any:
    """Run a job in the service, or here without one. Return its state. Raise `MemkitError` if it fails."""
    from memkit.questions.client import ask_service

    project, home, settings = context.project, context.home, context.settings()
    with context.progress(f"running {name}", is_counted=False):
        try:
            arguments = {"name": name}
            found = ask_service(project, home, settings, "job", arguments, RUN_SECONDS, context.say)
        except ServiceUnavailable:
            (state,) = run_here(context, [name])
            found = dataclasses.asdict(state)
    if found["failed"]:
        raise MemkitError(f"job {name}: {found['result']}")
    return found


def run_here(context: Context, names: list[str]) -> list[JobState]:
    """Run jobs in this process. Return their states."""
    from memkit.index import sync_project
    from memkit.locks import index_lock
    from memkit.service.jobs import JobContext, job_named, run_job

    settings_of = functools.cache(context.settings_of)

    def index(project: Project) -> object:
        with index_lock(context.home, WAIT_SECONDS, context.say):
            return sync_project(project, context.home, settings_of(project))

    job_context = JobContext(context.home, settings_of, index)
    return [run_job(job, job_context) for job in map(job_named, names)]


def _lines(job: Job, state: JobState, settings: Settings) -> list[str]:
    last = format_time(state.last) if state.last else "never"
    lines = [f"{job.name}: {job.purpose}", f"    last {last}, {_next(job, state, settings)}"]
    if state.result:
        lines.append(f"    {_result(state)}")
    return lines


def _next(job: Job, state: JobState, settings: Settings) -> str:
    following = job.next_run(state, settings, time.time())
    return "off" if following is None else f"next {format_time(max(time.time(), following))}"


def _result(state: JobState) -> str:
    return f"{'failed: ' if state.failed else ''}{state.result}"


def _details(job: Job, state: JobState, settings: Settings) -> list[str]:
    last = "never"
    if state.last:
        last = f"{format_time(state.last)}, took {state.seconds:.1f} s: {_result(state)}"
    return [
        f"{job.name}: {job.purpose}",
        f"    last run  {last}",
        f"    next run  {_next(job, state, settings).removeprefix('next ')}",
    ]


WORK_SECONDS = 600.0


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

    try:
        found = request(context.home, "work", {"wait": wait, "retry": retry}, WORK_SECONDS)
        return msgspec.convert(found, WorkReport) if wait else None
    except ServiceUnavailable as unavailable:
        if unavailable.reason == "hung":
            from memkit.ipc.stop import stop_hung_service

            stop_hung_service(context.home, context.say)
    if retry:
        spool.retry_failed(context.home)
    return work_here(context, WORK_SECONDS if wait else 0.0)


def work_here(context: Context, wait_seconds: float = 0.0) -> WorkReport:
    """Do all waiting work and due jobs in this process. Raise `IndexBusyError`."""
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
    from memkit.llm import find_provider
    from memkit.settings.load import may_summarize
    from memkit.summarize.summarizer import run_summaries

    if not may_summarize(context.home, context.settings()):
        return
    settings_of = functools.cache(context.settings_of)
    done = run_summaries(context.home, settings_of, find_provider)
    report.failures += done.failures
    if done.projects:  # marked as changed
        report.indexed += work(context.home, settings_of, wait_seconds=WORK_SECONDS).indexed
