"""The memory at a glance, what is around a part of it, and what changes in it; and the recurring jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from memkit.errors import NotFoundError
from memkit.hook.tally import full_tally
from memkit.interface import InterfaceMemory as Memory
from memkit.llm import NotConfiguredError
from memkit.serve.answers import returns
from memkit.serve.auth import Administering, AdministeringOrPage, Listening, Reading, ReadingAsPage, by_name
from memkit.serve.guard import secret_in
from memkit.serve.shapes import MOST_SEGMENTS, FindingCode, JobName, SegmentIds
from memkit.service.jobs import JobView
from memkit.stats import MemoryOverview
from memkit.text import moment, plural
from memkit.topics.graph import Graph

if TYPE_CHECKING:
    from memkit.summarize.summarizer import Summarizer

router = APIRouter(tags=["overview"])
job_router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("/overview", responses=returns(MemoryOverview))
async def get_overview(ask: ReadingAsPage) -> Response:
    """Return sizes, the last turn, costs, and health, as far as it is quickly checked.

    Costs and some sizes are of all projects, so only an admin and the page see it.
    """
    return await ask(lambda memory: memory.overview())


class ListedProject(TypedDict):
    """A project with a memory. `last` is its latest day, or ""; `served` is the one of this server."""

    name: str
    root: str
    last: str
    served: bool


class Projects(TypedDict):
    """All projects, the last active first."""

    projects: list[ListedProject]


@router.get("/projects", responses=returns(Projects))
async def list_projects(ask: AdministeringOrPage) -> Response:
    """Return the projects of this machine. Their names are the values of the parameter `project`."""

    def read(memory: Memory) -> Projects:
        found: list[ListedProject] = []
        for name, one in by_name(memory).items():
            last, is_served = full_tally(memory.home, one).day, one == memory.project
            found.append({"name": name, "root": one.root, "last": last, "served": is_served})
        shown = [one for one in found if one["last"] or one["served"]]
        return {"projects": sorted(shown, key=lambda one: one["last"], reverse=True)}

    return await ask(read)


class Done(TypedDict):
    """What a fix or a round of summaries did, or why it failed."""

    message: str
    failed: bool


@router.post("/fix", responses=returns(Done, 400, 404, 413))
async def fix_finding(body: FindingCode, ask: AdministeringOrPage) -> Response:
    """Fix the findings with this code, as far as `memkit doctor --fix` does."""

    def run(memory: Memory) -> Done:
        from memkit.doctor import Finding, open_subject
        from memkit.doctor.checks import apply_fixes

        subject, found = open_subject(memory.home, memory.project), Finding(body.code, "note", "", "")
        for done in apply_fixes(subject, [found]):
            return {"message": done.message, "failed": done.failed}
        raise NotFoundError("nothing fixes such a finding; its own text says what to do")

    return await ask(run)


class WaitingSummaries(TypedDict):
    """Segments that wait for a summary by a model, oldest first, and an estimate of the calls.

    `usd` is None if the price is unknown. `left` counts the unspent tokens of today's budget. Nothing waits
    if no model may summarize here.
    """

    segments: list[str]
    tokens: int
    usd: float | None
    model: str
    left: int


@router.get("/summaries", responses=returns(WaitingSummaries))
async def plan_summaries(ask: AdministeringOrPage) -> Response:
    """Return what waits for a summary, and what it would cost, as `memkit summarize --dry-run`."""

    def plan(memory: Memory) -> WaitingSummaries:
        try:
            summarizer = _summarizer(memory)
            waiting = summarizer.select(memory.project, "")[:MOST_SEGMENTS]
            found = summarizer.plan(waiting, memory.settings.summarize)
        except (NotFoundError, NotConfiguredError):
            return {"segments": [], "tokens": 0, "usd": None, "model": "", "left": 0}
        return {
            "segments": [one.segment.id for one in waiting],
            "tokens": found.tokens,
            "usd": found.usd,
            "model": found.model,
            "left": found.left,
        }

    return await ask(plan)


@router.post("/summaries", responses=returns(Done, 400, 404, 413))
async def summarize_now(body: SegmentIds, ask: AdministeringOrPage) -> Response:
    """Summarize these of the waiting segments, within the daily budget. Answer when that is done."""

    def run(memory: Memory) -> Done:
        report = _summarizer(memory).summarize_agreed(memory.project, "", body.segments)
        if report.projects:
            memory.index()
        if report.failures:
            return {"message": report.failures[0], "failed": True}
        parts, lines = plural(report.segments, "part"), plural(report.bullets, "line")
        return {"message": f"{parts} summarized in {lines}", "failed": False}

    return await ask(run)


def _summarizer(memory: Memory) -> Summarizer:
    from memkit.llm import find_provider
    from memkit.llm.calls import Calls
    from memkit.summarize.summarizer import Summarizer, is_left_out

    if not memory.settings.summarize.is_on or is_left_out(memory.project, memory.settings):
        raise NotFoundError("no model may summarize this project")
    return Summarizer(memory.home, memory.settings_of, Calls(memory.home, find_provider))


@router.get("/graph", responses=returns(Graph, 404, 409))
async def get_graph(
    ask: Reading,
    around: Annotated[
        str,
        Query(
            max_length=1100,
            description="The node in the middle: topic:ID, file:PATH, or entry:TURN",
            examples=["file:src/app.py"],
        ),
    ],
    limit: Annotated[int, Query(ge=1, le=2000, description="Most nodes")] = 200,
) -> Response:
    """Return the topics, turns, and files around one, and how they belong together."""
    return await ask(lambda memory: memory.graph(around, limit=limit))


_EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


@router.get("/live", response_class=StreamingResponse, responses=_EVENTS)
async def listen(request: Request, ask: Listening) -> Response:
    """Send changes as server-sent events until the server ends.

    `event: changed` has as `data` the `days`, and in `entries` the new turns and notes, of
    `{"days": ["2026-11-20"], "entries": ["8ad3df7f"]}`. There are at most 16 listeners.
    """
    state, secret = request.app.state, secret_in(request.scope)
    queue = state.live.join()
    events = state.live.events(queue, lambda: state.auth.is_known(secret))  # it may be revoked
    return StreamingResponse(events, media_type="text/event-stream")


class ShownJob(TypedDict):
    """A recurring job and its last run. Intervals are in seconds."""

    purpose: str
    every_seconds: float
    next: str | None
    last: str | None
    seconds: float
    result: str
    failed: bool


class Jobs(TypedDict):
    """All jobs by name."""

    jobs: dict[str, ShownJob]


# Jobs work on all projects, so only an admin sees them.
@job_router.get("", responses=returns(Jobs))
async def list_jobs(ask: Administering) -> Response:
    """Return all jobs by name, each with its interval, its last run, and its next one."""
    return await ask(lambda memory: {"jobs": {name: _shown(one) for name, one in memory.jobs().items()}})


@job_router.get("/{name}", responses=returns(ShownJob, 404))
async def get_job(name: JobName, ask: Administering) -> Response:
    """Return a job."""

    def read(memory: Memory) -> ShownJob:
        jobs = memory.jobs()
        if name not in jobs:
            raise NotFoundError(f"there is no such job; there are {', '.join(jobs)}")
        return _shown(jobs[name])

    return await ask(read)


def _shown(job: JobView) -> ShownJob:
    """Return a job without its error, which may name other projects and their files."""
    result = "failed; `memkit jobs` says why" if job["failed"] else job["result"]
    return {**job, "result": result, "next": moment(job["next"]), "last": moment(job["last"])}
