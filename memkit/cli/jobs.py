"""`memkit jobs`."""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plain
from memkit.errors import MemkitError

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
    if action != "list":
        if name is None:
            raise click.UsageError(f"name a job: {', '.join(job.name for job in JOBS)}")
        job = job_named(name)
        if action == "run":
            _run(context, job.name)
        else:
            book.pause(job.name, action == "pause")
    elif name is not None:
        raise click.UsageError("`memkit jobs list` takes no name")
    states = book.states()
    if context.as_json:
        context.print_json({job.name: _as_dict(job, states[job.name]) for job in JOBS})
        return
    for job in JOBS:
        state = states[job.name]
        click.echo(plain(f"{job.name:<10} {job.purpose}; {_when(job, state)}"))
        if state.result:
            click.echo(plain(f"           {'failed: ' if state.failed else ''}{state.result}"))


def _run(context: Context, name: str) -> None:
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall.client import ask_service

    settings = context.settings()
    try:
        found = ask_service(
            context.project,
            context.home,
            settings,
            "job",
            {"name": name},
            RUN_SECONDS,
            context.say,
        )
        failed, result = found["failed"], found["result"]
    except ServiceUnavailable:
        state = run_here(context, [name])[0]
        failed, result = state.failed, state.result
    if failed:
        raise MemkitError(f"job {name}: {result}")


def run_here(context: Context, names: list[str]) -> list[Any]:
    """Run jobs in this process, under the index lock. Return their states."""
    from memkit.hook.project import Project
    from memkit.index import index_lock, sync_project
    from memkit.service.jobs import JobContext, job_named, run_job

    settings_of = functools.cache(context.settings_of)

    def index(project: Project) -> object:
        return sync_project(project, context.home, settings_of(project))

    with index_lock(context.home, WAIT_SECONDS, context.say):
        job_context = JobContext(context.home, settings_of, index)
        return [run_job(job_named(name), job_context) for name in names]


def _as_dict(job: Any, state: Any) -> dict[str, Any]:
    following = None if state.paused else state.last + job.every_seconds
    return {
        "purpose": job.purpose,
        "every_seconds": job.every_seconds,
        "next": following,
        **dataclasses.asdict(state),
    }


def _when(job: Any, state: Any) -> str:
    last = f"last {_clock(state.last)}" if state.last else "not run yet"
    if state.paused:
        return f"{last}, paused"
    following = max(time.time(), state.last + job.every_seconds)
    return f"{last}, next {_clock(following)}"


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
