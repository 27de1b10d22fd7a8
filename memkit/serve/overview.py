"""What there is to know about the memory at a glance. It covers all projects, so only an admin sees it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from memkit.serve.answers import Answer
from memkit.serve.asking import Administering
from memkit.serve.replies import Overview

router = APIRouter(tags=["overview"])


@router.get("/overview", response_model=Overview)
async def overview(ask: Administering) -> Response:
    """Return sizes, the last turn, costs, and health, as far as it is quickly checked."""
    return await ask(lambda memory: Answer(memory.overview()))  # type: ignore[no-any-return]
