"""The page: its files, and the key that it gets for the token of its link."""

from __future__ import annotations

import os
from typing import Annotated, TypedDict

from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.responses import FileResponse

from memkit.interface import InterfaceMemory as Memory
from memkit.serve.answers import returns
from memkit.serve.link import LinkError, redeem
from memkit.serve.shapes import Token

router = APIRouter(tags=["page"])


class ProjectName(TypedDict):
    """A project: the name that its user sees, and that of its directory."""

    name: str
    root: str


class PageKey(TypedDict):
    """The key of the page."""

    key: str
    project: ProjectName


DIRECTORY = os.path.join(os.path.dirname(__file__), "page")
"""The built page. Its source is in `page/` of the repository."""

FILES = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "licenses.txt": "text/plain; charset=utf-8",
}

HEADERS = {
    # No text of the memory can run: no inline script, no other source, and no string becomes HTML.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@router.get("/", include_in_schema=False)
async def index() -> Response:
    """Return the page. It holds nothing of the memory."""
    return await file("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def file(name: Annotated[str, Path(max_length=40)]) -> Response:
    """Return a file of the page."""
    path = os.path.join(DIRECTORY, name) if name in FILES else ""
    if not os.path.isfile(path):
        raise HTTPException(404, "the page has no such file")
    return FileResponse(path, media_type=FILES[name], headers=HEADERS)


@router.post("/page/key", responses=returns(PageKey, 400, 403, 413, 415, 421, 422, 429, 503))
async def redeem_token(body: Token, request: Request) -> Response:
    """Exchange the token of the link for a key, once. The key ends with the server."""
    state = request.app.state

    def exchange(memory: Memory) -> PageKey:
        # Last, so that the link still works after a failure.
        project: ProjectName = {"name": memory.name, "root": memory.project.root}
        return {"key": redeem(state.auth.links, body.token), "project": project}

    try:
        if not state.auth.links:
            raise LinkError("this server has no page; you can run `memkit serve --open`")
        response: Response = await state.threads.ask(exchange)
    except LinkError as error:
        state.rates.count_failure(request)
        raise HTTPException(403, str(error)) from error
    return response
