"""`memkit jobs`."""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.errors import MemkitError
from memkit.text import format_time

if TYPE_CHECKING:
    from memkit.service.job_book import JobState
    from memkit.service.jobs import Job
    from memkit.settings.load import Settings

WAIT_SECONDS = 60.0
RUN_SECONDS = 600.0


@command("jobs")
@click.argument(
    "action", type=click.Choice(["list", "show", "run", "pause", "resume"]), default="list"
)
@click.argument("name", required=False)
def jobs_command(context: Context, action: str, name: str | None) -> None:
    """List recurring jobs with their last and next runs and results; show, run, pause, or resume one.

    A paused job finishes its current step, and goes on from there when it is resumed. The setting `jobs.NAME`
    says when a job runs: "every 6h", "daily 03:00", or "off".

    \b
      memkit jobs
      memkit jobs show index
      memkit jobs run reconcile
      memkit jobs pause index
      memkit config set jobs.index "daily 03:00"
    """
    from memkit.projects.project import Project
    from memkit.service.job_book import JobBook, JobState
    from memkit.service.jobs import JOBS, job_named

    if (action == "list") != (name is None):
        names = ", ".join(job.name for job in JOBS)
        raise click.UsageError("`memkit jobs list` takes no name" if name else f"name a job: {names}")
    book = JobBook(context.home)
    chosen = None if name is None else job_named(name)
    if chosen is not None and action == "run":
        _run(context, chosen.name)
    elif chosen is not None and action != "show":
        change = context.memory().pause_job if action == "pause" else context.memory().resume_job
        change(chosen.name)
    settings = context.settings_of(Project(context.home.root, context.home))
    if action == "show" and chosen is not None:
        state = book.state(chosen.name)
        context.report(chosen.as_dict(state, settings), *_details(chosen, state, settings))
        return
    states = book.states()
    rows = [(job, states.get(job.name, JobState())) for job in JOBS]
    lines = [line for job, state in rows for line in _lines(job, state, settings)]
    context.report({job.name: job.as_dict(state, settings) for job, state in rows}, *lines)


def _run(context: Context, name: str) -> None:
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall.client import ask_service

    project, home, settings = context.project, context.home, context.settings()
    with context.progress(f"running {name}", is_counted=False):
        try:
            found = ask_service(project, home, settings, "job", {"name": name}, RUN_SECONDS, context.say)
        except ServiceUnavailable:
            (state,) = run_here(context, [name])
            found = dataclasses.asdict(state)
    if found["failed"]:
        raise MemkitError(f"job {name}: {found['result']}")


def run_here(context: Context, names: list[str]) -> list[JobState]:
    """Run jobs in this process. Return their states."""
    from memkit.index import sync_project
    from memkit.locks import index_lock
    from memkit.projects.project import Project
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
        lines.append(f"    {'failed: ' if state.failed else ''}{state.result}")
    return lines


def _next(job: Job, state: JobState, settings: Settings) -> str:
    following = job.next_run(state, settings, time.time())
    if following is not None:
        return f"next {format_time(max(time.time(), following))}"
    return "paused" if state.paused else "off"


def _details(job: Job, state: JobState, settings: Settings) -> list[str]:
    last = "never"
    if state.last:
        result = f"{'failed: ' if state.failed else ''}{state.result}"
        last = f"{format_time(state.last)}, took {state.seconds:.1f} s: {result}"
    unfinished = "none"
    if state.begun:
        unfinished = f"begun {format_time(state.begun)}" + f", {state.progress} done" * bool(state.progress)
    error = f"{format_time(state.error_time)}: {state.error}" if state.error else "none"
    return [
        f"{job.name}: {job.purpose}",
        f"    schedule    {job.schedule(settings)} (jobs.{job.name})",
        f"    last run    {last}",
        f"    unfinished  {unfinished}",
        f"    last error  {error}",
        f"    next run    {_next(job, state, settings).removeprefix('next ')}",
    ]
