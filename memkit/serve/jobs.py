"""The recurring jobs. They work on all projects, so only an admin sees them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from memkit.errors import NotFoundError
from memkit.serve.answers import Answer
from memkit.serve.auth import Administering
from memkit.serve.problems import documented
from memkit.serve.schemas import Jobs, JobView
from memkit.serve.shapes import JobName

_ELSEWHERE = "failed; `memkit jobs` says why"

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", response_model=Jobs)
async def listed(ask: Administering) -> Response:
    """Return all jobs by name, each with its interval, its last run, and its next one."""
    return await ask(
        lambda memory: Answer({"jobs": {name: _shown(one) for name, one in memory.jobs().items()}})
    )


@router.get("/{name}", response_model=JobView, responses=documented(404))
async def one(name: JobName, ask: Administering) -> Response:
    """Return a job."""
    return await ask(lambda memory: Answer(_shown(_named(memory.jobs(), name))))


def _named(jobs: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in jobs:
        raise NotFoundError(f"there is no such job; there are {', '.join(jobs)}")
    return jobs[name]


def _shown(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job without its error, which may name other projects and their files."""
    return {**job, "result": _ELSEWHERE} if job["failed"] else job
