"""`memkit jobs`."""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, progress_bar
from memkit.errors import MemkitError
from memkit.text import format_time

if TYPE_CHECKING:
    from memkit.service.jobs import Job, JobState

WAIT_SECONDS = 60.0
RUN_SECONDS = 600.0


@command("jobs")
@click.argument("action", type=click.Choice(["list", "run", "pause", "resume"]), default="list")
@click.argument("name", required=False)
def jobs_command(context: Context, action: str, name: str | None) -> None:
    """List recurring jobs with their last and next runs and results; run, pause, or resume one.

    \b
      memkit jobs
      memkit jobs run reconcile
      memkit jobs pause index
    """
    from memkit.service.jobs import JOBS, JobBook, job_named

    book = JobBook(context.home)
    if (action == "list") != (name is None):
        names = ", ".join(job.name for job in JOBS)
        raise click.UsageError("`memkit jobs list` takes no name" if name else f"name a job: {names}")
    if name is not None:
        job = job_named(name)
        if action == "run":
            _run(context, job.name)
        else:
            book.pause(job.name, action == "pause")
    states = book.states()
    if context.as_json:
        context.print_json({job.name: _as_dict(job, states[job.name]) for job in JOBS})
    else:
        for job in JOBS:
            _show(job, states[job.name])


def _run(context: Context, name: str) -> None:
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall.client import ask_service

    project, home, settings = context.project, context.home, context.settings()
    with progress_bar(context, f"running {name}", is_counted=False):
        try:
            found = ask_service(project, home, settings, "job", {"name": name}, RUN_SECONDS, context.say)
        except ServiceUnavailable:
            (state,) = run_here(context, [name])
            found = dataclasses.asdict(state)
    if found["failed"]:
        raise MemkitError(f"job {name}: {found['result']}")


def run_here(context: Context, names: list[str]) -> list[JobState]:
    """Run jobs in this process; most under the index lock. Return their states."""
    from memkit.hook.project import Project
    from memkit.index import index_lock, sync_project
    from memkit.service.jobs import JobContext, job_named, run_job

    settings_of = functools.cache(context.settings_of)

    def index(project: Project) -> object:
        return sync_project(project, context.home, settings_of(project))

    job_context = JobContext(context.home, settings_of, index)
    jobs = [job_named(name) for name in names]
    states = {}
    if locked := [job for job in jobs if not job.is_apart]:
        with index_lock(context.home, WAIT_SECONDS, context.say):
            states = {job.name: run_job(job, job_context) for job in locked}
    states |= {job.name: run_job(job, job_context) for job in jobs if job.is_apart}
    return [states[name] for name in names]


def _as_dict(job: Job, state: JobState) -> dict[str, Any]:
    return {
        "purpose": job.purpose,
        "every_seconds": job.every_seconds,
        "next": None if state.paused else state.last + job.every_seconds,
        **dataclasses.asdict(state),
    }


def _show(job: Job, state: JobState) -> None:
    last = format_time(state.last) if state.last else "never"
    following = format_time(max(time.time(), state.last + job.every_seconds))
    echo(f"{job.name}: {job.purpose}")
    echo(f"    last {last}, {'paused' if state.paused else f'next {following}'}")
    if state.result:
        echo(f"    {'failed: ' if state.failed else ''}{state.result}")
