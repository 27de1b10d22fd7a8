"""ASGI middleware: reject foreign hosts, foreign origins, and large bodies; add security headers; log access.

A page in the user's browser may send requests to this server, also under a name of its own that leads here
(DNS rebinding). Such a request names a foreign host or origin.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers

from memkit.serve.answers import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

access = logging.getLogger("memkit.serve.access")

BODY_BYTES = 1_000_000
STRANGER_BYTES = 10_000
"""The limit without a valid key: otherwise many strangers could fill the memory."""

KEY_ID, HEADERS = "memkit.key", "memkit.headers"
"""The keys of a request's scope that hold the id of its API key, and more headers for its response."""

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)

_DISCONNECTED = 499
"""The status in the log of a request whose client left before its end."""


class _DisconnectedError(Exception):
    pass


class Guard:
    """Wraps an app.

    `hosts` are the allowed names in a Host header, without ports. `is_known` returns whether a key is valid.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], is_known: Callable[[str], bool]) -> None:
        self._app = app
        self._is_known = is_known
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, is_complete = time.perf_counter(), 0, False
        is_head = scope["method"] == "HEAD"
        if is_head:  # the response to a GET without its body
            scope = {**scope, "method": "GET"}

        async def send_safely(message: Message) -> None:
            nonlocal status, is_complete
            if is_head and message["type"] == "http.response.body":
                if message.get("more_body"):
                    running.cancel()  # it may have no end
                message = {"type": "http.response.body", "body": b""}
            is_complete = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                own = [(name.encode(), text.encode()) for name, text in scope.get(HEADERS, {}).items()]
                added = [(name, value) for name, value in (*_HEADERS, *own) if name not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            refusal, body = self._refusal(scope), b""
            if refusal is None:
                limit = self._limit(scope)
                body = await _read_body(scope, receive, limit)
                if len(body) > limit:
                    with_key = "" if limit == BODY_BYTES else " without a valid key"
                    detail = f"a body has at most {limit:,} bytes{with_key}"
                    refusal = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail
            if refusal is not None:
                await problem(*refusal)(scope, receive, send_safely)
            else:
                with anyio.CancelScope() as running:

                    async def cancel_when_gone() -> None:
                        while (await receive())["type"] != "http.disconnect":
                            pass
                        if not is_complete:  # uvicorn also reports one after a response
                            running.cancel()

                    watching = asyncio.create_task(cancel_when_gone())
                    try:
                        await self._app(scope, _replayed(body, receive), send_safely)
                    finally:
                        watching.cancel()
                if running.cancelled_caught and not is_complete:
                    raise _DisconnectedError
        except _DisconnectedError:
            status = _DISCONNECTED
        finally:
            milliseconds = 1000 * (time.perf_counter() - started)
            # The template, such as `/memory/{id}`: the real path may hold text of the user's.
            route = getattr(scope.get("route"), "path", "-")
            access.info(
                "%s %s %d %.0f ms key=%s",
                scope["method"], route, status or 500, milliseconds, scope.get(KEY_ID, "-"),
            )  # fmt: skip

    def _limit(self, scope: Scope) -> int:
        headers = Headers(scope=scope)
        has_body = "content-length" in headers or "transfer-encoding" in headers
        return BODY_BYTES if has_body and self._is_known(secret_in(scope)) else STRANGER_BYTES

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = [one.decode("latin-1").lower() for one in headers.get(b"host", [])]
        if len(hosts) != 1 or _name_in(hosts[0]) not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, (
                "this server does not answer under the name in Host; you can allow one with "
                "`memkit serve --allow-host NAME`"
            )
        for origin in headers.get(b"origin", []):
            if _place_in(origin.decode("latin-1").lower()) != hosts[0]:
                return HTTPStatus.FORBIDDEN, "pages of other origins may not ask this server"
        for site in headers.get(b"sec-fetch-site", []):
            # The page itself may be opened from a file. It holds nothing of the memory.
            is_opening = scope["path"] == "/" and headers.get(b"sec-fetch-dest") == [b"document"]
            if site.lower() not in (b"same-origin", b"none") and not is_opening:
                return HTTPStatus.FORBIDDEN, "pages of other sites may not ask this server"
        return None


def secret_in(scope: Scope) -> str:
    """Return the secret of a request as `Authorization: Bearer SECRET` has it; "" if it is none."""
    scheme, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _name_in(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        if parts.netloc != host or "@" in host:
            return ""
        _ = parts.port  # raises if it is not a number
        return parts.hostname or ""
    except ValueError:
        return ""


def _place_in(origin: str) -> str:
    """Return the host and port of an origin, as a Host header has them; "" if it is none."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    is_plain = parts.scheme in ("http", "https") and not (parts.path or parts.query or parts.fragment)
    return parts.netloc if is_plain else ""


async def _read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the body, or more than `limit` bytes. Raise `_DisconnectedError`: half a body is another one."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit() and int(value) > limit:
            return bytes(limit + 1)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _DisconnectedError
        body += message.get("body", b"")
        if len(body) > limit or not message.get("more_body"):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
