"""The recurring jobs. They work on all projects, so only an admin sees them."""

from __future__ import annotations

from typing import TypedDict

from fastapi import APIRouter, Response

from memkit.errors import NotFoundError
from memkit.serve.answers import Answer, returns
from memkit.serve.auth import Administering
from memkit.serve.shapes import JobName
from memkit.service.jobs import JobView

_ELSEWHERE = "failed; `memkit jobs` says why"

router = APIRouter(prefix="/jobs", tags=["jobs"])


class Jobs(TypedDict):
    """All jobs by name."""

    jobs: dict[str, JobView]


@router.get("", responses=returns(Jobs))
async def listed(ask: Administering) -> Response:
    """Return all jobs by name, each with its interval, its last run, and its next one."""
    return await ask(
        lambda memory: Answer({"jobs": {name: _shown(one) for name, one in memory.jobs().items()}})
    )


@router.get("/{name}", responses=returns(JobView, 404))
async def one(name: JobName, ask: Administering) -> Response:
    """Return a job."""
    return await ask(lambda memory: Answer(_shown(_named(memory.jobs(), name))))


def _named(jobs: dict[str, JobView], name: str) -> JobView:
    if name not in jobs:
        raise NotFoundError(f"there is no such job; there are {', '.join(jobs)}")
    return jobs[name]


def _shown(job: JobView) -> JobView:
    """Return a job without its error, which may name other projects and their files."""
    return {**job, "result": _ELSEWHERE} if job["failed"] else job
