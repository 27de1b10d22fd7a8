"""The recurring jobs. They work on all projects, so only an admin sees them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from memkit.errors import NotFoundError
from memkit.serve.answers import Answer
from memkit.serve.asking import Administering
from memkit.serve.problems import documented
from memkit.serve.schemas import Jobs, JobView
from memkit.serve.shapes import JobName

_ELSEWHERE = "failed; `memkit jobs` says why"

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", response_model=Jobs)
async def listed(ask: Administering) -> Response:
    """Return all jobs by name, each with its schedule, its last run, and its next one."""
    return await ask(
        lambda memory: Answer({"jobs": {name: _shown(one) for name, one in memory.jobs().items()}})
    )


@router.get("/{name}", response_model=JobView, responses=documented(404))
async def one(name: JobName, ask: Administering) -> Response:
    """Return a job."""
    return await ask(lambda memory: Answer(_shown(_named(memory.jobs(), name))))


@router.post("/{name}/pause", response_model=JobView, responses=documented(404))
async def pause(name: JobName, ask: Administering) -> Response:
    """Pause a job. It finishes its current step first."""
    return await ask(lambda memory: Answer(_shown(memory.pause_job(name))))


@router.post("/{name}/resume", response_model=JobView, responses=documented(404))
async def resume(name: JobName, ask: Administering) -> Response:
    """Let a paused job run again. It goes on where it was."""
    return await ask(lambda memory: Answer(_shown(memory.resume_job(name))))


def _named(jobs: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in jobs:
        raise NotFoundError(f"there is no such job; there are {', '.join(jobs)}")
    return jobs[name]


def _shown(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job without its checkpoint and its errors: they name other projects and their files."""
    shown = {name: value for name, value in job.items() if name != "checkpoint"}
    if job["failed"]:
        shown["result"] = _ELSEWHERE
    if job["error"]:
        shown["error"] = _ELSEWHERE
    return shown
